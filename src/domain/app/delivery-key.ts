/**
 * Delivery keys: `pst_`, 43 base62 characters of CSPRNG output, and 6 base62 characters of CRC32
 * over everything before them. The checksum lets a mistyped key be refused without a look-up, and
 * lets secret scanners match it; it is no protection. Only the SHA-256 of a key is stored.
 */
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

declare const brand: unique symbol
/** SHA-256 of a delivery key, base64url. */
export type KeyHash = string & { readonly [brand]: 'KeyHash' }

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const shape = /^pst_[0-9A-Za-z]{49}$/

/** A new key (256 random bits) in clear text. Show it once and keep its hash. */
export function newDeliveryKey(random: (bytes: number) => Buffer = randomBytes): string {
  const secret = base62(BigInt(`0x${random(32).toString('hex')}`), 43)
  return `pst_${secret}${checksum(`pst_${secret}`)}`
}

export const hashDeliveryKey = (key: string): KeyHash => hash('sha256', key, 'base64url') as KeyHash

export type PresentedKey =
  | { readonly kind: 'key'; readonly hash: KeyHash }
  | { readonly kind: 'missing' | 'mistyped' }

/**
 * Reads the `Authorization` header (spec 5; RFC 6750 §2.1, scheme in any case). Several such
 * headers arrive joined by a comma and are refused as mistyped.
 */
export function parseAuthorization(header: string | undefined): PresentedKey {
  if (header === undefined) return { kind: 'missing' }
  const token = /^bearer +(\S+)$/i.exec(header.trim())?.[1]
  if (token === undefined) return { kind: /^bearer /i.test(header) ? 'mistyped' : 'missing' }
  const wellFormed = shape.test(token) && checksum(token.slice(0, -6)) === token.slice(-6)
  return wellFormed ? { kind: 'key', hash: hashDeliveryKey(token) } : { kind: 'mistyped' }
}

const checksum = (text: string): string => base62(BigInt(crc32(text)), 6)

function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = alphabet[Number(rest % 62n)] + text
  return text
}
