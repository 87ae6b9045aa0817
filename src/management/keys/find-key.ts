/** Finds the record of a delivery key by the key itself: one that was found in a log, or in a repository. */
import { Type } from 'typebox'
import { parseDeliveryKey } from '../../domain/app/delivery-key.ts'
import { isInScope } from '../operation/access.ts'
import { operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { KeyResource, presentKey } from '../resources.ts'

export const findKey = operation({
  method: 'POST',
  path: '/v1/keys/find',
  role: 'reader',
  summary: 'Finds the record of a delivery key by the key itself, for example after a leak.',
  body: closed({ key: Type.String({ maxLength: 200, description: 'The complete key: `pst_…`.' }) }),
  audited: false,
  answer: KeyResource,
  errors: ['not_found'],
  async run({ store, access }, { body }) {
    const hash = parseDeliveryKey(body.key)
    const key = hash === null ? null : await store.findKeyByHash(hash)
    if (key !== null && isInScope(access, key.app)) return done(presentKey(key))
    return fail('not_found', 'No app that you can see has this delivery key.')
  },
})
