/**
 * Reads, on read-only connections. In WAL mode readers neither wait for the writer nor delay it. The
 * reads of `listReads` take longer the more data there is, so they run in the reader thread.
 */

import type { App } from '../../domain/app/app.ts'
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import type { AuditEntry } from '../../domain/audit.ts'
import { dayMs } from '../../domain/duration.ts'
import type { AppId, AuditId, EmailId, KeyId } from '../../domain/id.ts'
import type { TokenHash } from '../../domain/management-token.ts'
import type { NodeRecord } from '../../domain/node.ts'
import type { RefusedRequest } from '../../domain/request/refused-request.ts'
import type {
  ActivityQuery,
  AuditQuery,
  EmailQuery,
  EmailRecord,
  KeyRecord,
  Page,
  QueueMeasures,
  QueueSummary,
  TokenRecord,
  UsageDay,
} from '../operator-store.ts'
import { auditScan, emailScans, emailsPage } from '../shared/email-pages.ts'
import {
  cutPage,
  endStatement,
  rowsStatement,
  type Scan,
  type Statement,
  type Step,
  stepOf,
} from '../shared/pages.ts'
import {
  ageFloors,
  countStatements,
  lateStatement,
  measureStatement,
  toLate,
  toQueueCounts,
  toStates,
} from '../shared/queue-counts.ts'
import {
  activityApps,
  type Row,
  toActivityRow,
  toApp,
  toAuditEntry,
  toCountsByApp,
  toFinishedRecord,
  toKeyRecord,
  toLiveRecord,
  toNodeRecord,
  toRefusal,
  toTokenRecord,
  toUsageDays,
} from '../shared/records.ts'
import type { QueueGauge } from '../store.ts'
import type { Connection } from './connection.ts'
import { peopleLookUps } from './people.ts'

export function findApp({ sql }: Reader, idOrSlug: string): App | null {
  const row = sql("select * from app where (app_id = ? or slug = ?) and status <> 'deleted'").get(
    idOrSlug,
    idOrSlug,
  )
  return row === undefined ? null : toApp(row)
}

export function findAppBySlug({ sql }: Reader, slug: string): App | null {
  const row = sql("select * from app where slug = ? and status <> 'deleted'").get(slug)
  return row === undefined ? null : toApp(row)
}

export function findEmail({ sql }: Reader, id: EmailId): EmailRecord | null {
  const live = sql('select * from queue where email_id = ?').get(id)
  if (live !== undefined) return toLiveRecord(live)
  const finished = sql('select * from history where email_id = ?').get(id)
  return finished === undefined ? null : toFinishedRecord(finished)
}

export function queueGauge({ sql }: Reader): QueueGauge {
  const depth = Number(sql('select count from queue_depth').get()?.count)
  const oldest = sql('select accepted_at from queue order by email_id limit 1').get()
  return { depth, oldestAcceptedAt: (oldest?.accepted_at ?? null) as number | null }
}

const listApps = ({ sql }: Reader): App[] =>
  sql("select * from app where status <> 'deleted' order by app_id").all().map(toApp)

export function findKey({ sql }: Reader, id: KeyId): KeyRecord | null {
  const row = sql('select * from delivery_key where key_id = ?').get(id)
  return row === undefined ? null : toKeyRecord(row)
}

export function findKeyByHash({ sql }: Reader, hash: KeyHash): KeyRecord | null {
  const row = sql('select * from delivery_key where key_hash = ?').get(hash)
  return row === undefined ? null : toKeyRecord(row)
}

const listKeys = ({ sql }: Reader, app: AppId): KeyRecord[] =>
  sql('select * from delivery_key where app_id = ? order by key_id').all(app).map(toKeyRecord)

const listExpiringKeys = ({ sql }: Reader, now: number, until: number): KeyRecord[] =>
  sql(
    `select * from delivery_key old where revoked_at is null and expires_at between ? and ?
       and not exists (select 1 from delivery_key new where new.app_id = old.app_id and new.replaces = old.key_id)
     order by key_id`,
  )
    .all(now, until)
    .map(toKeyRecord)

const listKeysMadeBy = ({ sql }: Reader, now: number, name: string): KeyRecord[] =>
  sql(
    `select * from delivery_key where created_by = ? and revoked_at is null
       and (expires_at is null or expires_at > ?) order by key_id`,
  )
    .all(name, now)
    .map(toKeyRecord)

export function findTokenByHash({ sql }: Reader, hash: TokenHash): TokenRecord | null {
  const row = sql('select * from token where token_hash = ?').get(hash)
  return row === undefined ? null : toTokenRecord(row)
}

const listTokens = ({ sql }: Reader): TokenRecord[] =>
  sql('select * from token order by token_id').all().map(toTokenRecord)

function readStep({ sql }: Reader, scan: Scan): Step {
  const read = ({ text, values }: Statement): Row[] => sql(text).all(...values)
  const ending = endStatement(scan, () => '?')
  const [last] = ending === null ? [] : read(ending)
  const end = (last?.[scan.id] ?? null) as string | null
  return stepOf(scan, read(rowsStatement(scan, end, () => '?')), end)
}

function listEmails(reader: Reader, query: EmailQuery): Page<EmailRecord, EmailId> {
  const { queue, history } = emailScans(query)
  const read = (scan: Scan) => readStep(reader, scan)
  return inSnapshot(reader, () =>
    emailsPage({ queue: queue.map(read), history: history.map(read) }, query.limit),
  )
}

/** All statements see one state of the database. */
function inSnapshot<T>({ sql }: Reader, work: () => T): T {
  sql('begin').run()
  try {
    return work()
  } finally {
    sql('commit').run()
  }
}

function listAudit(reader: Reader, query: AuditQuery): Page<AuditEntry, AuditId> {
  const { rows, end } = readStep(reader, auditScan(query))
  return cutPage(rows.map(toAuditEntry), [end], query.limit)
}

function queueSummary(reader: Reader, now: number): QueueSummary {
  const { sql } = reader
  const ages = ageFloors(now)
  const counts = countStatements('', (n) => `?${n}`).flatMap((text) => sql(text).all(...ages))
  const next = sql("select min(due_at) as due_at from queue where state = 'deferred'").get()
  return {
    ...queueGauge(reader),
    nextAttemptAt: (next?.due_at ?? null) as number | null,
    ...toQueueCounts(counts),
    late: lateMail(reader, now),
  }
}

/** Everything of `QueueMeasures` but the disk. */
function measureQueue(reader: Reader, now: number): Omit<QueueMeasures, 'diskFreeBytes'> {
  const { sql } = reader
  const gauge = queueGauge(reader)
  const states = toStates(sql(measureStatement('')).get(), gauge.depth)
  return { ...gauge, states, late: lateMail(reader, now) }
}

const lateMail = ({ sql }: Reader, now: number) =>
  toLate(sql(lateStatement('', '?1', (apps) => `app_id in (${apps})`)).all(now))

const readActivity = ({ sql }: Reader, { apps, from, to, step }: ActivityQuery) =>
  sql(
    `select minute - minute % ? as minute, event, sum(count) as count from activity
     where app_id in (select value from json_each(?)) and minute >= ? and minute < ? group by 1, 2 order by 1, 2`,
  )
    .all(step, JSON.stringify(activityApps(apps)), from, to)
    .map(toActivityRow)

const listRefusals = ({ sql }: Reader, app: AppId): RefusedRequest[] =>
  sql('select * from refusal where app_id = ? order by request_id desc').all(app).map(toRefusal)

function findRefusal({ sql }: Reader, requestId: string): RefusedRequest | null {
  const row = sql('select * from refusal where request_id = ?').get(requestId)
  return row === undefined ? null : toRefusal(row)
}

const listNodes = ({ sql }: Reader): NodeRecord[] =>
  sql('select * from node order by node_id').all().map(toNodeRecord)

const usage = ({ sql }: Reader, app: AppId): UsageDay[] =>
  toUsageDays(
    sql('select day, event, count from usage_day where app_id = ? order by day desc, event').all(app),
  )

const usageToday = ({ sql }: Reader, now: number): ReadonlyMap<AppId, UsageDay['counts']> =>
  toCountsByApp(sql('select app_id, event, count from usage_day where day = ?').all(Math.floor(now / dayMs)))

/** `sql` of a connection, which may be passed on its own. */
export type Reader = { readonly sql: Connection['sql'] }

export const readerOf = (connection: Connection): Reader => ({ sql: (text) => connection.sql(text) })

/** The reads of the reader thread. */
export const listReads = {
  listApps,
  listKeys,
  listExpiringKeys,
  listKeysMadeBy,
  listTokens,
  listEmails,
  listAudit,
  queueSummary,
  measureQueue,
  readActivity,
  listRefusals,
  findRefusal,
  listNodes,
  usage,
  usageToday,
  ...peopleLookUps,
}
export type ListRead = keyof typeof listReads

export const readList = (reader: Reader, name: ListRead, args: readonly unknown[]): unknown =>
  (listReads[name] as (reader: Reader, ...args: readonly unknown[]) => unknown)(reader, ...args)
