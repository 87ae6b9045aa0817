/** The auth servers whose mail Postern takes. Every other list is derived from this one. */

import type { AuthHook } from './auth-hook.ts'
import type { AuthHookName } from './auth-hook-settings.ts'
import { kratos } from './kratos.ts'
import { logto } from './logto.ts'
import { supabase } from './supabase.ts'
import { zitadel } from './zitadel.ts'

export const systems: readonly AuthHook[] = [supabase, kratos, zitadel, logto]

export const authHookNames: readonly AuthHookName[] = systems.map(({ name }) => name)

export const findSystem = (name: string): AuthHook | null => systems.find((system) => system.name === name) ?? null
