/** The systems whose mail Postern takes. Every other list is derived from these. */

import type { AuthHook, PostingHook } from './auth-hook.ts'
import type { AuthHookName } from './auth-hook-settings.ts'
import { kratos } from './kratos.ts'
import { logto } from './logto.ts'
import { mailSystems } from './smtp/mail-systems.ts'
import { supabase } from './supabase.ts'
import { zitadel } from './zitadel.ts'

/** They post to a URL. */
export const postingSystems: readonly PostingHook[] = [supabase, kratos, zitadel, logto]

/** First those that post, then those that send over SMTP. */
export const systems: readonly AuthHook[] = [...postingSystems, ...mailSystems]

export const authHookNames: readonly AuthHookName[] = systems.map(({ name }) => name)

export const findSystem = (name: string): AuthHook | null => systems.find((system) => system.name === name) ?? null

export const findPostingSystem = (name: string): PostingHook | null =>
  postingSystems.find((system) => system.name === name) ?? null
