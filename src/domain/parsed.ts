/**
 * The result of a parser: the typed value, or every issue it found. Input from outside stays
 * `unknown` or text until one of these parsers has accepted it.
 */
import type { Issue } from './request/rejection.ts'

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] }

export const parsed = <T>(value: T): Parsed<T> => ({ ok: true, value })

export const refused = (...issues: Issue[]): Parsed<never> => ({ ok: false, issues })
