/** Revokes a delivery key. */
import { operation } from '../operation.ts'
import { KeyResource, presentKey } from '../resources.ts'
import { done } from '../result.ts'
import { keyEnded } from './change-key.ts'

export const revokeKey = operation({
  method: 'DELETE',
  path: '/v1/keys/{key}',
  role: 'operator',
  target: 'key',
  summary: 'Revokes a delivery key, for the next request. Its record stays. Repeating it changes nothing.',
  answer: KeyResource,
  refusals: ['key_ended'],
  async run({ store, access }, _input, { id }) {
    const record = await store.revokeKey(id, access.actor)
    return record === null ? keyEnded(id) : done(presentKey(record))
  },
})
