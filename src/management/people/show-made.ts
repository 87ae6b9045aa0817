/** Shows what a person made that still works: it goes on when the person may no longer sign in. */
import { Type } from 'typebox'
import { hasEnded } from '../../domain/bearer.ts'
import { forAdmins, operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { KeyResource, presentKey, presentToken, TokenResource } from '../resources.ts'
import { personNotFound } from './people.ts'

export const showMade = operation({
  ...forAdmins,
  method: 'GET',
  path: '/v1/people/{person}/made',
  summary:
    'Shows the management tokens and delivery keys that a person created and that still work. They keep working when the person is disabled.',
  answer: closed({ tokens: Type.Array(TokenResource), keys: Type.Array(KeyResource) }),
  errors: ['not_found'],
  async run({ store }, { params }) {
    const person = await store.findPerson(params.person)
    if (person === null) return personNotFound(params.person)
    const now = store.now()
    const tokens = (await store.listTokens()).filter(
      (token) => token.createdBy === person.name && !hasEnded(token, now),
    )
    const keys = await store.listKeysMadeBy(person.name)
    return done({ tokens: tokens.map(presentToken), keys: keys.map(presentKey) })
  },
})
