/**
 * Identifiers: a prefix that names the kind, then 26 characters of Crockford's base 32 in lower
 * case: 10 for the time (milliseconds), 4 for a sequence number within that millisecond, 12 of
 * CSPRNG output. Ids of one kind made by one process sort in the order they were made; the queue
 * relies on this.
 */
import { randomBytes } from 'node:crypto'

declare const brand: unique symbol
export type AppId = string & { readonly [brand]: 'AppId' }
export type EmailId = string & { readonly [brand]: 'EmailId' }
export type KeyId = string & { readonly [brand]: 'KeyId' }
export type TokenId = string & { readonly [brand]: 'TokenId' }
export type NodeId = string & { readonly [brand]: 'NodeId' }
export type PersonId = string & { readonly [brand]: 'PersonId' }
export type SessionId = string & { readonly [brand]: 'SessionId' }
export type SuppressionId = string & { readonly [brand]: 'SuppressionId' }
export type WebhookMessageId = string & { readonly [brand]: 'WebhookMessageId' }
export type AuditId = string & { readonly [brand]: 'AuditId' }

type Ids = {
  app: AppId
  em: EmailId
  key: KeyId
  tok: TokenId
  pe: PersonId
  ses: SessionId
  au: AuditId
  sp: SuppressionId
  wh: WebhookMessageId
  node: NodeId
  req: string
}
export type IdKind = keyof Ids

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const sequenceMax = 32 ** 4 - 1

/** The time and sequence number of the newest id, per kind: kinds may be made by different clocks. */
const newest: Partial<Record<IdKind, { atMs: number; sequence: number }>> = {}

/** A new id of the given kind, at `nowMs` (milliseconds since 1970 UTC). */
export function newId<K extends IdKind>(kind: K, nowMs: number): Ids[K] {
  const last = newest[kind] ?? { atMs: 0, sequence: 0 }
  newest[kind] = last
  if (nowMs > last.atMs) {
    last.atMs = nowMs
    last.sequence = 0
  } else if (last.sequence < sequenceMax) {
    last.sequence += 1 // also when the clock was set back, so that the order holds
  } else {
    last.atMs += 1
    last.sequence = 0
  }
  return `${kind}_${digits(last.atMs, 10)}${digits(last.sequence, 4)}${randomDigits(12)}` as Ids[K]
}

function digits(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32)) text = alphabet[rest % 32] + text
  return text
}

const randomPool = { bytes: Buffer.alloc(0), used: 0 }

function randomDigits(length: number): string {
  if (randomPool.used + length > randomPool.bytes.length) {
    randomPool.bytes = randomBytes(4096)
    randomPool.used = 0
  }
  randomPool.used += length
  return digitsOfBytes(randomPool.bytes, randomPool.used - length, randomPool.used)
}

/** Five bits of each byte, from `begin` to before `end`. */
export function digitsOfBytes(bytes: Uint8Array, begin: number, end: number): string {
  let text = ''
  for (let index = begin; index < end; index++) text += alphabet[(bytes[index] ?? 0) & 31]
  return text
}

const idLength = 26
/** The time, the sequence number and four random characters: two ids that share these are very rare. */
const shortLength = 18
/** Two ids that begin with fewer characters could be made in the same millisecond. */
const startMin = 14

const shape = /^([a-z]{2,4}_)([0-9a-z]+)$/

/** An id as pages and tables show it: `em_01m89zq3bs0000az`. Other texts stay as they are. */
export function shortenId(text: string): string {
  const [, kind = '', digits = ''] = shape.exec(text) ?? []
  return digits.length === idLength ? `${kind}${digits.slice(0, shortLength)}` : text
}

/** Whether the text may be the beginning of an id, long enough to name one. */
export function isIdStart(text: string): boolean {
  const [, , digits = ''] = shape.exec(text.slice(0, idLength + 10)) ?? []
  return digits.length >= startMin && digits.length < idLength
}

/** The smallest id of a kind that can be made at `nowMs` or later. */
export const idFloor = (kind: IdKind, nowMs: number): string => `${kind}_${digits(Math.max(0, nowMs), 10)}`

/** When an id was made, in milliseconds since 1970 UTC. */
export function readIdTime(id: string): number {
  const begin = id.indexOf('_') + 1
  return [...id.slice(begin, begin + 10)].reduce((ms, digit) => ms * 32 + alphabet.indexOf(digit), 0)
}
