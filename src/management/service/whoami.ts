/** Tells an actor its name, role and apps. */
import { Type } from 'typebox'
import { roles } from '../../domain/operator/management-token.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { iso } from '../resources.ts'

export const whoami = operation({
  method: 'GET',
  path: '/v1/whoami',
  role: 'reader',
  target: 'none',
  summary: 'Tells what this token is, and what it may do.',
  answer: closed({
    name: Type.String(),
    role: Type.Enum([...roles]),
    apps: orNull(
      Type.Array(Type.String(), {
        description: 'The ids of the apps that it is for; null: the whole service.',
      }),
    ),
    expiresAt: orNull(Type.String({ format: 'date-time' })),
    version: Type.String({ description: 'The version of Postern.' }),
  }),
  run: ({ access, version }) =>
    done({
      name: access.actor.name,
      role: access.role,
      apps: access.apps === null ? null : [...access.apps],
      expiresAt: access.expiresAt === null ? null : iso(access.expiresAt),
      version,
    }),
})
