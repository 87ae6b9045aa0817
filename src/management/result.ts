/** The result of an operator's command: its value, or why it was refused and what to do. */

export type FailureCode = 'not_found' | 'invalid' | 'taken' | 'conflict'

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string }

export const done = <T>(value: T): Result<T> => ({ ok: true, value })

export const refuse = (code: FailureCode, message: string): Result<never> => ({ ok: false, code, message })
