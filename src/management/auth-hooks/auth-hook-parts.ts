/** The parts of answers about auth hooks. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import type { AuthHook } from '../../domain/auth-hooks/auth-hook.ts'
import { unknownAuthHooksUrl } from '../../domain/auth-hooks/auth-hook-settings.ts'
import { authHookNames, findSystem, systems } from '../../domain/auth-hooks/auth-hooks.ts'
import { fail, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'

export const systemName = () => Type.Enum([...authHookNames])

export const StepResource = closed({
  text: Type.String(),
  block: Type.Optional(Type.String({ description: 'To be copied as it is.' })),
})

export const authHookUrl = (authHooksUrl: string | null, { name }: AuthHook, { slug }: App): string =>
  `${authHooksUrl ?? unknownAuthHooksUrl}/${name}/${slug}`

/** The system of a path. */
export function requireSystem(name: string): AuthHook | Result<never> {
  const known = systems.map((system) => system.name).join(', ')
  return findSystem(name) ?? fail('not_found', `Postern takes no auth hooks of "${name}": the systems are ${known}.`)
}
