/**
 * What goes over the wire (spec 2.1, 2.2), as types: one of four emails. The service judges; the
 * types only keep out what it would refuse for sure, such as an invitation without its organisation.
 */
import type { PosternError } from './postern-error.ts'

export type EmailType = 'magic_link' | 'email_verification' | 'password_reset' | 'organisation_invite'

type Common = {
  /** The recipient: one bare address. */
  readonly to: string
  /** The link, whose query is exactly one parameter named `token`. */
  readonly url: string | URL
  /** When the link ends; as text, ISO 8601 with time and zone. */
  readonly expiresAt: Date | string
}

/** One authentication email to one recipient. */
export type Email =
  | (Common & { readonly type: Exclude<EmailType, 'organisation_invite'> })
  | (Common & {
      readonly type: 'organisation_invite'
      readonly organisationName: string
      /** Display name or address of whoever invites. */
      readonly inviterName?: string | null | undefined
    })

/** What was queued. */
export type Sent = {
  /** `em_…`, the name under which the operator finds the email; null where the answer gave none. */
  readonly emailId: string | null
  /** True where the service had already queued this very email, under the same idempotency key. */
  readonly replayed: boolean
}

/** What `safeSend` answers: the email as it was queued, or why it was not. */
export type SendOutcome =
  | ({ readonly ok: true } & Sent)
  | { readonly ok: false; readonly error: PosternError }

export type SendOptions = {
  /** Gives up early. What the service has already taken is sent nevertheless. */
  readonly signal?: AbortSignal | undefined
  /**
   * 1 to 255 visible ASCII characters; random unless given. Calls that share a key within 24 hours
   * queue one email, so derive it from what makes the email unique, if your own call may be repeated.
   */
  readonly idempotencyKey?: string | undefined
}

/** Whatever sends: a `Postern`, or a stand-in for it in tests. */
export type Sender = {
  send(email: Email, options?: SendOptions): Promise<Sent>
}
