/**
 * The key ring: the secrets that seal stored content, kept outside the database. It is written as
 * `id:base64,id:base64,…`, 32 bytes each. The first key seals, all of them open. To rotate, put a new
 * key before the others, and remove an old one when nothing sealed with it has to be read any more.
 */
import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto'

type SecretKey = { readonly id: string; readonly secret: Buffer }
export type KeyRing = readonly [SecretKey, ...SecretKey[]]

const secretBytes = 32

const keyId = '[A-Za-z0-9_-]{1,32}'
const entryPattern = new RegExp(`^(${keyId}):([A-Za-z0-9+/_-]+={0,2})$`)
const idPattern = new RegExp(`^${keyId}$`)
export const isKeyId = (text: string): boolean => idPattern.test(text)

/** Reads a ring, or says what is wrong with it. The fault never repeats a secret. */
export function parseKeyRing(text: string): { ring: KeyRing } | { fault: string } {
  const keys: SecretKey[] = []
  for (const entry of text.split(/[\s,]+/).filter((part) => part !== '')) {
    const match = entryPattern.exec(entry)
    if (match === null) return { fault: 'each key is written id:base64, separated by commas' }
    const [, id = '', encoded = ''] = match
    const secret = Buffer.from(encoded, 'base64')
    if (secret.length !== secretBytes)
      return { fault: `key "${id}" has ${secret.length} bytes instead of ${secretBytes}` }
    if (keys.some((key) => key.id === id)) return { fault: `key id "${id}" occurs twice` }
    keys.push({ id, secret })
  }
  const [first, ...rest] = keys
  return first === undefined ? { fault: 'it holds no key' } : { ring: [first, ...rest] }
}

/** A new key in the ring's notation. */
export const newSecretKey = (id: string): string => `${id}:${randomBytes(secretBytes).toString('base64')}`

export const formatKeyRing = (ring: KeyRing): string =>
  ring.map((key) => `${key.id}:${key.secret.toString('base64')}`).join(',')

/** The ring does not hold the key that sealed something. */
export class KeyMissing extends Error {
  override name = 'KeyMissing'
  readonly keyId: string
  constructor(keyId: string) {
    super(`the key ring lacks the key "${keyId}"`)
    this.keyId = keyId
  }
}

/**
 * AES-256-GCM under a key derived for this one `context` (such as one email), so that the bound on
 * random nonces applies to a context and not to a ring key. Layout: id length, id, nonce, tag, text.
 */
export function seal(ring: KeyRing, context: string, text: string): Buffer {
  const [key] = ring
  const nonce = nextNonce()
  const cipher = createCipheriv('aes-256-gcm', contextKey(key, context), nonce)
  const body = cipher.update(text, 'utf8')
  cipher.final() // GCM has no bytes left
  const id = Buffer.from(key.id)
  return Buffer.concat([Buffer.of(id.length), id, nonce, cipher.getAuthTag(), body])
}

const nonceBytes = 12
const nonces = { pool: Buffer.alloc(0), used: 0 }

/** Drawn from the CSPRNG for many seals at once: one by one they would cost as much as the sealing. */
function nextNonce(): Buffer {
  if (nonces.used === nonces.pool.length) {
    nonces.pool = randomBytes(512 * nonceBytes)
    nonces.used = 0
  }
  nonces.used += nonceBytes
  return nonces.pool.subarray(nonces.used - nonceBytes, nonces.used)
}

/** Opens what `seal` made for the same context. Throws `KeyMissing`, or another error if it was altered. */
export function unseal(ring: KeyRing, context: string, sealed: Uint8Array): string {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
  const at = 1 + (bytes[0] ?? 0)
  const id = sealingKeyId(bytes)
  const key = ring.find((candidate) => candidate.id === id)
  if (key === undefined) throw isKeyId(id) ? new KeyMissing(id) : new Error('no id of a key is before the seal')
  const decipher = createDecipheriv('aes-256-gcm', contextKey(key, context), bytes.subarray(at, at + 12))
  decipher.setAuthTag(bytes.subarray(at + 12, at + 28))
  return decipher.update(bytes.subarray(at + 28), undefined, 'utf8') + decipher.final('utf8')
}

/** As text, in base64url. */
export const sealText = (ring: KeyRing, context: string, text: string): string =>
  seal(ring, context, text).toString('base64url')

/** Null if the ring lacks the key that sealed it, or it was altered. */
export function openText(ring: KeyRing, context: string, sealed: string): string | null {
  try {
    return unseal(ring, context, Buffer.from(sealed, 'base64url'))
  } catch {
    return null
  }
}

/**
 * Seals items with the first key of the ring, so that the others can be removed from it. Returns those that
 * the ring cannot open, which stay as they are.
 * @throws what `write` throws
 */
export async function resealAll<Item extends { readonly sealed: string }>(
  ring: KeyRing,
  items: readonly Item[],
  {
    context,
    isCurrent = () => true,
    write,
  }: {
    readonly context: (item: Item) => string
    /** Whether the other seals of an item are by the first key. */
    readonly isCurrent?: (item: Item) => boolean
    readonly write: (item: Item, sealed: string) => Promise<void>
  },
): Promise<Item[]> {
  const closed: Item[] = []
  for (const item of items) {
    const text = openText(ring, context(item), item.sealed)
    if (text === null) closed.push(item)
    else if (!isSealedFirst(ring, item.sealed) || !isCurrent(item))
      await write(item, sealText(ring, context(item), text))
  }
  return closed
}

/** Whether the first key of the ring sealed it. */
export const isSealedFirst = ([{ id }]: KeyRing, sealed: string): boolean =>
  sealingKeyId(Buffer.from(sealed, 'base64url')) === id

/** The id of the ring key that sealed these bytes. */
export const sealingKeyId = (sealed: Uint8Array): string =>
  Buffer.from(sealed.subarray(1, 1 + (sealed[0] ?? 0))).toString('utf8')

// SHA-512/256 resists length extension, so a secret before the text makes it a keyed hash.
const contextKey = (key: SecretKey, context: string): Buffer =>
  hash('sha512-256', Buffer.concat([key.secret, Buffer.from(`postern seal ${context}`)]), 'buffer')

/** Characters of base64url: 132 bits. */
const nameLength = 22

/**
 * One-way names for recipients, idempotency keys and rate-limit buckets: the beginning of a keyed hash,
 * whose key is made once per database. Parts are length-prefixed, so that no two lists collide.
 */
export function makeKeyedHash(hashKey: Buffer): (...parts: readonly string[]) => string {
  const keyText = hashKey.toString('base64')
  return (...parts) => {
    let text = keyText
    for (const part of parts) text += `${part.length}:${part}`
    return hash('sha512-256', text, 'base64url').slice(0, nameLength)
  }
}

export type KeyedHash = ReturnType<typeof makeKeyedHash>

/**
 * A row of the table `secret`: the key of the database's keyed hash, or the proof of a ring key, which is a
 * seal that only the right bytes open.
 */
export type StoredSecret = { readonly name: string; readonly sealed: Uint8Array }

const hashKeyName = 'hash-key'
const proofPrefix = 'key '

/** The ring has a key by the id of another one: what that one sealed would seem to be damaged. */
export class KeyDiffers extends Error {
  override name = 'KeyDiffers'
  constructor(id: string) {
    super(
      `POSTERN_SECRET_KEYS has a key "${id}" that is not the key "${id}" of this database: put its right bytes back, or, if it is a new key, give it another id`,
    )
  }
}

export type OpenedSecrets = {
  readonly hashKey: Buffer
  /** Keys that the database was used with and the ring lacks. */
  readonly missing: readonly string[]
  /** To be stored: a hash key that the first key of the ring seals, and proofs of keys that have none. */
  readonly changed: readonly StoredSecret[]
}

/**
 * Compares the ring with the proofs that the database has of its keys, and opens or makes its hash key.
 * @throws {KeyDiffers} or {KeyMissing}
 */
export function openSecrets(ring: KeyRing, stored: readonly StoredSecret[]): OpenedSecrets {
  const sealedHashKey = stored.find(isHashKey)?.sealed
  const proofs = stored.filter(isProof)
  for (const { name, sealed } of proofs) if (isInRing(ring, sealed)) openAs(ring, name, sealed)
  const hashKey =
    sealedHashKey === undefined
      ? randomBytes(secretBytes)
      : Buffer.from(openAs(ring, hashKeyName, sealedHashKey), 'base64')
  const proven = new Set(proofs.map(({ sealed }) => sealingKeyId(sealed)))
  const changed: StoredSecret[] = ring
    .filter(({ id }) => !proven.has(id))
    .map((key) => ({ name: proofPrefix + key.id, sealed: seal([key], proofPrefix + key.id, '') }))
  if (sealedHashKey === undefined || sealingKeyId(sealedHashKey) !== ring[0].id)
    changed.push({ name: hashKeyName, sealed: seal(ring, hashKeyName, hashKey.toString('base64')) })
  const missing = proofs.filter(({ sealed }) => !isInRing(ring, sealed))
  return { hashKey, missing: missing.map(({ sealed }) => sealingKeyId(sealed)), changed }
}

export const isHashKey = ({ name }: Pick<StoredSecret, 'name'>): boolean => name === hashKeyName

export const isProof = ({ name }: Pick<StoredSecret, 'name'>): boolean => name.startsWith(proofPrefix)

/** The id of the ring key that sealed something (base64url), if the ring lacks it; otherwise null. */
export function findMissingKey(ring: KeyRing, sealed: string): string | null {
  const bytes = Buffer.from(sealed, 'base64url')
  return isInRing(ring, bytes) ? null : sealingKeyId(bytes)
}

const isInRing = (ring: KeyRing, sealed: Uint8Array): boolean => ring.some(({ id }) => id === sealingKeyId(sealed))

function openAs(ring: KeyRing, context: string, sealed: Uint8Array): string {
  try {
    return unseal(ring, context, sealed)
  } catch (error) {
    throw error instanceof KeyMissing ? error : new KeyDiffers(sealingKeyId(sealed))
  }
}
