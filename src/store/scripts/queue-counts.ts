/** Counts of the queue, and of what became of emails: they read indexes and not the sealed content. */

import { firstTestSide, isTestSide } from '../../domain/app/test-side.ts'
import { queueAgesMs, reportedDays, scanMax } from '../../domain/bounds.ts'
import type { LiveState } from '../../domain/delivery/states.ts'
import { dayMs } from '../../domain/duration.ts'
import { type AppId, idFloor } from '../../domain/id.ts'
import type { QueueGauge, QueueMeasures, QueueSummary, UsageByApp, UsageDay } from '../operator-store.ts'
import { queueParts } from '../shared/queue-parts.ts'
import type { Row } from '../shared/rows.ts'
import type { Script, ScriptContext, Statement } from './script.ts'

function* readQueueGauge({ prefix }: ScriptContext): Script<QueueGauge> {
  const text = `select (select cast(sum(count) as bigint) from ${prefix}queue_depth) as depth,
    (select min(accepted_at) from (select accepted_at, app_id from ${prefix}queue order by email_id limit ${scanMax}) first
      where app_id < '${firstTestSide}') as oldest,
    (select min(expires_at) from ${prefix}queue) as expiry`
  const [row] = yield { text, values: [] }
  return {
    depth: Number(row?.depth),
    oldestAcceptedAt: (row?.oldest ?? null) as number | null,
    firstExpiresAt: (row?.expiry ?? null) as number | null,
  }
}

function* summariseQueue(context: ScriptContext): Script<QueueSummary> {
  const { prefix } = context
  const counts = yield countStatement(context)
  const [next] = yield {
    text: `select min(due_at) as due_at from ${prefix}queue where state = 'deferred'`,
    values: [],
  }
  return {
    ...(yield* readQueueGauge(context)),
    nextAttemptAt: (next?.due_at ?? null) as number | null,
    ...toQueueCounts(counts),
    late: yield* findLate(context),
  }
}

/** Everything of `QueueMeasures` but the disk. */
function* measureQueue(context: ScriptContext): Script<Omit<QueueMeasures, 'diskFreeBytes'>> {
  const gauge = yield* readQueueGauge(context)
  const [row] = yield { text: measureText(context.prefix), values: [] }
  return { ...gauge, states: toStates(row, gauge.depth), late: yield* findLate(context) }
}

function* readUsage({ prefix }: ScriptContext, app: AppId): Script<UsageDay[]> {
  const rows = yield {
    text: `select day, event, cast(sum(count) as bigint) as count from ${prefix}usage_day
      where app_id = $1 group by day, event order by day desc, event`,
    values: [app],
  }
  const days = new Map<number, Record<string, number>>()
  for (const row of rows) {
    const counts = days.get(row.day as number) ?? {}
    counts[row.event as string] = row.count as number
    days.set(row.day as number, counts)
  }
  return [...days].map(([day, counts]) => ({
    day: new Date(day * dayMs).toISOString().slice(0, 10),
    counts,
  }))
}

function* readUsageToday(context: ScriptContext, apps: readonly AppId[] | null): Script<UsageByApp> {
  const { nowMs, prefix } = context
  const scope = whereApps(context, apps)
  const rows = yield {
    text: `select app_id, event, cast(sum(count) as bigint) as count from ${prefix}usage_day
      where day = $1 ${scope.where('$2')} group by app_id, event`,
    values: [Math.floor(nowMs / dayMs), ...scope.values],
  }
  return toUsageByApp(rows)
}

/** Limits a query to some apps, so that it does not read the rows of others. */
const whereApps = ({ dialect }: ScriptContext, apps: readonly AppId[] | null) => ({
  where: (placeholder: string) => (apps === null ? '' : `and app_id ${dialect.isIn(dialect.elements(placeholder))}`),
  values: apps === null ? [] : [JSON.stringify(apps)],
})

/** The days stand in a list, because SQLite reads the whole table for a range of them. */
function* readReportedUsage(context: ScriptContext, apps: readonly AppId[] | null): Script<UsageByApp> {
  const { nowMs, prefix } = context
  const scope = whereApps(context, apps)
  const today = Math.floor(nowMs / dayMs)
  const days = Array.from({ length: reportedDays }, (_, ago) => today - ago)
  const rows = yield {
    text: `select app_id, event, cast(sum(count) as bigint) as count from ${prefix}usage_day
      where day in (${days.map((_, n) => `$${n + 1}`).join(', ')})
        and event in ('delivered', 'bounced', 'complained') ${scope.where(`$${days.length + 1}`)}
      group by app_id, event`,
    values: [...days, ...scope.values],
  }
  return toUsageByApp(rows)
}

/** Mail of test keys is counted nowhere but in the depth of the queue. */
const isReal = (row: Row): boolean => !isTestSide(row.app_id as AppId)

function toUsageByApp(rows: readonly Row[]): UsageByApp {
  const apps = new Map<AppId, Record<string, number>>()
  for (const { app_id, event, count } of rows.filter(isReal)) {
    const counts = apps.get(app_id as AppId) ?? {}
    counts[event as string] = count as number
    apps.set(app_id as AppId, counts)
  }
  return apps
}

/** From the rows of `countStatement`, of which several may be of one app and state. */
function toQueueCounts(rows: readonly Row[]): Pick<QueueSummary, 'counts' | 'ages'> {
  const counts = new Map<string, { app: AppId; state: LiveState; count: number }>()
  const ages = new Map<AppId, readonly number[]>()
  for (const row of rows.filter(isReal)) {
    const [app, state, count] = [row.app_id as AppId, row.state as LiveState, row.count as number]
    const name = `${app} ${state}`
    counts.set(name, { app, state, count: (counts.get(name)?.count ?? 0) + count })
    const atMost = [...queueAgesMs.map((_, age) => row[younger(age)] as number), count]
    const ofApp = ages.get(app)
    ages.set(
      app,
      atMost.map((sum, age) => (ofApp?.[age] ?? 0) + sum - (atMost[age - 1] ?? 0)),
    )
  }
  return {
    counts: [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry),
    ages: [...ages].map(([app, perAge]) => ({ app, counts: perAge })),
  }
}

/** The column that counts the emails younger than `queueAgesMs[age]`. */
const younger = (age: number): string => `younger_${age}`

const states: Readonly<Record<keyof typeof queueParts, LiveState>> = {
  ready: 'queued',
  suspect: 'queued',
  deferred: 'deferred',
  sending: 'sending',
}

/**
 * Counts every email, by app, and those of them that are younger than each of `queueAgesMs`. The age is read
 * from the id, which the indexes hold; in the order of the index of ready mail, so that counting needs no
 * sorting.
 */
function countStatement({ nowMs, prefix }: ScriptContext): Statement {
  const ages = queueAgesMs.map((_, age) => `count(*) filter (where email_id >= $${age + 1}) as ${younger(age)}`)
  const texts = Object.entries(queueParts).map(
    ([name, where]) =>
      `select app_id, '${states[name as keyof typeof states]}' as state, count(*) as count, ${ages.join(', ')}
       from ${prefix}queue where ${where} group by app_id`,
  )
  return { text: texts.join(' union all '), values: queueAgesMs.map((age) => idFloor('em', nowMs - age)) }
}

/** Ready emails of an app that are looked at: the first may have become due later than those behind it. */
const readyPerApp = 10

/**
 * The apps whose mail has wanted an attempt since some time: of the mail that is ready, the first emails of
 * each app, found by a loose scan of `queue_ready`; the suspects; deferred mail that found no relay,
 * or that lost its worker (its `due_at` was moved, its `wanted_at` was not); and deferred mail
 * that nobody has claimed although it is due.
 */
function* findLate({ dialect, nowMs, prefix }: ScriptContext): Script<QueueSummary['late']> {
  const queue = `${prefix}queue`
  const ready = `${queue} where ${queueParts.ready}`
  const waits = `${queueParts.deferred} and missing_key is null`
  const isActive = `app_id ${dialect.isIn(`select app_id from ${prefix}app where status = 'active' and app_id < '${firstTestSide}'`)}`
  const waiting = (where: string, order: string) =>
    `select * from (select app_id, wanted_at from ${queue}
       where ${where} and ${isActive} order by ${order} limit ${scanMax}) waiting`
  const text = `with recursive ready as (
      select (select min(app_id) from ${ready}) as app_id union all
      select (select min(app_id) from ${ready} and app_id > ready.app_id) from ready where ready.app_id is not null
    ), wanting as (
      select app_id, (select min(wanted_at) from
          (select wanted_at from ${ready} and app_id = r.app_id order by email_id limit ${readyPerApp}) first) as wanted_at
        from ready r where ${isActive}
      union all ${waiting(queueParts.suspect, 'email_id')}
      union all ${waiting(`${waits} and wanted_at < due_at and wanted_at <= $1`, 'wanted_at')}
      union all ${waiting(`${waits} and due_at <= $1`, 'due_at')}
    )
    select app_id, min(wanted_at) as since from wanting where wanted_at <= $1 group by app_id order by 1`
  const rows = yield { text, values: [nowMs] }
  return rows.map((row) => ({ app: row.app_id as AppId, since: row.since as number }))
}

/** The mail of disabled apps, by state. */
const heldText = (prefix: string, where: string): string =>
  `(select count(*) from ${prefix}queue where ${where}
     and app_id in (select app_id from ${prefix}app where status <> 'active' and app_id < '${firstTestSide}'))`

/** One row of counts: of the states that have an index of their own, and of the mail that is held. */
const measureText = (prefix: string): string => {
  const { ready, suspect, deferred, sending } = queueParts
  const counted = (where: string, isOf = '<') =>
    `(select count(*) from ${prefix}queue where ${where} and app_id ${isOf} '${firstTestSide}')`
  const tests = Object.values(queueParts).map((where) => counted(where, '>='))
  return `select ${tests.join(' + ')} as tests, ${counted(deferred)} as deferred, ${counted(sending)} as sending,
    ${heldText(prefix, ready)} + ${heldText(prefix, suspect)} as held_queued,
    ${heldText(prefix, deferred)} as held_deferred`
}

/** From a row of `measureText`. */
function toStates(row: Row | undefined, depth: number): QueueMeasures['states'] {
  const {
    tests = 0,
    deferred = 0,
    sending = 0,
    held_queued = 0,
    held_deferred = 0,
  } = (row ?? {}) as Record<string, number>
  const held = held_queued + held_deferred
  // The depth is read before or after the counts, so the difference may be negative for a moment.
  return {
    queued: Math.max(0, depth - tests - deferred - sending - held_queued),
    sending,
    deferred: deferred - held_deferred,
    held,
  }
}

export const queueReads = {
  readQueueGauge,
  summariseQueue,
  measureQueue,
  readUsage,
  readUsageToday,
  readReportedUsage,
}
