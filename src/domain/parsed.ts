/**
 * What a parser answers: the typed value, or every fault it found. Text from outside stays
 * `unknown` until it has been through one of these.
 */
import type { Issue } from './request/rejection.ts'

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] }

export const parsed = <T>(value: T): Parsed<T> => ({ ok: true, value })

export const refused = (...issues: Issue[]): Parsed<never> => ({ ok: false, issues })
