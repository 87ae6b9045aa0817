/** The parts of answers about hooks. */
import { Type } from 'typebox'
import type { App } from '../../domain/app/app.ts'
import { unknownHooksUrl } from '../../domain/hooks/hook-settings.ts'
import type { HookSystem } from '../../domain/hooks/hook-system.ts'
import { findSystem, hookSystemNames, systems } from '../../domain/hooks/systems.ts'
import { fail, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'

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
  return findSystem(name) ?? fail('not_found', `Postern takes no hooks of "${name}": the systems are ${known}.`)
}
