/**
 * The partitions of `history` (002_history_days.sql): one for each day (UTC) of the ids in it, between
 * `history_oldest`, which has no lower bound, and `history_rest`, which has no upper one. So every row has a
 * partition, whatever the clocks say. Retention drops a day, however many rows it has.
 */
import { keepDays, scanEveryMs } from '../../../domain/bounds.ts'
import { dayMs } from '../../../domain/duration.ts'
import { idFloor, readIdTime } from '../../../domain/id.ts'
import type { Finding } from '../../store.ts'
import type { Query } from '../engine/connection.ts'
import type { PostgresContext } from '../engine/context.ts'

/** Days are created before there is mail of them, so that a failure for a day or two does no harm. */
const daysAhead = 3
/**
 * If the rest has more rows, they are not moved to the new day: it becomes a partition as it is. It has as
 * many after an upgrade, and after a copy from SQLite.
 */
const movedMax = 10_000
/** Days of such a partition that are ahead: while it is being made, no row may be beyond its end. */
const longDaysAhead = 33
/** How long a change waits for each lock, with mail behind it. A backup holds one for longer. */
const lockTimeoutMs = 200
const deadlineMs = 30_000
/** Looks at each row of a long partition, beside the mail. */
const validateDeadlineMs = 600_000

/** A day, or a long partition. The first one has no lower bound if there is no `history_oldest` yet. */
type Partition = { readonly name: string; readonly endMs: number }

const shape = /^history_until_(\d{4})_(\d\d)_(\d\d)$/
const nameUntil = (endMs: number): string =>
  `history_until_${new Date(endMs).toISOString().slice(0, 10).replaceAll('-', '_')}`
const readEnd = (name: string): number => Date.parse(name.replace(shape, '$1-$2-$3T00:00Z'))
const startOfDay = (ms: number): number => Math.floor(ms / dayMs) * dayMs
const bound = (ms: number): string => `'${idFloor('em', ms)}'`

/** Partitions that end by then are old: the days that were over so long ago. */
const oldMs = (nowMs: number): number => startOfDay(nowMs - keepDays * dayMs)

/** Rows before this are deleted one by one. Usually their day is gone: there is half a day to drop it. */
export const oldRowsMs = (nowMs: number): number => oldMs(nowMs - dayMs / 2)

/** Creates the days ahead and drops old ones; looks every ten minutes. */
export async function maintainPartitions(context: PostgresContext): Promise<void> {
  const { clock, partitions, schema, maintenance } = context
  const nowMs = clock.nowMs()
  if (Math.abs(nowMs - partitions.checkedAtMs) < scanEveryMs) return
  partitions.checkedAtMs = nowMs
  const query: Query = (text, values = []) => maintenance.query(text, values, { deadlineMs })
  try {
    await createDays(context, query, startOfDay(nowMs) + daysAhead * dayMs)
  } finally {
    await dropOld(query, schema, oldMs(nowMs))
  }
}

/** The names of all partitions as an array, in their order, which is that of time. */
const namesText = (schema: string): string =>
  `select array_agg(relname::text order by relname) as names from pg_class join pg_inherits on inhrelid = oid
    where inhparent = '${schema}.history'::regclass`

async function readNames(query: Query, schema: string): Promise<readonly string[]> {
  const [row] = await query<{ names: string[] }>(namesText(schema))
  return row?.names ?? []
}

const toPartitions = (names: readonly string[]): Partition[] =>
  names.filter((name) => shape.test(name)).map((name) => ({ name, endMs: readEnd(name) }))

/** One day after the other, up to `untilMs`; a gap of many days becomes one partition. */
async function createDays(context: PostgresContext, query: Query, untilMs: number): Promise<void> {
  const { schema } = context
  const names = await readNames(query, schema)
  const last = toPartitions(names).at(-1)
  if (last !== undefined && last.endMs >= untilMs) return
  const begin = last === undefined ? 'minvalue' : bound(last.endMs)
  const rest = `${schema}.history_rest`
  const [counted] = await query<{ n: number; newest: string | null }>(
    `select (select count(*)::int from (select from ${rest} limit ${movedMax + 1}) few) as n, max(email_id) as newest from ${rest}`,
  )
  if (counted === undefined) return
  const begun = await findBegun(query, schema)
  if (counted.n > movedMax || begun !== undefined)
    return createLong(context, query, { names, begin, newest: counted.newest, untilMs, begun })
  const [day, end] = [`${schema}.${nameUntil(untilMs)}`, bound(untilMs)]
  await change(query, schema, names, [
    `create table ${day} (like ${schema}.history including all)`,
    `alter table ${schema}.history detach partition ${rest}`,
    `with moved as (delete from ${rest} where email_id < ${end} returning *) insert into ${day} (select * from moved)`, // alike by `like`
    attach(schema, day, begin, end),
    attach(schema, rest, end, 'maxvalue'),
  ])
}

type Long = {
  readonly names: readonly string[]
  readonly begin: string
  readonly newest: string | null
  readonly untilMs: number
  readonly begun: Begun | undefined
}

type Begun = { readonly name: string; readonly valid: boolean }

/** The constraint of a long partition that has not been made yet. */
async function findBegun(query: Query, schema: string): Promise<Begun | undefined> {
  const text = `select conname as name, convalidated as valid from pg_constraint
    where conrelid = '${schema}.history_rest'::regclass and contype = 'c'`
  return (await query<Begun>(text)).find(({ name }) => shape.test(name))
}

/**
 * Makes the rest a partition without copying it. A valid constraint that says the same as its bounds spares
 * PostgreSQL a look at each row while mail waits. Its name holds its end, and it is never replaced, so that
 * all processes mean the same one, also after a crash.
 */
async function createLong(
  { operators, schema }: PostgresContext,
  query: Query,
  { begin, begun: before, names, newest, untilMs }: Long,
): Promise<void> {
  const rest = `${schema}.history_rest`
  if (before === undefined) {
    // A clock that was wrong may have made the newest id.
    const afterNewest = newest === null ? 0 : startOfDay(readIdTime(newest)) + dayMs
    const endMs = Math.max(untilMs + longDaysAhead * dayMs, afterNewest)
    const lower = begin === 'minvalue' ? '' : `email_id >= ${begin} and `
    await change(query, schema, names, [
      `if not exists (select from pg_constraint where conrelid = '${rest}'::regclass and contype = 'c') then
        alter table ${rest} add constraint ${nameUntil(endMs)} check (${lower}email_id < ${bound(endMs)}) not valid;
      end if`,
    ])
  }
  const begun = before ?? (await findBegun(query, schema))
  if (begun === undefined) return
  const { name, valid } = begun
  if (!valid)
    await operators.query(`alter table ${rest} validate constraint ${name}`, [], { deadlineMs: validateDeadlineMs })
  const end = bound(readEnd(name))
  await change(query, schema, names, [
    `create table ${schema}.history_next (like ${schema}.history including all)`,
    `alter table ${schema}.history detach partition ${rest}`,
    `alter table ${rest} rename to ${name}`,
    attach(schema, `${schema}.${name}`, begin, end),
    `alter table ${schema}.${name} drop constraint ${name}`,
    `alter table ${schema}.history_next rename to history_rest`,
    attach(schema, rest, end, 'maxvalue'),
  ])
}

/** `history_oldest`, which is almost always empty, has room for late outcomes of its time. */
async function dropOld(query: Query, schema: string, beforeMs: number): Promise<void> {
  const oldest = `${schema}.history_oldest`
  for (;;) {
    const names = await readNames(query, schema)
    const [first] = toPartitions(names)
    if (first === undefined || first.endMs > beforeMs) return
    await change(query, schema, names, [
      `drop table ${schema}.${first.name}`,
      names.includes('history_oldest')
        ? `alter table ${schema}.history detach partition ${oldest}`
        : `create table ${oldest} (like ${schema}.history including all)`,
      attach(schema, oldest, 'minvalue', bound(first.endMs)),
    ])
  }
}

const attach = (schema: string, table: string, from: string, to: string): string =>
  `alter table ${schema}.history attach partition ${table} for values from (${from}) to (${to})`

/**
 * One transaction in one message, so that a process that stands still holds no lock. Does nothing if another
 * process has changed the partitions since their names were read.
 */
const change = (
  query: Query,
  schema: string,
  names: readonly string[],
  statements: readonly string[],
): Promise<unknown> =>
  query(`do $$ begin
    perform set_config('lock_timeout', '${lockTimeoutMs}', true);
    perform pg_advisory_xact_lock(hashtext('postern history ${schema}'));
    if (${namesText(schema)}) = '{${names.join()}}'::text[] then
      ${statements.join(';\n      ')};
    end if;
  end $$`)

/** The finding of `postern doctor`. */
export async function examinePartitions({ clock, operators, schema }: PostgresContext): Promise<Finding> {
  const query: Query = (text, values = []) => operators.query(text, values, { deadlineMs })
  const partitions = toPartitions(await readNames(query, schema))
  const [row] = await query<{ oldest: string | null }>(`select min(email_id) as oldest from ${schema}.history_rest`)
  return judgePartitions(partitions, row?.oldest ? readIdTime(row.oldest) : null, clock.nowMs())
}

/** @param restMs when the oldest email of the rest was accepted; null if it is empty */
export function judgePartitions(partitions: readonly Partition[], restMs: number | null, nowMs: number): Finding {
  const check = 'history'
  const ends = partitions.map(({ endMs }) => endMs)
  const [first, last] = [ends[0] ?? nowMs, ends.at(-1) ?? nowMs]
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  const advice =
    'the log of PostgreSQL says why: a transaction that reads the table for days, or a role that does not own it'
  if (ends.length === 0) return { check, ok: true, detail: 'no partitions yet: the first worker creates them' }
  if (first < oldMs(nowMs) - daysAhead * dayMs)
    return { check, ok: false, detail: `the partition until ${day(first)} has not been dropped; ${advice}` }
  if (restMs !== null && restMs < nowMs - dayMs)
    return { check, ok: false, detail: `no partition has been created since ${day(restMs)}; ${advice}` }
  if (last > nowMs + (daysAhead + longDaysAhead + 1) * dayMs)
    return { check, ok: false, detail: `one partition lasts until ${day(last)}, because of a clock that was wrong` }
  return { check, ok: true, detail: `partitions until ${day(last)}` }
}
