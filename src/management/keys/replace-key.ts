/** Replaces a delivery key: a new one is made, and the old one goes on working for a while. */

import { Type } from 'typebox'
import { hashDeliveryKey, newDeliveryKey } from '../../domain/app/delivery-key.ts'
import { dayMs } from '../../domain/duration.ts'
import { keyNotFound } from '../operation/find-target.ts'
import { expiryField, parseExpiry } from '../operation/name-fields.ts'
import { always, operation } from '../operation/operation.ts'
import { done, fail, invalid } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { iso, NewKeyResource, presentKey } from '../resources.ts'
import { keyEnded } from './change-key.ts'
import { tooManyKeys } from './create-key.ts'

const daySeconds = dayMs / 1000
const graceMax = 365 * daySeconds

export const replaceKey = operation({
  method: 'POST',
  path: '/v1/keys/{key}/replace',
  role: 'operator',
  summary: 'Creates a new key with the same app and name; the old one keeps working for `graceSeconds`.',
  body: closed({
    graceSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: graceMax, description: 'Default: a day.' })),
    expiresAt: Type.Optional(expiryField()),
  }),
  answer: closed({ ...NewKeyResource.properties, oldExpiresAt: Type.String({ format: 'date-time' }) }),
  outlives: always,
  creates: true,
  errors: ['key_ended', 'key_of_auth_hook', 'too_many_keys'],
  async run({ store, access }, { body: { graceSeconds = daySeconds, expiresAt = null } }, old) {
    if (old.hook !== null)
      return fail(
        'key_of_auth_hook',
        `This is the secret of ${old.hook}: "postern auth-hook connect APP ${old.hook}" makes another one.`,
      )
    const expiry = expiresAt === null ? null : parseExpiry(expiresAt, store)
    if (expiry?.ok === false) return invalid(expiry.issues)
    const key = newDeliveryKey()
    const grace = store.now() + graceSeconds * 1000
    const next = { hash: hashDeliveryKey(key), expiresAt: expiry?.value ?? null, oldExpiresAt: grace }
    const record = await store.replaceKey(old.id, next, access.actor)
    if (record === null) return keyNotFound(old.id)
    if (record === 'ended') return keyEnded(old.id)
    if (record === 'too_many') return tooManyKeys()
    const ending = await store.findKey(old.id)
    const oldExpiresAt = iso(ending?.expiresAt ?? grace)
    return done({ ...presentKey(record), key, oldExpiresAt }, { created: true })
  },
})
