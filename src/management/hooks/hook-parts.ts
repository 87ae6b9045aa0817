/** The parts of answers about hooks. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { hookSystemNames } from '../../domain/hooks/hook-settings.ts'
import type { HookSystem } from '../../domain/hooks/hook-system.ts'
import { findSystem, systems } from '../../domain/hooks/systems.ts'
import { fail, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'

/** How an auth server reaches Postern, and the secret that it signs with; the key is made without it. */
export type HookFacts = {
  /** The public address of the hooks listener, without a slash at the end; null if there is none. */
  readonly hooksUrl: string | null
  readonly listensForHooks: boolean
  /** Seals the secret by which an auth server signs, for the hash of its key. */
  readonly sealHookSecret: (hash: KeyHash, secret: string) => string
}

export const systemName = () => Type.Enum([...hookSystemNames])

export const StepResource = closed({
  text: Type.String(),
  block: Type.Optional(Type.String({ description: 'To be copied as it is.' })),
})

export const hookUrl = (hooksUrl: string | null, { name }: HookSystem, { slug }: App): string =>
  `${hooksUrl ?? 'https://YOUR-HOOKS-ADDRESS'}/${name}/${slug}`

/** The system of a path. */
export function requireSystem(name: string): HookSystem | Result<never> {
  const known = systems.map((system) => system.name).join(', ')
  return (
    findSystem(name) ?? fail('not_found', `Postern takes no hooks of "${name}": the systems are ${known}.`)
  )
}
