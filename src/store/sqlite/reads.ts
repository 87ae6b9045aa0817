/**
 * What is only looked at: on a read-only connection of its own, so that a long list never delays
 * an accept. WAL readers neither wait nor make others wait.
 */
import type { App } from '../../domain/app/app.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { limitAddress } from '../../domain/request/email-address.ts'
import type { KeyedHash } from '../crypto/key-ring.ts'
import {
  liveStates,
  newestFirst,
  toApp,
  toFinishedRecord,
  toKeyRecord,
  toLiveRecord,
  toQueueCounts,
  toUsageDays,
} from '../shared/records.ts'
import type { EmailQuery, EmailRecord, KeyRecord, QueueSummary, UsageDay } from '../store.ts'
import type { Connection } from './connection.ts'

export function findApp(database: Connection, idOrSlug: string): App | null {
  const row = database
    .sql("select * from app where (app_id = ? or slug = ?) and status <> 'deleted'")
    .get(idOrSlug, idOrSlug)
  return row === undefined ? null : toApp(row)
}

export const listApps = (database: Connection): App[] =>
  database.sql("select * from app where status <> 'deleted' order by app_id").all().map(toApp)

export const listKeys = (database: Connection, app: AppId): KeyRecord[] =>
  database.sql('select * from delivery_key where app_id = ? order by key_id').all(app).map(toKeyRecord)

export function findEmail(database: Connection, id: EmailId): EmailRecord | null {
  const live = database.sql('select * from queue where email_id = ?').get(id)
  if (live !== undefined) return toLiveRecord(live)
  const finished = database.sql('select * from history where email_id = ?').get(id)
  return finished === undefined ? null : toFinishedRecord(finished)
}

/** Newest first. */
export function listEmails(database: Connection, query: EmailQuery, keyedHash: KeyedHash): EmailRecord[] {
  const live = liveStates.indexOf(query.state as (typeof liveStates)[number])
  const filters: [string, string | number | undefined][] = [
    ['app_id = ?', query.app],
    ['recipient = ?', query.to === undefined ? undefined : keyedHash('recipient', limitAddress(query.to))],
  ]
  const page = (table: string, stateFilter: [string, string | number | undefined]) => {
    const used = [...filters, stateFilter].filter(([, value]) => value !== undefined)
    const where = used.length === 0 ? '' : `where ${used.map(([text]) => text).join(' and ')}`
    const values = used.map(([, value]) => value as string | number)
    return database
      .sql(`select * from ${table} ${where} order by email_id desc limit ?`)
      .all(...values, query.limit)
  }
  const all = query.state === undefined
  return newestFirst(
    all || live >= 0 ? page('queue', ['state = ?', all ? undefined : live]).map(toLiveRecord) : [],
    all || live < 0 ? page('history', ['state = ?', query.state]).map(toFinishedRecord) : [],
    query.limit,
  )
}

export function queueGauge(database: Connection): { depth: number; oldestAcceptedAt: number | null } {
  const depth = Number(database.sql('select n from queue_depth').get()?.n)
  const oldest = database.sql('select accepted_at from queue order by email_id limit 1').get()
  return { depth, oldestAcceptedAt: (oldest?.accepted_at ?? null) as number | null }
}

export function queueSummary(database: Connection): QueueSummary {
  const counts = database.sql('select app_id, state, count(*) as n from queue group by app_id, state').all()
  const next = database.sql('select min(due_at) as due from queue where state = 1').get()
  return {
    ...queueGauge(database),
    nextAttemptAt: (next?.due ?? null) as number | null,
    counts: toQueueCounts(counts),
  }
}

export const usage = (database: Connection, app: AppId): UsageDay[] =>
  toUsageDays(database.sql('select day, what, n from usage_day where app_id = ? order by day desc').all(app))
