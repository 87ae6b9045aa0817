/** A line of the log, before it is written. */

export type Fields = Readonly<Record<string, unknown>>

export type Line = {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly text: string
  readonly fields: Fields | (() => Fields)
  /** Lines with the same kind are bounded together. */
  readonly kind?: string
}
