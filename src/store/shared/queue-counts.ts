/**
 * Counts of the queue, with the statements of both engines: they read indexes and not the sealed content.
 */
import type { LiveState } from '../../domain/delivery/states.ts'
import { type AppId, idFloor } from '../../domain/id.ts'
import type { QueueMeasures, QueueSummary } from '../operator-store.ts'
import { queueAgesMs, scanMax } from './bounds.ts'
import { queueParts } from './queue-parts.ts'
import type { Row } from './records.ts'

/** From the rows of `countStatements`, of which several may be of one app and state. */
export function toQueueCounts(rows: readonly Row[]): Pick<QueueSummary, 'counts' | 'ages'> {
  const counts = new Map<string, { app: AppId; state: LiveState; count: number }>()
  const ages = new Map<AppId, readonly number[]>()
  for (const row of rows) {
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
    counts: [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each),
    ages: [...ages].map(([app, each]) => ({ app, counts: each })),
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

/** The ids that begin the ages of `queueAgesMs`: the values of `countStatements`. */
export const ageFloors = (nowMs: number): string[] => queueAgesMs.map((age) => idFloor('em', nowMs - age))

/**
 * Statements that together count every email, by app, and those of them that are younger than each age. The age is read from the id, which
 * the indexes hold; in the order of the index of ready mail, so that counting needs no sorting. `prefix` is that of the schema; `mark` writes
 * the placeholders of `ageFloors`.
 */
export const countStatements = (prefix: string, mark: (n: number) => string): string[] => {
  const ages = queueAgesMs.map(
    (_, age) => `count(*) filter (where email_id >= ${mark(age + 1)}) as ${younger(age)}`,
  )
  return Object.entries(queueParts).map(
    ([name, where]) =>
      `select app_id, '${states[name as keyof typeof states]}' as state, count(*) as count, ${ages.join(', ')}
       from ${prefix}queue where ${where} group by app_id`,
  )
}

/** Ready emails of an app that are looked at: the first may have become due later than those behind it. */
const readyPerApp = 10

/**
 * The apps whose mail has wanted an attempt since some time: of the mail that is ready, the first emails of each app, found by a loose
 * scan of `queue_ready`; the suspects; deferred mail that found no relay, whose key is missing or that lost its worker (its `due_at` was
 * moved, its `wanted_at` was not); and deferred mail that nobody has claimed although it is due. `prefix` is that of the schema; `isIn` makes the
 * condition that `app_id` is one of the selected apps.
 */
export const lateStatement = (prefix: string, now: string, isIn: (apps: string) => string): string => {
  const queue = `${prefix}queue`
  const ready = `${queue} where ${queueParts.ready}`
  const isActive = isIn(`select app_id from ${prefix}app where status = 'active'`)
  const waiting = (where: string, order: string) =>
    `select * from (select app_id, wanted_at from ${queue}
       where ${where} and ${isActive} order by ${order} limit ${scanMax}) waiting`
  return `with recursive ready(app_id) as (
      select (select min(app_id) from ${ready}) union all
      select (select min(app_id) from ${ready} and app_id > ready.app_id) from ready where ready.app_id is not null
    ), wanting(app_id, wanted_at) as (
      select app_id, (select min(wanted_at) from
          (select wanted_at from ${ready} and app_id = r.app_id order by email_id limit ${readyPerApp}) first)
        from ready r where ${isActive}
      union all ${waiting(queueParts.suspect, 'email_id')}
      union all ${waiting(`${queueParts.deferred} and wanted_at < due_at and wanted_at <= ${now}`, 'wanted_at')}
      union all ${waiting(`${queueParts.deferred} and due_at <= ${now}`, 'due_at')}
    )
    select app_id, min(wanted_at) as since from wanting where wanted_at <= ${now} group by app_id order by 1`
}

export const toLate = (rows: readonly Row[]): QueueSummary['late'] =>
  rows.map((row) => ({ app: row.app_id as AppId, since: row.since as number }))

/** The mail of disabled apps, by state. */
const heldStatement = (prefix: string, where: string): string =>
  `(select count(*) from ${prefix}queue where ${where}
     and app_id in (select app_id from ${prefix}app where status <> 'active'))`

/** One row of counts: of the states that have an index of their own, and of the mail that is held. */
export const measureStatement = (prefix: string): string => {
  const { ready, suspect, deferred, sending } = queueParts
  const counted = (where: string) => `(select count(*) from ${prefix}queue where ${where})`
  return `select ${counted(deferred)} as deferred, ${counted(sending)} as sending,
    ${heldStatement(prefix, ready)} + ${heldStatement(prefix, suspect)} as held_queued,
    ${heldStatement(prefix, deferred)} as held_deferred`
}

/** From a row of `measureStatement`. */
export function toStates(row: Row | undefined, depth: number): QueueMeasures['states'] {
  const {
    deferred = 0,
    sending = 0,
    held_queued = 0,
    held_deferred = 0,
  } = (row ?? {}) as Record<string, number>
  const held = held_queued + held_deferred
  // The depth is read before or after the counts, so the difference may be negative for a moment.
  return {
    queued: Math.max(0, depth - deferred - sending - held_queued),
    sending,
    deferred: deferred - held_deferred,
    held,
  }
}
