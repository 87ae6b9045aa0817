/** Delivery keys. The clear text of a key exists only in the answer that makes it. */
import { Type } from 'typebox'
import { hashDeliveryKey, newDeliveryKey, parseDeliveryKey } from '../../domain/app/delivery-key.ts'
import { sharedNetworks } from '../../domain/app/key-networks.ts'
import { testDomain } from '../../domain/app/test-side.ts'
import { keysMax } from '../../domain/bounds.ts'
import { formatCount } from '../../domain/counts.ts'
import type { KeyId } from '../../domain/id.ts'
import { issuesOf, parsed } from '../../domain/parsed.ts'
import type { KeyRecord } from '../../store/operator-store.ts'
import { isInScope } from '../operation/access.ts'
import { appNotFound, keyNotFound } from '../operation/find-target.ts'
import { cutList, pageQuery, readCursor, readLimit } from '../operation/list-pages.ts'
import {
  daySeconds,
  expiryField,
  graceField,
  nameField,
  networksField,
  parseExpiry,
  parseName,
  parseNetworks,
} from '../operation/name-fields.ts'
import { always, operation } from '../operation/operation.ts'
import { done, fail, invalid } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { iso, KeyResource, NewKeyResource, newPageSchema, presentKey } from '../resources.ts'

export const listKeys = operation({
  method: 'GET',
  path: '/v1/apps/{app}/keys',
  role: 'reader',
  summary: 'Lists the delivery keys of an app, oldest first, including revoked and expired ones.',
  query: closed(pageQuery),
  answer: newPageSchema(KeyResource),
  errors: ['cursor_mismatch'],
  async run(context, { query }, { id }) {
    const filters = { list: 'keys', app: id } as const
    const cursor = readCursor<KeyId>(context, query, filters)
    if (!cursor.ok) return cursor
    // One more tells whether there is a next page.
    const keys = await context.store.listKeys(id, cursor.value, readLimit(query) + 1)
    return cutList(context, keys.map(presentKey), query, filters)
  },
})

export const createKey = operation({
  method: 'POST',
  path: '/v1/apps/{app}/keys',
  role: 'operator',
  summary: 'Creates a delivery key. Only this answer contains the key itself.',
  body: closed({
    name: Type.Optional(orNull(nameField())),
    expiresAt: Type.Optional(expiryField()),
    networks: Type.Optional(networksField()),
    test: Type.Optional(
      Type.Boolean({ description: `A test key: it sends only to ${testDomain}, and nothing leaves the service.` }),
    ),
  }),
  answer: closed({
    ...NewKeyResource.properties,
    apiUrl: orNull(
      Type.String({ description: 'Where the app sends its requests; null if it is not known (`POSTERN_API_URL`).' }),
    ),
  }),
  outlives: always,
  creates: true,
  errors: ['name_taken', 'too_many_keys'],
  async run({ apiUrl, store, access }, { body, params }, { id }) {
    const { expiresAt = null, name = null, networks = null, test: isTest = false } = body
    const named = name === null ? parsed(null) : parseName(name)
    const expiry = expiresAt === null ? parsed(null) : parseExpiry(expiresAt, store)
    const places = networks === null ? parsed(null) : parseNetworks(networks)
    if (!named.ok || !expiry.ok || !places.ok) return invalid(issuesOf([named, expiry, places]))
    const key = newDeliveryKey()
    const bounds = { expiresAt: expiry.value, networks: places.value }
    const wanted = { app: id, isTest, hash: hashDeliveryKey(key), name, ...bounds }
    const record = await store.createKey(wanted, access.actor)
    if (record === null) return appNotFound(params.app)
    if (record === 'name_taken') return keyNameTaken(name ?? '')
    if (record === 'too_many') return tooManyKeys()
    return done({ ...presentKey(record), key, apiUrl }, { created: true })
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

export const showKey = operation({
  method: 'GET',
  path: '/v1/keys/{key}',
  role: 'reader',
  summary: 'Shows the record of a delivery key. The key itself is not stored.',
  answer: KeyResource,
  run: (_context, _input, key) => done(presentKey(key)),
})

export const changeKey = operation({
  method: 'PATCH',
  path: '/v1/keys/{key}',
  role: 'operator',
  summary:
    'Changes the name, the expiry or the networks of a delivery key. A key with an `expiresAt` of null works until it is revoked.',
  body: closed({
    name: Type.Optional(nameField()),
    expiresAt: Type.Optional(expiryField()),
    networks: Type.Optional(networksField()),
  }),
  answer: KeyResource,
  outlives: ({ body }, key) => worksLonger(key, body.expiresAt) || worksElsewhere(key, body.networks),
  errors: ['name_taken', 'key_ended'],
  async run({ store, access }, { body: { name, expiresAt, networks } }, { id }) {
    const named = name === undefined ? parsed(null) : parseName(name)
    const expiry = expiresAt == null ? parsed(null) : parseExpiry(expiresAt, store)
    const places = networks == null ? parsed(null) : parseNetworks(networks)
    if (!named.ok || !expiry.ok || !places.ok) return invalid(issuesOf([named, expiry, places]))
    const change = {
      ...(name !== undefined && { name }),
      ...(expiresAt !== undefined && { expiresAt: expiry.value }),
      ...(networks !== undefined && { networks: places.value }),
    }
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

/** Whether addresses may use a key that might not before. */
function worksElsewhere({ networks: known }: KeyRecord, wanted: readonly string[] | null | undefined): boolean {
  if (known === null || wanted === undefined) return false
  const next = parseNetworks(wanted ?? [])
  const isKnown = (network: string) => sharedNetworks(known, [network])?.includes(network)
  return wanted === null || (next.ok && !next.value.every(isKnown))
}

const keyEnded = (id: string) =>
  fail('key_ended', `The key ${id} is revoked or has expired; make another one for its app.`)

export const replaceKey = operation({
  method: 'POST',
  path: '/v1/keys/{key}/replace',
  role: 'operator',
  summary: 'Creates a new key with the same app and name; the old one keeps working for `graceSeconds`.',
  body: closed({
    graceSeconds: graceField(365),
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
