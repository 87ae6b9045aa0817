/**
 * Bearer secrets: a prefix, 43 base62 characters of CSPRNG output, and 6 base62 characters of CRC32 over
 * everything before them. The prefix tells delivery keys (`pst_`), hook secrets (`psh_`), management tokens
 * (`psa_`), sign-in codes (`psl_`) and sessions (`pss_`) of the console apart. The checksum lets a mistyped
 * secret be refused without a look-up, and lets secret scanners match it; it is no protection. Only the
 * SHA-256 of a secret is stored.
 */
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

export type Prefix = 'pst_' | 'psh_' | 'psa_' | 'psl_' | 'pss_'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const shape = /^ps[thals]_[0-9A-Za-z]{49}$/

/** A new secret (256 random bits) in clear text. Show it once and keep its hash. */
export function newBearer(prefix: Prefix, random: (bytes: number) => Buffer = randomBytes): string {
  const secret = base62(BigInt(`0x${random(32).toString('hex')}`), 43)
  return `${prefix}${secret}${checksum(`${prefix}${secret}`)}`
}

const hashBearer = (secret: string): string => hash('sha256', secret, 'base64url')

export type Presented<Hash> =
  | { readonly kind: 'secret'; readonly hash: Hash }
  /** `other`: a secret with another prefix. */
  | { readonly kind: 'missing' | 'mistyped' | 'other' }

/**
 * Reads the `Authorization` header (spec 5; RFC 6750 §2.1, scheme in any case). Several such
 * headers arrive joined by a comma and are refused as mistyped.
 */
function parseBearer(header: string | undefined, prefix: Prefix): Presented<string> {
  if (header === undefined) return { kind: 'missing' }
  const token = /^bearer +(\S+)$/i.exec(header.trim())?.[1]
  if (token === undefined) return { kind: /^bearer /i.test(header) ? 'mistyped' : 'missing' }
  if (!isWellFormed(token)) return { kind: 'mistyped' }
  return token.startsWith(prefix) ? { kind: 'secret', hash: hashBearer(token) } : { kind: 'other' }
}

/** The functions for the secrets with a prefix, whose hashes have a type of their own. */
export const bearers = <Hash extends string>(prefix: Prefix) => ({
  create: (random?: (bytes: number) => Buffer): string => newBearer(prefix, random),
  hash: (secret: string): Hash => hashBearer(secret) as Hash,
  /** The hash of a secret as somebody entered it; null for any other text. */
  parse(text: string): Hash | null {
    const secret = text.trim()
    return secret.startsWith(prefix) && isWellFormed(secret) ? (hashBearer(secret) as Hash) : null
  },
  parseHeader: (header: string | undefined): Presented<Hash> => parseBearer(header, prefix) as Presented<Hash>,
})

const isWellFormed = (text: string): boolean => shape.test(text) && checksum(text.slice(0, -6)) === text.slice(-6)

const checksum = (text: string): string => base62(BigInt(crc32(text)), 6)

function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = alphabet[Number(rest % 62n)] + text
  return text
}

/** The time as milliseconds since 1970, or as operations present it (ISO 8601). */
type Time = number | string | null

/** Whether a key or a token is revoked, or has expired. */
export function hasEnded(
  { revokedAt, expiresAt }: { readonly revokedAt: Time; readonly expiresAt: Time },
  nowMs: number,
): boolean {
  if (revokedAt !== null) return true
  const endMs = typeof expiresAt === 'string' ? Date.parse(expiresAt) : expiresAt
  return endMs !== null && endMs <= nowMs
}
