/**
 * The result of a parser: the typed value, or every issue it found. Input from outside stays
 * `unknown` or text until one of these parsers has accepted it.
 */

/** One fault of an input. `code` is stable; `message` says what is wrong and what to do. */
export type Issue = { readonly field: string; readonly code: string; readonly message: string }

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] }

export const parsed = <T>(value: T): Parsed<T> => ({ ok: true, value })

export const refused = (...issues: Issue[]): Parsed<never> => ({ ok: false, issues })

/** Refuses a field for one fault. */
export const refuser =
  (field: string) =>
  (code: string, message: string): Parsed<never> =>
    refused({ field, code, message })

/** The values that were accepted. */
export const valuesOf = <T>(results: readonly Parsed<T>[]): T[] =>
  results.flatMap((result) => (result.ok ? [result.value] : []))

/** The faults of those that were not. */
export const issuesOf = (results: readonly Parsed<unknown>[]): Issue[] =>
  results.flatMap((result) => (result.ok ? [] : result.issues))
