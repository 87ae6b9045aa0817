/** Reads JSON of which nothing is known. */

export type JsonFields = Readonly<Record<string, unknown>>

/** Without fields for anything else than an object. */
export const toFields = (value: unknown): JsonFields =>
  typeof value === 'object' && value !== null ? (value as JsonFields) : {}

/** No reply of a mail server is longer, and patterns see no more. */
const textMax = 1000

/** The beginning of a text, or a number as text; '' for anything else. */
export const toText = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, textMax) : ''
