/** Changes the name or the end of a delivery key. */
import { Type } from 'typebox'
import type { KeyRecord } from '../../store/operator-store.ts'
import { keyNotFound } from '../operation/find-target.ts'
import { expiryField, nameField, parseExpiry, parseName } from '../operation/name-fields.ts'
import { operation } from '../operation/operation.ts'
import { done, fail, invalid } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { KeyResource, presentKey } from '../resources.ts'
import { keyNameTaken } from './create-key.ts'

export const changeKey = operation({
  method: 'PATCH',
  path: '/v1/keys/{key}',
  role: 'operator',
  summary: 'Changes the name or expiry of a delivery key. A key with an `expiresAt` of null works until it is revoked.',
  body: closed({ name: Type.Optional(nameField()), expiresAt: Type.Optional(expiryField()) }),
  answer: KeyResource,
  outlives: ({ body }, key) => worksLonger(key, body.expiresAt),
  errors: ['name_taken', 'key_ended'],
  async run({ store, access }, { body: { name, expiresAt } }, { id }) {
    const named = name === undefined ? null : parseName(name)
    const expiry = typeof expiresAt === 'string' ? parseExpiry(expiresAt, store) : null
    const issues = [named, expiry].flatMap((part) => (part?.ok === false ? part.issues : []))
    if (issues.length > 0) return invalid(issues)
    const end = expiry?.ok ? expiry.value : expiresAt === null ? null : undefined
    const change = { ...(name !== undefined && { name }), ...(end !== undefined && { expiresAt: end }) }
    const record = await store.updateKey(id, change, access.actor)
    if (record === 'name_taken') return keyNameTaken(name ?? '')
    if (record === null) return keyNotFound(id)
    if (record === 'ended') return keyEnded(id)
    return done(presentKey(record))
  },
})

/** Whether a key works for longer than before with this expiry; undefined: unchanged. */
const worksLonger = ({ expiresAt }: KeyRecord, wanted: string | null | undefined): boolean =>
  expiresAt !== null && wanted !== undefined && !(wanted !== null && Date.parse(wanted) <= expiresAt)

export const keyEnded = (id: string) =>
  fail('key_ended', `The key ${id} is revoked or has expired; make another one for its app.`)
