/**
 * What the commands print: with `--json` exactly one JSON document, else tables for people. Errors
 * say what is wrong and what to do, on standard error.
 */

/** The command was refused or failed; its text is for the person who gave it. Exit code 1. */
export class CommandFailed extends Error {
  override name = 'CommandFailed'
}

/** The command was given wrongly. Exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

export type Output = {
  readonly json: boolean
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

type Cell = string | number | null

/** One JSON document, or the text that `show` makes. */
export function print(output: Output, document: unknown, show: () => string): void {
  output.out(output.json ? JSON.stringify(document, null, 2) : show())
}

/** Columns as wide as they need be; numbers stand right. */
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

/** One record as `name  value` lines; absent values are left out. */
export function record(entries: readonly (readonly [string, Cell | undefined])[]): string {
  const present = entries.filter(([, value]) => value !== undefined && value !== null && value !== '')
  const width = Math.max(...present.map(([name]) => name.length))
  return present.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n')
}

export const iso = (ms: number): string => new Date(ms).toISOString()
export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : iso(ms))

/** For people: to the second, in UTC. */
export const moment = (ms: number | null): string | null =>
  ms === null ? null : `${iso(ms).slice(0, 19).replace('T', ' ')}Z`

/** A length of time as people say it: `3 s`, `12 min`, `5 h`, `9 d`. */
export function age(ms: number): string {
  const steps: [number, string][] = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ]
  const [size, unit] = steps.find(([step]) => ms >= 2 * step) ?? [1000, 's']
  return `${Math.max(0, Math.floor(ms / size))} ${unit}`
}
