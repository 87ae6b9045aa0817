/**
 * The output of commands: with `--json` exactly one JSON document, otherwise text for people. Errors go
 * to standard error and say what is wrong and what to do.
 */
import { splitCharacters } from '../domain/characters.ts'
import { escapeControls, toPrintable, toPrintableLine } from '../domain/controls.ts'
import { describeDuration, describeShortTime } from '../domain/duration.ts'
import { shortenId } from '../domain/id.ts'
import type { Finding } from '../store/store.ts'

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

type Cell = string | number | null

/** The one way out. A terminal shows what is written here, and obeys none of it. */
export const newOutput = ({ json, out, err }: Output): Output => ({
  json,
  out: (text) => out(toPrintable(text)),
  err: (text) => err(toPrintable(text)),
})

/** Prints one JSON document, or the text that `show` makes. */
export function print(output: Output, document: unknown, show: () => string): void {
  output.out(output.json ? toJson(document) : show())
}

const toJson = (document: unknown): string => escapeControls(JSON.stringify(document, null, 2), (hex) => `\\u${hex}`)

/** A terminal of a laptop beside an editor. */
const tableWidthMax = 100
/** A longer word may be broken: ids and times are shorter. */
const wordMax = 24
const gap = '  '
/** `2026-11-21 22:26:40Z` is one word. */
const dateSpace = /(?<=\d{4}-\d\d-\d\d) (?=\d\d:\d\d)/g

/**
 * Columns as wide as their content; if the table would be too wide, the widest ones are wrapped. Columns of
 * numbers are right-aligned, and ids are shortened: `shortenId`.
 */
export function table(heads: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => row.map((cell) => (cell === null ? '-' : shortenId(toPrintableLine(String(cell))))))
  const columns = heads.map((head, column) => [head, ...texts.map((row) => row[column] ?? '')])
  const widths = fitColumns(columns)
  const right = heads.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'))
  return [heads, ...texts]
    .flatMap((cells) => {
      const wrapped = cells.map((cell, column) => wrap(cell, widths[column] ?? 0))
      return Array.from({ length: Math.max(...wrapped.map((lines) => lines.length)) }, (_, line) =>
        wrapped
          .map((lines, column) => {
            const [text, width] = [lines[line] ?? '', widths[column] ?? 0]
            return right[column] ? `${spaces(text, width)}${text}` : `${text}${spaces(text, width)}`
          })
          .join(gap)
          .trimEnd(),
      )
    })
    .join('\n')
}

function fitColumns(columns: readonly (readonly string[])[]): readonly number[] {
  const widths = columns.map((texts) => Math.max(...texts.map(widthOf)))
  const least = columns.map((texts) => Math.min(wordMax, longestWord(texts)))
  const slack = (column: number) => (widths[column] ?? 0) - (least[column] ?? 0)
  const total = () => widths.reduce((sum, width) => sum + width, gap.length * (widths.length - 1))
  while (total() > tableWidthMax) {
    const widest = widths.reduce((best, _, column) => (slack(column) > slack(best) ? column : best), 0)
    if (slack(widest) <= 0) break
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}

const longestWord = (texts: readonly string[]): number =>
  Math.max(...texts.flatMap((text) => text.replace(dateSpace, '\u00a0').split(' ')).map(widthOf))

const wide =
  /[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u

const columnsOf = (character: string): number => (wide.test(character) ? 2 : 1)

/** In columns of a terminal. */
const widthOf = (text: string): number =>
  /^[ -~]*$/.test(text) ? text.length : splitCharacters(text).reduce((sum, one) => sum + columnsOf(one), 0)

/** The longest beginning that is not wider, and one character at least. */
function cut(text: string, width: number): string {
  let [begin, columns] = ['', 0]
  for (const next of splitCharacters(text)) {
    columns += columnsOf(next)
    if (begin !== '' && columns > width) break
    begin += next
  }
  return begin
}

const spaces = (text: string, width: number): string => ' '.repeat(Math.max(0, width - widthOf(text)))

/** Breaks at spaces; a word that is too long, at an underscore if it can. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let rest = text.replace(dateSpace, '\u00a0')
  while (widthOf(rest) > width) {
    const fits = cut(rest, width)
    const space = rest.lastIndexOf(' ', fits.length)
    const at = space > 0 ? space : fits.lastIndexOf('_') + 1 || fits.length
    lines.push(rest.slice(0, at).trimEnd())
    rest = rest.slice(at).trimStart()
  }
  return [...lines, rest].map((line) => line.replaceAll('\u00a0', ' '))
}

/** By its head, the cell of an item. */
export type Columns<Item> = Readonly<Record<string, (item: Item) => Cell>>

/** A list of things as a table. */
export const listing = <Item>(items: readonly Item[], none: string, columns: Columns<Item>): string =>
  items.length === 0
    ? none
    : table(
        Object.keys(columns),
        items.map((item) => Object.values(columns).map((cell) => cell(item))),
      )

export const describeFindings = (findings: readonly Pick<Finding, 'check' | 'detail' | 'ok'>[]): string =>
  findings.map(({ check, detail, ok }) => `${ok ? 'ok  ' : 'FAIL'}  ${check}: ${detail}`).join('\n')

/** One record as lines of name and value. Absent values are left out. */
export function record(entries: readonly (readonly [string, Cell | undefined])[]): string {
  const present = entries.filter(([, value]) => value !== undefined && value !== null && value !== '')
  const width = Math.max(...present.map(([name]) => name.length))
  return present.map(([name, value]) => `${name.padEnd(width)}  ${toPrintableLine(String(value))}`).join('\n')
}

/** A date and time for people, from ISO 8601 in UTC: to the second. */
export const formatTime = (time: string | null): string | null =>
  time === null ? null : `${time.slice(0, 19).replace('T', ' ')}Z`

/** The same, with how far away it is: `2026-11-21 22:26:40Z (9 s ago)`. */
export function formatTimeAndAge(time: string | null, nowMs = Date.now()): string | null {
  if (time === null) return null
  const ms = Date.parse(time)
  const distance = describeDuration(Math.abs(nowMs - ms))
  return `${formatTime(time)} (${ms > nowMs ? `in ${distance}` : `${distance} ago`})`
}

/** Milliseconds for people: `84 ms`, `2.5 s`. */
export const formatMs = (ms: number | null): string | null => (ms === null ? null : describeShortTime(ms))
