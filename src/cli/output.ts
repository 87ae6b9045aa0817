/**
 * The output of commands: with `--json` exactly one JSON document, otherwise text for people. Errors go
 * to standard error and say what is wrong and what to do.
 */
import { describeDuration } from '../domain/duration.ts'
import type { Result } from '../management/result.ts'

/** The command was refused or failed. Its text is for the person who gave it. Exit code 1. */
export class CommandFailed extends Error {
  override name = 'CommandFailed'
}

/** The command line is wrong. Exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

export type Output = {
  readonly json: boolean
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

/** The value of a result. A refusal becomes the failure of the command. */
export function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value
  throw new CommandFailed(result.message)
}

type Cell = string | number | null

/** Prints one JSON document, or the text that `show` makes. */
export function print(output: Output, document: unknown, show: () => string): void {
  output.out(output.json ? JSON.stringify(document, null, 2) : show())
}

/** Columns as wide as their content. Columns of numbers are right-aligned. */
export function table(heads: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => row.map((cell) => (cell === null ? '-' : String(cell))))
  const widths = heads.map((head, column) =>
    Math.max(head.length, ...texts.map((row) => (row[column] ?? '').length)),
  )
  const right = heads.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'),
  )
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        right[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  return [line(heads), ...texts.map(line)].join('\n')
}

/** One record as lines of name and value. Absent values are left out. */
export function record(entries: readonly (readonly [string, Cell | undefined])[]): string {
  const present = entries.filter(([, value]) => value !== undefined && value !== null && value !== '')
  const width = Math.max(...present.map(([name]) => name.length))
  return present.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n')
}

/** A date and time for people: to the second, in UTC. */
export const formatTime = (ms: number | null): string | null =>
  ms === null ? null : `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`

/** The same, with how far away it is: `2026-11-21 22:26:40Z (9 s ago)`. */
export function formatTimeAndAge(ms: number | null, nowMs: number): string | null {
  if (ms === null) return null
  const distance = describeDuration(Math.abs(nowMs - ms))
  return `${formatTime(ms)} (${ms > nowMs ? `in ${distance}` : `${distance} ago`})`
}
