/**
 * The error class of this package, safe to log: no error contains the delivery key, the link, its
 * token or the recipient, nor a `cause` that might.
 */

/** Why an email was not queued: first the service's codes, then the client's. */
export type PosternErrorCode =
  | 'invalid_body'
  | 'invalid_url'
  | 'invalid_hosted_link_config'
  | 'invalid_key'
  | 'address_not_allowed'
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
  /** The email was queued, but without the code that it consists of: the app does not allow codes. */
  | 'code_not_shown'
  /** A request that is no message of Postern: its signature is not valid, or it is too old. */
  | 'invalid_webhook'
  /** No answer: refused, reset or no such host. */
  | 'network_error'
  /** No answer in time. */
  | 'timeout'
  /** The caller aborted. */
  | 'aborted'
  /** An answer, but not from Postern: a proxy, or a wrong `baseUrl`. */
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
  /** Codes unknown to this version are passed on as is. */
  readonly code: PosternErrorCode | (string & {})
  /** The HTTP status, if there was an answer. */
  readonly status: number | undefined
  /** Milliseconds from the answer until the service accepts the email. */
  readonly retryAfterMs: number | undefined
  /** `req_…`: identifies the request. */
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
