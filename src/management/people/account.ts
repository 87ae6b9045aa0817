/** The account of the person who asks: what it may do, and its passkeys. */
import { Type } from 'typebox'
import type { PersonId } from '../../domain/id.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import { roles } from '../../domain/operator/management-token.ts'
import { always, operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { isoOrNull } from '../resources.ts'
import { PasskeyResource, presentPasskey } from './people-resources.ts'

/** Null for tokens and the command line. */
const findPersonId = ({ kind, id }: Actor): PersonId | null => (kind === 'person' ? (id as PersonId) : null)

export const whoami = operation({
  method: 'GET',
  path: '/v1/whoami',
  role: 'reader',
  summary: 'Shows who is making the request, and what they may do.',
  answer: closed({
    name: Type.String(),
    role: Type.Enum([...roles]),
    apps: orNull(
      Type.Array(Type.String(), {
        description: 'The ids of the apps it is limited to; null for the whole service.',
      }),
    ),
    expiresAt: orNull(Type.String({ format: 'date-time' })),
    passkeys: orNull(Type.Array(PasskeyResource, { description: 'Null unless a person makes the request.' })),
    version: Type.String({ description: 'The version of Postern.' }),
  }),
  async run({ access, store, version }) {
    const { actor, apps, expiresAt, role } = access
    const person = findPersonId(actor)
    return done({
      name: actor.name,
      role,
      apps: apps === null ? null : [...apps],
      expiresAt: isoOrNull(expiresAt),
      passkeys: person === null ? null : (await store.listPasskeys(person)).map(presentPasskey),
      version,
    })
  },
})

export const removeOwnPasskey = operation({
  method: 'DELETE',
  path: '/v1/account/passkeys/{passkey}',
  role: 'reader',
  summary: 'Removes one of your own passkeys. Sessions started with it continue.',
  takesAway: always,
  answer: closed({ passkeys: Type.Array(PasskeyResource) }),
  errors: ['not_found'],
  async run({ store, access: { actor } }, { params: { passkey } }) {
    const person = findPersonId(actor)
    if (person === null || !(await store.removePasskey(person, passkey, actor)))
      return fail('not_found', 'You have no such passkey.')
    return done({ passkeys: (await store.listPasskeys(person)).map(presentPasskey) })
  },
})
