/**
 * The parts of `history` (002_history_days.sql): one for each day (UTC) of the ids in it, and the rest from
 * then on. Retention drops a part once all of it is old, which takes no longer for a million rows than for
 * one. Every row has a part, whatever the clocks say: the first has no beginning, and the rest has no end.
 */
import { keepDays, scanEveryMs } from '../../../domain/bounds.ts'
import { dayMs } from '../../../domain/duration.ts'
import { idFloor, readIdTime } from '../../../domain/id.ts'
import type { Finding } from '../../store.ts'
import type { Query } from '../engine/connection.ts'
import type { PostgresContext } from '../engine/context.ts'

/** Days of which no mail is there yet when they are cut, so that a cut that fails for a day does no harm. */
const daysAhead = 3
/** How long a change of the parts waits for others, with mail behind it. A backup reads for longer. */
const lockTimeout = '200ms'
const deadlineMs = 30_000
/** Looks at each row of the rest, beside the mail. There are many only at the first cut after an upgrade. */
const validateDeadlineMs = 600_000

type Part = { readonly name: string; readonly endMs: number; readonly isAttached: boolean }

const nameStart = 'history_until_'
const namePart = (endMs: number): string => nameStart + new Date(endMs).toISOString().slice(0, 10).replaceAll('-', '_')
const readEnd = (name: string): number => Date.parse(`${name.slice(nameStart.length).replaceAll('_', '-')}T00:00Z`)
const startOfDay = (ms: number): number => Math.floor(ms / dayMs) * dayMs
const literal = (ms: number): string => `'${idFloor('em', ms)}'`

/** Rows of emails that were accepted before this time are old. Whole days, so that whole parts are. */
export const oldHistoryMs = (nowMs: number): number => startOfDay(nowMs - keepDays * dayMs)

/** Cuts the days ahead, and drops the parts that are old. Looks as a day begins, and every ten minutes. */
export async function turnHistory(context: PostgresContext): Promise<void> {
  const { clock, historyTurn, maintenance, schema } = context
  const nowMs = clock.nowMs()
  const isSameDay = startOfDay(nowMs) === startOfDay(historyTurn.atMs)
  if (isSameDay && Math.abs(nowMs - historyTurn.atMs) < scanEveryMs) return
  historyTurn.atMs = nowMs
  const query: Query = (text, values = []) => maintenance.query(text, values, { deadlineMs })
  const parts = await readParts(query, schema)
  for (const { isAttached, name } of parts) if (!isAttached) await query(`drop table if exists ${schema}.${name}`)
  const attached = parts.filter(({ isAttached }) => isAttached)
  await cut(context, attached.at(-1), startOfDay(nowMs) + daysAhead * dayMs)
  for (const [n, part] of attached.entries()) {
    const next = attached[n + 1]
    if (next === undefined || part.endMs > oldHistoryMs(nowMs)) return
    await drop(context, part, next)
  }
}

/** In order of time. One that is not attached is left from a drop that did not end. */
async function readParts(query: Query, schema: string): Promise<Part[]> {
  const text = `select relname as name, exists (select from pg_inherits where inhrelid = c.oid) as attached
    from pg_class c where relnamespace = $1::regnamespace and relkind = 'r' and starts_with(relname, '${nameStart}')
    order by relname`
  const rows = await query<{ name: string; attached: boolean }>(text, [schema])
  return rows.map(({ attached, name }) => ({ name, endMs: readEnd(name), isAttached: attached }))
}

/** Cuts a part from the rest, which begins at the end of `last`, unless it begins late enough. */
async function cut(context: PostgresContext, last: Part | undefined, fromMs: number): Promise<void> {
  if (last !== undefined && last.endMs >= fromMs) return
  const { maintenance, schema } = context
  const newest = `select max(email_id) as id from ${schema}.history_rest`
  const [row] = await maintenance.query<{ id: string | null }>(newest, [], { deadlineMs })
  // A clock that was wrong may have made the newest id.
  const endMs = Math.max(fromMs, row?.id ? startOfDay(readIdTime(row.id)) + dayMs : 0)
  const [name, end] = [namePart(endMs), literal(endMs)]
  const begin = last === undefined ? null : literal(last.endMs)
  const isCurrent = (parts: readonly Part[]) => parts.at(-1)?.name === last?.name
  // With a valid constraint that says the same, the part is attached without a look at its rows.
  const isBound = await change(context, isCurrent, async (query) => {
    await query(`alter table ${schema}.history_rest drop constraint if exists part_bounds, add constraint part_bounds
      check (${begin === null ? '' : `email_id >= ${begin} and `}email_id < ${end}) not valid`)
  })
  if (!isBound) return
  const validate = `alter table ${schema}.history_rest validate constraint part_bounds`
  await maintenance.query(validate, [], { deadlineMs: validateDeadlineMs })
  await change(context, isCurrent, async (query) => {
    await query(`create table ${schema}.history_next (like ${schema}.history including all)`)
    await query(`alter table ${schema}.history detach partition ${schema}.history_rest`)
    await query(`alter table ${schema}.history_rest rename to ${name}`)
    await query(`alter table ${schema}.history_next rename to history_rest`)
    await attach(query, schema, { name, begin: begin ?? 'minvalue', end })
    await attach(query, schema, { name: 'history_rest', begin: end, end: 'maxvalue' })
  })
}

/** The next part has no beginning from then on. The table goes afterwards, while nothing waits for it. */
async function drop(context: PostgresContext, first: Part, next: Part): Promise<void> {
  const { maintenance, schema } = context
  const isCurrent = (parts: readonly Part[]) => parts.find(({ isAttached }) => isAttached)?.name === first.name
  const isDetached = await change(context, isCurrent, async (query) => {
    await query(`alter table ${schema}.history detach partition ${schema}.${first.name}`)
    await query(`alter table ${schema}.history detach partition ${schema}.${next.name}`)
    await attach(query, schema, { name: next.name, begin: 'minvalue', end: literal(next.endMs) })
    await query(`alter table ${schema}.${next.name} drop constraint if exists part_bounds`) // it had a beginning
  })
  if (isDetached) await maintenance.query(`drop table if exists ${schema}.${first.name}`, [], { deadlineMs })
}

type Bounds = { readonly name: string; readonly begin: string; readonly end: string }

const attach = (query: Query, schema: string, { begin, end, name }: Bounds) =>
  query(`alter table ${schema}.history attach partition ${schema}.${name} for values from (${begin}) to (${end})`)

/** In one transaction, unless another process has changed the parts. Returns whether it was made. */
const change = (
  { maintenance, schema }: PostgresContext,
  isCurrent: (parts: readonly Part[]) => boolean,
  work: (query: Query) => Promise<void>,
): Promise<boolean> =>
  maintenance.transaction(async (query) => {
    await query(`set local lock_timeout = '${lockTimeout}'`)
    await query("select pg_advisory_xact_lock(hashtext('postern history ' || $1))", [schema])
    if (!isCurrent(await readParts(query, schema))) return false
    await work(query)
    return true
  }, deadlineMs)

/** The finding of `postern doctor`. */
export async function examineHistory({ clock, operators, schema }: PostgresContext): Promise<Finding> {
  const parts = await readParts((text, values = []) => operators.query(text, values, { deadlineMs }), schema)
  return judgeHistory(parts.at(-1)?.endMs, clock.nowMs())
}

/** @param endMs where the last day ends that was divided from the rest */
export function judgeHistory(endMs: number | undefined, nowMs: number): Finding {
  const check = 'history'
  if (endMs === undefined) return { check, ok: true, detail: 'not yet divided into days: the first worker does that' }
  const until = new Date(endMs).toISOString().slice(0, 10)
  if (endMs > nowMs) return { check, ok: true, detail: `divided into days until ${until}` }
  const detail = `not divided into days since ${until}, so old records are deleted row by row: look for a transaction that has held the table "history" for days`
  return { check, ok: false, detail }
}
