/**
 * Every refusal that Postern answers with, in one table: code → status and public text (spec 7). Two are for
 * calls of auth servers alone.
 * A request's own faults stand in `issues`, the operator's diagnosis goes to the log. No text holds
 * a key, a token or a recipient.
 */
import type { LimitHit } from '../limit.ts'
import type { Issue } from '../parsed.ts'

export const refusals = {
  invalid_body: { status: 400, message: 'The request is not a valid email request; see issues.' },
  invalid_url: { status: 400, message: 'The link breaks the rules for links; see issues.' },
  invalid_hosted_link_config: {
    status: 400,
    message:
      'This email needs a hosted link, but the configuration of hosted links is incomplete or unsafe; see issues.',
  },
  invalid_key: {
    status: 401,
    message:
      'The delivery key is unknown here, revoked or expired, or its app is disabled. Was it created for another database? "postern key list APP" shows the keys of an app.',
  },
  address_not_allowed: { status: 401, message: 'The delivery key may not be used from this address.' },
  url_not_allowed: { status: 403, message: 'The link is not allowed for this app.' },
  unsupported_email: {
    status: 400,
    message: 'Postern has no email for this message of the auth server; see issues.',
  },
  notice_not_sent: {
    status: 200,
    message: 'The auth server reports something that has happened; Postern sends no email for it.',
  },
  key_rate_limited: { status: 429, message: 'Too many requests with this delivery key; slow down.' },
  recipient_rate_limited: {
    status: 429,
    message: 'Too many emails to this recipient; wait before the next one.',
  },
  daily_limit_reached: { status: 429, message: 'This app has sent as many emails as it may today (UTC).' },
  queue_full: { status: 503, message: 'The delivery queue is full; the email was not queued. Try again.' },
  queue_unavailable: {
    status: 503,
    message: 'The delivery queue is unavailable; the email may have been queued anyway.',
  },
} as const

export type RefusalCode = keyof typeof refusals

/** An expected refusal, as a value. `message` replaces the table's text. */
export type Rejection = {
  readonly code: RefusalCode
  readonly message?: string
  /** The command that would allow the request, or how to repeat it: for those who read its answer. */
  readonly advice?: string
  readonly issues?: readonly Issue[]
  readonly limit?: LimitHit
  /** The part of the link that no entry of the allow-list has, for operators. */
  readonly differs?: 'scheme' | 'host' | 'port' | 'path' | null
  /** The scheme, host and port of the link, for operators. */
  readonly origin?: string
  /** The address of a client that may not use the key, for operators. */
  readonly address?: string
  /** The name of the recipient (`nameRecipient`), for operators. */
  readonly recipient?: string
}
