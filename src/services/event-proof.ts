/**
 * How the calls of a mail service prove themselves: by a secret that the operator has given. Headers are
 * bounded before they are taken apart. Times are checked where the standard of a signature asks for it;
 * elsewhere a repeated call changes nothing, because reports are recorded once and count for days.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { SignedCall } from '../domain/signatures.ts'

type ProofForm<Key> = {
  /** In front of the first colon of a key in the configuration. */
  readonly name: string
  /** A key as an operator writes it. */
  readonly form: string
  /** Null if the value is no such key. */
  readKey(value: string): Key | null
}

/** Gets a text from a server of the mail service, by https; null if it does not answer with 200 in time. */
export type Ask = (url: string) => Promise<string | null>

/** A server of the mail service did not answer, so the call must be repeated. */
export class TryAgain extends Error {}

export type ProvenCall = SignedCall & { readonly ask: Ask }

/** A proof in the headers, or over the raw body. */
export type Proof<Key = unknown> = ProofForm<Key> & {
  proves(call: ProvenCall, key: Key): boolean | Promise<boolean>
}

/** A proof in the fields of the body, which proves nothing about its other fields. */
export type BodyProof<Key = unknown> = ProofForm<Key> & {
  proves(body: unknown, key: Key): boolean
}

/** Guesses are not limited, so secrets must be long. */
export const secretMin = 16
export const headerCharactersMax = 1024

const hashCredentials = (credentials: string): Buffer => createHash('sha256').update(credentials).digest()

/** HTTP Basic (RFC 7617). The key is the SHA-256 of `user:password`: hashes of one length can be compared. */
export const basic: Proof<Buffer> = {
  name: 'basic',
  form: `basic:USER:PASSWORD, with a password of at least ${secretMin} characters`,
  readKey(value) {
    const colon = value.indexOf(':')
    const isLong = value.length - colon > secretMin
    return colon > 0 && isLong ? hashCredentials(value) : null
  },
  proves({ headers }, hash) {
    const header = headers.authorization ?? ''
    const [, encoded] = header.length > headerCharactersMax ? [] : (/^basic +(\S+)$/i.exec(header) ?? [])
    if (encoded === undefined) return false
    return timingSafeEqual(hashCredentials(Buffer.from(encoded, 'base64').toString()), hash)
  },
}
