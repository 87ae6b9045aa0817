/** The auth servers whose mail Postern takes. */
import type { HookSystem } from './hook-system.ts'
import { logto } from './logto.ts'

export const systems: readonly HookSystem[] = [logto]

export const findSystem = (name: string): HookSystem | null =>
  systems.find((system) => system.name === name) ?? null
