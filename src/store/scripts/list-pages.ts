/**
 * Lists of large tables, newest first, one page at a time. Each step reads at most `scanMax` rows, so that no
 * list takes long, whatever its filters are: if few rows match, a page holds few items and says where to go
 * on.
 */

import { firstTestSide, testSide } from '../../domain/app/test-side.ts'
import { scanMax } from '../../domain/bounds.ts'
import { type AppId, type IdKind, idFloor } from '../../domain/id.ts'
import type { Row } from '../shared/rows.ts'
import type { Script, Statement } from './script.ts'

/**
 * A list of values: one of them. `contains`: a part of the text, in any case. `above`, `below`: a greater
 * value, or a smaller one.
 */
export type Filter = readonly [
  column: string,
  value:
    | string
    | number
    | readonly string[]
    | { readonly contains: string }
    | { readonly above: string | number }
    | { readonly below: string | number },
]

/** The filters that a query has. */
export const present = (columns: Readonly<Record<string, Filter[1] | undefined>>): Filter[] =>
  Object.entries(columns).flatMap(([column, value]) => (value === undefined ? [] : [[column, value] as const]))

/** The filter of `app_id` by apps (null: all) and their side; a key or a recipient is found on either. */
export function listSides({
  apps,
  key,
  recipient,
  tests = false,
}: {
  readonly apps: readonly AppId[] | null
  readonly key?: string | undefined
  readonly recipient?: string | undefined
  readonly tests?: boolean | undefined
}): Filter[1] | undefined {
  const isAny = !tests && (key !== undefined || recipient !== undefined)
  if (apps === null) return isAny ? undefined : tests ? { above: firstTestSide } : { below: firstTestSide }
  return [...(tests ? [] : apps), ...(tests || isAny ? apps.map(testSide) : [])]
}

type Bind = (value: string | number) => string

export function toCondition([column, value]: Filter, bind: Bind): string {
  if (typeof value !== 'object') return `${column} = ${bind(value)}`
  if ('above' in value) return `${column} > ${bind(value.above)}`
  if ('below' in value) return `${column} < ${bind(value.below)}`
  if (!('contains' in value)) return value.length === 0 ? 'false' : `${column} in (${value.map(bind).join(', ')})`
  const part = value.contains.replace(/[\\%_]/g, '\\$&')
  return `lower(${column}) like lower(${bind(`%${part}%`)}) escape '\\'`
}

/** One row more than a page tells whether there are more; no step reads more than `scanMax`. */
export const oneMore = (limit: number): number => Math.min(limit + 1, scanMax)

/** A list of the rows of `table`, by falling `id`. */
export type Scan = {
  readonly table: string
  readonly id: string
  /** Filters for which there is an index. Every row that is read has these values. */
  readonly indexed: readonly Filter[]
  /** A condition of a partial index. */
  readonly condition?: string
  /** The condition holds for few rows, which have no index by `id`: all of them are read. */
  readonly isSmall?: boolean
  /** Filters that are applied to the rows that are read. */
  readonly filters: readonly Filter[]
  /** Only rows with a smaller id. */
  readonly before: string | null
  /** Only rows with this id or a greater one. */
  readonly floor: string | null
  readonly limit: number
}

type Range = {
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly before?: string | undefined
}

/** The ids of a time, and of a page that begins after `before`, which lies within that time. */
export const readRange = (kind: IdKind, { since, until, before }: Range): Pick<Scan, 'before' | 'floor'> => ({
  before: before ?? (until === undefined ? null : idFloor(kind, until)),
  floor: since === undefined ? null : idFloor(kind, since),
})

function conditions({ id, indexed, condition, before, floor }: Scan) {
  const values: (string | number)[] = []
  const bind: Bind = (value) => `$${values.push(value)}`
  const terms = indexed.map((filter) => toCondition(filter, bind))
  if (condition !== undefined) terms.push(condition)
  if (before !== null) terms.push(`${id} < ${bind(before)}`)
  if (floor !== null) terms.push(`${id} >= ${bind(floor)}`)
  return { where: terms.length === 0 ? '' : `where ${terms.join(' and ')}`, values, bind }
}

/**
 * The statement for the id at which a step ends; null for a list without filters, which ends with its page.
 * It runs before `rowsStatement`, which is bounded by its result. Rows deleted between the two
 * statements are missing from the page; no other row is skipped.
 */
function endStatement(scan: Scan): Statement | null {
  if (scan.filters.length === 0 || scan.isSmall) return null
  const { where, values } = conditions(scan)
  const { id, table } = scan
  return {
    text: `select ${id} from ${table} ${where} order by ${id} desc limit 1 offset ${scanMax - 1}`,
    values,
  }
}

/** Far more than a step reads; it keeps the planner from reading by another index, in another order. */
const readMax = 10 * scanMax

/** @param end the result of `endStatement`; null: to the end of the table */
function rowsStatement(scan: Scan, end: string | null): Statement {
  if (scan.isSmall) return smallStatement(scan)
  const { filters, id, limit, table } = scan
  const floor = end !== null && end > (scan.floor ?? '') ? end : scan.floor
  const { where, values, bind } = conditions({ ...scan, floor })
  if (filters.length === 0)
    return { text: `select * from ${table} ${where} order by ${id} desc limit ${bind(limit)}`, values }
  const step = `select * from ${table} ${where} order by ${id} desc limit ${readMax}`
  const matching = filters.map((filter) => toCondition(filter, bind)).join(' and ')
  return {
    text: `select * from (${step}) step where ${matching} order by ${id} desc limit ${bind(limit)}`,
    values,
  }
}

/** Materialized, or the planner would read the whole table for the sake of its order. */
function smallStatement({ condition = 'true', ...scan }: Scan): Statement {
  const all = { ...scan, indexed: [...scan.indexed, ...scan.filters] }
  const { where, values, bind } = conditions(all)
  const small = `with small as materialized (select * from ${scan.table} where ${condition})`
  return {
    text: `${small} select * from small ${where} order by ${scan.id} desc limit ${bind(scan.limit)}`,
    values,
  }
}

/** The rows of one step, and where it ended: every row from `end` on has been read; null: the whole table. */
export type Step = { readonly rows: readonly Row[]; readonly end: string | null }

export function* readStep(scan: Scan): Script<Step> {
  const { id, limit } = scan
  const ending = endStatement(scan)
  const [last] = ending === null ? [] : yield ending
  const end = (last?.[id] ?? null) as string | null
  const rows = yield rowsStatement(scan, end)
  return { rows, end: rows.length === limit ? (rows.at(-1)?.[id] as string) : end }
}

/** One page of the steps of several tables. `items` are sorted, newest first, without duplicates. */
export function cutPage<Item extends { readonly id: string }>(
  items: readonly Item[],
  ends: readonly (string | null)[],
  limit: number,
): { readonly items: readonly Item[]; readonly next: Item['id'] | null } {
  const end = ends.reduce<string>((last, next) => (next !== null && next > last ? next : last), '')
  const known = items.filter(({ id }) => id >= end)
  const page = known.slice(0, limit)
  if (known.length > limit) return { items: page, next: page.at(-1)?.id ?? null }
  return { items: page, next: end === '' ? null : end }
}
