/**
 * Reads, on read-only connections. In WAL mode readers neither wait for the writer nor delay it. The
 * reads of `listReads` take longer the more data there is, so they run in the reader thread.
 */
import type { App } from '../../domain/app/app.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import {
  emailsStatement,
  newestFirst,
  type Row,
  type StoredEmailQuery,
  tablesOf,
  toApp,
  toFinishedRecord,
  toKeyRecord,
  toLiveRecord,
  toQueueCounts,
  toUsageDays,
} from '../shared/records.ts'
import type { EmailRecord, KeyRecord, QueueGauge, QueueSummary, UsageDay } from '../store.ts'
import type { Connection } from './connection.ts'

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

const listKeys = ({ sql }: Reader, app: AppId): KeyRecord[] =>
  sql('select * from delivery_key where app_id = ? order by key_id').all(app).map(toKeyRecord)

function listEmails(reader: Reader, query: StoredEmailQuery): EmailRecord[] {
  const tables = tablesOf(query)
  return newestFirst(
    tables.queue ? select(reader, 'queue', query).map(toLiveRecord) : [],
    tables.history ? select(reader, 'history', query).map(toFinishedRecord) : [],
    query.limit,
  )
}

function select({ sql }: Reader, name: 'queue' | 'history', query: StoredEmailQuery): Row[] {
  const { text, values } = emailsStatement({ name }, query, () => '?')
  return sql(text).all(...values)
}

function queueSummary(reader: Reader): QueueSummary {
  const { sql } = reader
  const counts = sql('select app_id, state, count(*) as count from queue group by app_id, state').all()
  const next = sql("select min(due_at) as due_at from queue where state = 'deferred'").get()
  return {
    ...queueGauge(reader),
    nextAttemptAt: (next?.due_at ?? null) as number | null,
    counts: toQueueCounts(counts),
  }
}

const usage = ({ sql }: Reader, app: AppId): UsageDay[] =>
  toUsageDays(
    sql('select day, event, count from usage_day where app_id = ? order by day desc, event').all(app),
  )

/** `sql` of a connection, which may be passed on its own. */
export type Reader = { readonly sql: Connection['sql'] }

export const readerOf = (connection: Connection): Reader => ({ sql: (text) => connection.sql(text) })

/** The reads of the reader thread. */
export const listReads = { listApps, listKeys, listEmails, queueSummary, usage }
export type ListRead = keyof typeof listReads
