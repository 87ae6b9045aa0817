/** Makes a delivery key. Its clear text exists only in the answer. */
import { Type } from 'typebox'
import { hashDeliveryKey, newDeliveryKey } from '../../domain/app/delivery-key.ts'
import { keysMax } from '../../domain/bounds.ts'
import { formatCount } from '../../domain/counts.ts'
import { appNotFound } from '../operation/find-target.ts'
import { expiryField, nameField, parseExpiry, parseName } from '../operation/name-fields.ts'
import { always, operation } from '../operation/operation.ts'
import { done, fail, invalid } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { NewKeyResource, presentKey } from '../resources.ts'

export const createKey = operation({
  method: 'POST',
  path: '/v1/apps/{app}/keys',
  role: 'operator',
  summary: 'Creates a delivery key. Only this answer contains the key itself.',
  body: closed({ name: Type.Optional(orNull(nameField())), expiresAt: Type.Optional(expiryField()) }),
  answer: NewKeyResource,
  outlives: always,
  creates: true,
  errors: ['name_taken', 'too_many_keys'],
  async run({ store, access }, { body: { name = null, expiresAt = null }, params }, { id }) {
    const named = name === null ? null : parseName(name)
    const expiry = expiresAt === null ? null : parseExpiry(expiresAt, store)
    const issues = [named, expiry].flatMap((part) => (part?.ok === false ? part.issues : []))
    if (issues.length > 0) return invalid(issues)
    const key = newDeliveryKey()
    const wanted = { app: id, hash: hashDeliveryKey(key), name, expiresAt: expiry?.ok ? expiry.value : null }
    const record = await store.createKey(wanted, access.actor)
    if (record === null) return appNotFound(params.app)
    if (record === 'name_taken') return keyNameTaken(name ?? '')
    if (record === 'too_many') return tooManyKeys()
    return done({ ...presentKey(record), key }, { created: true })
  },
})

export const tooManyKeys = () =>
  fail(
    'too_many_keys',
    `The app has ${formatCount(keysMax)} working keys: revoke unused ones, or replace one with no grace period.`,
  )

export const keyNameTaken = (name: string) =>
  fail(
    'name_taken',
    `The app already has a working key named "${name}": choose another name, or replace or revoke that key.`,
  )
