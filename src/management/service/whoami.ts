/** Tells a caller what it is and what it may do. */
import { Type } from 'typebox'
import { roles } from '../../domain/management-token.ts'
import { operation } from '../operation.ts'
import { iso, orNull } from '../resources.ts'
import { done } from '../result.ts'

export const whoami = operation({
  method: 'GET',
  path: '/v1/whoami',
  role: 'reader',
  target: 'scope',
  summary: 'Tells what this token is, and what it may do.',
  answer: Type.Object(
    {
      name: Type.String(),
      role: Type.Enum([...roles]),
      apps: orNull(
        Type.Array(Type.String(), {
          description: 'The ids of the apps that it is for; null: the whole service.',
        }),
      ),
      expiresAt: orNull(Type.String({ format: 'date-time' })),
      version: Type.String({ description: 'The version of Postern.' }),
    },
    { additionalProperties: false },
  ),
  run: ({ caller, version }) =>
    done({
      name: caller.author.name,
      role: caller.role,
      apps: caller.apps === null ? null : [...caller.apps],
      expiresAt: caller.expiresAt === null ? null : iso(caller.expiresAt),
      version,
    }),
})
