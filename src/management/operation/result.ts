/** The result of an operation: its value, or what is wrong and what to do. */
import type { Issue } from '../../domain/parsed.ts'

/** The code of every error of an operation, with its HTTP status. */
export const errorStatus = {
  invalid_request: 400,
  cursor_mismatch: 400,
  invalid_token: 401,
  not_permitted: 403,
  sign_in_again: 403,
  not_found: 404,
  no_such_email: 404,
  name_taken: 409,
  record_missing: 409,
  too_many_keys: 409,
  too_many_suppressions: 409,
  app_active: 409,
  key_ended: 409,
  key_of_auth_hook: 409,
  email_finished: 409,
  email_sending: 409,
  email_not_deferred: 409,
  app_changing: 409,
  transport_in_use: 409,
  too_many_transports: 409,
  test_email_refused: 409,
  person_disabled: 409,
  no_console: 409,
  webhook_refused: 409,
  own_access: 409,
  slug_taken: 412,
  version_mismatch: 412,
  too_many_requests: 429,
  changed_too_often: 429,
  store_unavailable: 503,
} as const
export type ErrorCode = keyof typeof errorStatus

export type OperationError = {
  readonly code: ErrorCode
  readonly message: string
  readonly issues?: readonly Issue[]
  /** For `too_many_requests` and `store_unavailable`. */
  readonly retryAfterS?: number
}

export type Result<T> =
  /** `created`: the operation has made something that was not there. */
  | { readonly ok: true; readonly value: T; readonly created: boolean }
  | { readonly ok: false; readonly error: OperationError }

export const done = <T>(value: T, { created = false } = {}): Result<T> => ({ ok: true, value, created })

export const fail = (code: ErrorCode, message: string, issues?: readonly Issue[]): Result<never> => ({
  ok: false,
  error: { code, message, ...(issues && { issues }) },
})

/** More would only lengthen the answer. */
const issuesMax = 50

export const invalid = (issues: readonly Issue[]): Result<never> =>
  fail('invalid_request', 'The request is not valid; see issues.', issues.slice(0, issuesMax))
