/** Shows the record of one delivery key. */
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { KeyResource, presentKey } from '../resources.ts'

export const showKey = operation({
  method: 'GET',
  path: '/v1/keys/{key}',
  role: 'reader',
  summary: 'Shows the record of a delivery key. The key itself is not stored.',
  answer: KeyResource,
  run: (_context, _input, key) => done(presentKey(key)),
})
