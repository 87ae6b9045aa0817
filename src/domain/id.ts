/**
 * Identifiers: a prefix that says what they name, then 26 characters of Crockford's base 32 in
 * lower case: 10 of time (milliseconds), 4 of a sequence within that millisecond, 12 of CSPRNG
 * output. Ids made by one process sort in the order they were made; the queue relies on it.
 */
import { randomBytes } from 'node:crypto'

declare const brand: unique symbol
export type AppId = string & { readonly [brand]: 'AppId' }
export type EmailId = string & { readonly [brand]: 'EmailId' }
export type KeyId = string & { readonly [brand]: 'KeyId' }

type Ids = { app: AppId; em: EmailId; key: KeyId; req: string }

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const state = { atMs: 0, sequence: 0, pool: Buffer.alloc(0), used: 0 }

/** A new id of the given kind, at `nowMs` (milliseconds since 1970 UTC). */
export function newId<K extends keyof Ids>(kind: K, nowMs: number): Ids[K] {
  if (nowMs > state.atMs) {
    state.atMs = nowMs
    state.sequence = 0
  } else {
    state.sequence += 1 // also while the clock steps back: the order holds
  }
  const id = `${kind}_${digits(state.atMs, 10)}${digits(state.sequence, 4)}${randomDigits(12)}`
  return id as Ids[K]
}

function digits(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32)) text = alphabet[rest % 32] + text
  return text
}

function randomDigits(length: number): string {
  if (state.used + length > state.pool.length) {
    state.pool = randomBytes(4096)
    state.used = 0
  }
  let text = ''
  for (let end = state.used + length; state.used < end; state.used++)
    text += alphabet[(state.pool[state.used] ?? 0) & 31]
  return text
}

/** The least id of a kind that can have been made at `nowMs` or later. */
export const idFloor = (kind: keyof Ids, nowMs: number): string => `${kind}_${digits(nowMs, 10)}`
