/**
 * Lists of large tables, newest first, one page at a time. Each step reads at most `scanMax` rows, so that no list takes
 * long, whatever its filters are: if few rows match, a page holds few items and says where to go on.
 */
import { scanMax } from './bounds.ts'

type Row = Readonly<Record<string, unknown>>

export type Filter = readonly [column: string, value: string | number]

/** A list of the rows of `table`, by falling `id`. */
export type Scan = {
  readonly table: string
  readonly id: string
  /** Filters for which there is an index. Every row that is read has these values. */
  readonly indexed: readonly Filter[]
  /** A condition of a partial index. */
  readonly condition?: string
  /** Filters that are applied to the rows that are read. */
  readonly filters: readonly Filter[]
  /** Only rows with a smaller id. */
  readonly before: string | null
  /** Only rows with this id or a greater one. */
  readonly floor: string | null
  readonly limit: number
}

export type Statement = { readonly text: string; readonly values: readonly (string | number)[] }

/** The statement for a page, and the one for the id at which its step ended; `mark` writes the nth placeholder, from 1. */
export function scanStatements(
  scan: Scan,
  mark: (n: number) => string,
): { readonly rows: Statement; readonly last: Statement } {
  const { table, id, indexed, condition, filters, before, floor, limit } = scan
  const values: (string | number)[] = []
  const bind = (value: string | number): string => mark(values.push(value))
  const terms = indexed.map(([column, value]) => `${column} = ${bind(value)}`)
  if (condition !== undefined) terms.push(condition)
  if (before !== null) terms.push(`${id} < ${bind(before)}`)
  if (floor !== null) terms.push(`${id} >= ${bind(floor)}`)
  const where = terms.length === 0 ? '' : `where ${terms.join(' and ')}`
  const last = {
    text: `select ${id} from ${table} ${where} order by ${id} desc limit 1 offset ${scanMax - 1}`,
    values: [...values],
  }
  const step = `select * from ${table} ${where} order by ${id} desc limit ${scanMax}`
  const matching = filters.map(([column, value]) => `${column} = ${bind(value)}`)
  const chosen = matching.length === 0 ? '' : `where ${matching.join(' and ')}`
  const text = `select * from (${step}) step ${chosen} order by ${id} desc limit ${bind(limit)}`
  return { rows: { text, values }, last }
}

/** The rows of one step, and where it ended: every row from `end` on has been read; null: the whole table. */
export type Step = { readonly rows: readonly Row[]; readonly end: string | null }

/** Whether the end of a step that found `rows` has to be asked for. */
export const isEndUnknown = ({ filters, limit }: Scan, rows: readonly Row[]): boolean =>
  rows.length < limit && filters.length > 0

/** @param last the row at which the step ended, if that was asked for */
export function stepOf({ id, limit }: Scan, rows: readonly Row[], last: Row | undefined): Step {
  const end = rows.length === limit ? rows.at(-1) : last
  return { rows, end: (end?.[id] ?? null) as string | null }
}

/** One page of the steps of several tables. `items` are sorted, newest first, without duplicates. */
export function cutPage<Item extends { readonly id: string }>(
  items: readonly Item[],
  ends: readonly (string | null)[],
  limit: number,
): { readonly items: readonly Item[]; readonly next: Item['id'] | null } {
  const end = ends.reduce<string>((most, each) => (each !== null && each > most ? each : most), '')
  const known = items.filter(({ id }) => id >= end)
  const page = known.slice(0, limit)
  if (known.length > limit) return { items: page, next: page.at(-1)?.id ?? null }
  return { items: page, next: end === '' ? null : end }
}
