/** The auth servers whose mail Postern takes. Every other list is derived from this one. */
import type { HookSystemName } from './hook-settings.ts'
import type { HookSystem } from './hook-system.ts'
import { kratos } from './kratos.ts'
import { logto } from './logto.ts'
import { supabase } from './supabase.ts'
import { zitadel } from './zitadel.ts'

export const systems: readonly HookSystem[] = [supabase, kratos, zitadel, logto]

export const hookSystemNames: readonly HookSystemName[] = systems.map(({ name }) => name)

export const findSystem = (name: string): HookSystem | null => systems.find((system) => system.name === name) ?? null
