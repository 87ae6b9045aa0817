/** The parts of answers about hooks. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { hookSystemNames, unknownHooksUrl } from '../../domain/hooks/hook-settings.ts'
import type { HookSystem } from '../../domain/hooks/hook-system.ts'
import { findSystem, systems } from '../../domain/hooks/systems.ts'
import type { SealedSecret } from '../../store/hook-store.ts'
import { fail, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'

/** How an auth server reaches Postern, and the secret that it signs with; the key is made without it. */
export type HookFacts = {
  /** The public address of the hooks listener, without a slash at the end; null if there is none. */
  readonly hooksUrl: string | null
  /** `127.0.0.1:4025`, where this process listens for auth servers; null if it does not. */
  readonly hooksListener: string | null
  /** Seals the secret by which an auth server signs, for the hash of its key. */
  readonly sealHookSecret: (hash: KeyHash, secret: string) => string
  /** Whether the key ring has the key that sealed the secret. */
  readonly opensHookSecret: (secret: SealedSecret) => boolean
}

export const systemName = () => Type.Enum([...hookSystemNames])

export const StepResource = closed({
  text: Type.String(),
  block: Type.Optional(Type.String({ description: 'To be copied as it is.' })),
})

export const hookUrl = (hooksUrl: string | null, { name }: HookSystem, { slug }: App): string =>
  `${hooksUrl ?? unknownHooksUrl}/${name}/${slug}`

/** The system of a path. */
export function requireSystem(name: string): HookSystem | Result<never> {
  const known = systems.map((system) => system.name).join(', ')
  return (
    findSystem(name) ?? fail('not_found', `Postern takes no hooks of "${name}": the systems are ${known}.`)
  )
}
