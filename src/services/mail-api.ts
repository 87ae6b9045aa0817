/** The description of a mail API: how to prove who asks, what to post, and how to read the answer. */
import type { Senders } from '../domain/app/envelope.ts'
import type { ApiError, FailureKind, HttpAnswer } from '../domain/delivery/http-answer.ts'
import type { Reference } from '../domain/delivery/reference.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'

/** One email to one recipient: the bytes of the message, and its parts for an API that composes it. */
export type ApiMessage = Senders & {
  readonly id: string
  readonly to: EmailAddress
  readonly reference: Reference
  readonly bytes: Buffer
  /** The time that the link has left. */
  readonly lifeLeftMs: number
  readonly describe: () => {
    readonly from: { readonly name: string; readonly address: string }
    readonly replyTo: string | null
    readonly subject: string
    readonly html: string
    readonly text: string
    /** Those that no other field holds. */
    readonly headers: readonly (readonly [name: string, value: string])[]
  }
}

export type ApiRequest = {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export type Signing = {
  /** The access token; empty for an API without OAuth. */
  readonly token: string
  readonly nowMs: number
}

export type MailApi = {
  /** A repeated request with the same key sends no second email. */
  readonly isIdempotent: boolean
  /** Taken out of answers before they are recorded. */
  readonly secrets: readonly string[]
  newRequest(message: ApiMessage, signing: Signing): ApiRequest
  /** A request that is refused as invalid if name, credentials and permission are right. It sends nothing. */
  newProbe(signing: Signing): ApiRequest
  /** The provider's id for an accepted email, maybe empty; null if the answer does not accept it. */
  readAcceptance(answer: HttpAnswer): string | null
  readError(answer: HttpAnswer): ApiError
  /** The meaning of codes whose status would say something else. */
  readonly kinds: Readonly<Record<string, FailureKind>>
}

export const toJson = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

export const json = { 'content-type': 'application/json' }

/** A part of an answer, as text; empty if it is not there. */
export function readText(value: unknown, ...path: readonly string[]): string {
  let part = value
  for (const name of path) {
    if (typeof part !== 'object' || part === null) return ''
    part = (part as Readonly<Record<string, unknown>>)[name]
  }
  return typeof part === 'string' || typeof part === 'number' ? String(part) : ''
}

/** A sender as the JSON of a mail API holds it: `"Acme, Inc." <auth@acme.com>`, in Unicode. */
export const formatMailbox = ({ name, address }: { readonly name: string; readonly address: string }): string =>
  `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`
