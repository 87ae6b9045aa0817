/** Revokes a delivery key. */
import { keyNotFound } from '../operation/find-target.ts'
import { always, operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { KeyResource, presentKey } from '../resources.ts'

export const revokeKey = operation({
  method: 'DELETE',
  path: '/v1/keys/{key}',
  role: 'operator',
  summary:
    'Revokes a delivery key; takes effect for the next request. Its record is kept. Repeating it changes nothing.',
  takesAway: always,
  answer: KeyResource,
  async run({ store, access }, _input, { id }) {
    const record = await store.revokeKey(id, access.actor)
    return record === null ? keyNotFound(id) : done(presentKey(record))
  },
})
