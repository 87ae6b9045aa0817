/**
 * The request (spec 2.1, 2.2) as types: one of four emails. The service validates; the types exclude
 * only what it always refuses, such as an invitation without its organisation.
 */
import type { PosternError } from './postern-error.ts'

export type EmailType = 'magic_link' | 'email_verification' | 'password_reset' | 'organisation_invite'

type Common = {
  /** The recipient: one bare address. */
  readonly to: string
  /** The link, whose query is exactly one parameter named `token`. */
  readonly url: string | URL
  /** When the link expires. Text: ISO 8601 with time and zone. */
  readonly expiresAt: Date | string
  /**
   * The reader's language: a tag such as `pt-BR`, or a list of them in the form of Accept-Language. Never a
   * fault: without one that Postern has, the email is in the app's own language.
   */
  readonly locale?: string | null | undefined
}

/** One authentication email to one recipient. */
export type Email =
  | (Common & {
      readonly type: Exclude<EmailType, 'organisation_invite'>
      /**
       * A one-time code to show beside the link: 4 to 10 digits, or 4 to 12 characters: letters and digits
       * with single hyphens between them, at least one letter. Shown only if the app's settings allow codes.
       */
      readonly code?: string | null | undefined
    })
  | (Common & {
      readonly type: 'organisation_invite'
      readonly organisationName: string
      /** Display name or address of the inviter. */
      readonly inviterName?: string | null | undefined
    })

/** A queued email. */
export type Sent = {
  /** `em_…`, for `postern email show`; null if the answer did not include it. */
  readonly emailId: string | null
  /** True if the service had already queued this email under the same idempotency key. */
  readonly replayed: boolean
  /** True if the email does not show its code, because the app's settings do not allow codes. */
  readonly codeIgnored: boolean
}

/** The result of `safeSend`: the queued email, or the error. */
export type SendOutcome = ({ readonly ok: true } & Sent) | { readonly ok: false; readonly error: PosternError }

export type SendOptions = {
  /** Aborts the call. An email already accepted is still sent. */
  readonly signal?: AbortSignal | undefined
  /**
   * 1 to 255 visible ASCII characters; random by default. Calls that share a key within 24 hours queue
   * one email. If your own call may be repeated, derive it from what makes the email unique.
   */
  readonly idempotencyKey?: string | undefined
}

/** A `Postern`, or a replacement for it in tests. */
export type Sender = {
  send(email: Email, options?: SendOptions): Promise<Sent>
}
