/**
 * The one error of this package. Its texts are for logs: no error holds the delivery key, the link,
 * its token or the recipient, nor a `cause` that might.
 */

/** Why an email was not queued: the service's codes first, then those of the client itself. */
export type PosternErrorCode =
  | 'invalid_body'
  | 'invalid_url'
  | 'invalid_hosted_link_config'
  | 'invalid_key'
  | 'url_not_allowed'
  | 'key_rate_limited'
  | 'recipient_rate_limited'
  | 'daily_limit_reached'
  | 'queue_full'
  | 'queue_unavailable'
  /** The options of the client or of an adapter are incomplete or contradictory. */
  | 'invalid_config'
  /** An email of the auth library that Postern has no type for. */
  | 'unsupported_email'
  /** No answer: refused, reset, or no such host. */
  | 'network_error'
  /** No answer in time. */
  | 'timeout'
  /** The caller's signal. */
  | 'aborted'
  /** An answer, but not one of Postern's: a proxy, or a wrong `baseUrl`. */
  | 'unexpected_response'

/** One fault of the email: which field, a stable code, and what to do. */
export type Issue = { readonly field: string; readonly code: string; readonly message: string }

type Details = {
  readonly status?: number | undefined
  readonly retryAfterMs?: number | undefined
  readonly requestId?: string | undefined
  readonly issues?: readonly Issue[] | undefined
}

export class PosternError extends Error {
  override readonly name = 'PosternError'
  /** A code this version does not know is passed on as it came. */
  readonly code: PosternErrorCode | (string & {})
  /** The HTTP status, where there was an answer. */
  readonly status: number | undefined
  /** When the service will take the email, in milliseconds from the answer. */
  readonly retryAfterMs: number | undefined
  /** `req_…`: what the operator finds in the log. */
  readonly requestId: string | undefined
  /** Every fault found; only with a 400. */
  readonly issues: readonly Issue[]

  constructor(code: PosternErrorCode | (string & {}), message: string, details: Details = {}) {
    super(message)
    this.code = code
    this.status = details.status
    this.retryAfterMs = details.retryAfterMs
    this.requestId = details.requestId
    this.issues = details.issues ?? []
  }
}
