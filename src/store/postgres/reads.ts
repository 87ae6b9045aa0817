/** What is only looked at. Readers neither wait for writers nor make them wait. */
import type { App } from '../../domain/app/app.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { limitAddress } from '../../domain/request/email-address.ts'
import {
  liveStates,
  newestFirst,
  type Row,
  toApp,
  toFinishedRecord,
  toKeyRecord,
  toLiveRecord,
  toQueueCounts,
  toUsageDays,
} from '../shared/records.ts'
import type { EmailQuery, EmailRecord, Finding, KeyRecord, QueueSummary, UsageDay } from '../store.ts'
import type { PostgresContext } from './context.ts'

const deadlineMs = 10_000
/** What a health check and a request wait for. */
const briefMs = 2000

const ask = (
  database: PostgresContext,
  text: string,
  values: unknown[] = [],
  withinMs = deadlineMs,
): Promise<Row[]> => database.general.query(database.sql(text), values, { deadlineMs: withinMs })

export async function findApp(database: PostgresContext, idOrSlug: string): Promise<App | null> {
  if (idOrSlug.includes('\0')) return null // no text of PostgreSQL holds one
  const text = "select * from postern.app where (app_id = $1 or slug = $1) and status <> 'deleted'"
  const [row] = await ask(database, text, [idOrSlug])
  return row === undefined ? null : toApp(row)
}

export const listApps = async (database: PostgresContext): Promise<App[]> =>
  (await ask(database, "select * from postern.app where status <> 'deleted' order by app_id")).map(toApp)

export async function appsById(
  database: PostgresContext,
  ids: readonly AppId[],
): Promise<ReadonlyMap<AppId, App>> {
  if (ids.length === 0) return new Map()
  const text = "select * from postern.app where app_id = any($1) and status <> 'deleted'"
  const apps = (await ask(database, text, [[...new Set(ids)]], briefMs)).map(toApp)
  return new Map(apps.map((app) => [app.id, app]))
}

export const listKeys = async (database: PostgresContext, app: AppId): Promise<KeyRecord[]> =>
  (await ask(database, 'select * from postern.delivery_key where app_id = $1 order by key_id', [app])).map(
    toKeyRecord,
  )

export async function findEmail(database: PostgresContext, id: EmailId): Promise<EmailRecord | null> {
  const [live] = await ask(database, 'select * from postern.queue where email_id = $1', [id])
  if (live !== undefined) return toLiveRecord(live)
  const [finished] = await ask(database, 'select * from postern.history where email_id = $1', [id])
  return finished === undefined ? null : toFinishedRecord(finished)
}

/** Newest first. */
export async function listEmails(database: PostgresContext, query: EmailQuery): Promise<EmailRecord[]> {
  const live = liveStates.indexOf(query.state as (typeof liveStates)[number])
  const to = query.to === undefined ? null : database.keyedHash('recipient', limitAddress(query.to))
  const page = (table: 'queue' | 'history', state: number | string | null) =>
    ask(
      database,
      `select * from postern.${table} where ($1::text is null or app_id = $1) and ($2::text is null or recipient = $2)
         and ($3::text is null or state::text = $3) order by email_id desc limit $4`,
      [query.app ?? null, to, state, query.limit],
    )
  const all = query.state === undefined
  return newestFirst(
    all || live >= 0 ? (await page('queue', all ? null : live)).map(toLiveRecord) : [],
    all || live < 0 ? (await page('history', query.state ?? null)).map(toFinishedRecord) : [],
    query.limit,
  )
}

export async function queueGauge(
  database: PostgresContext,
): Promise<{ depth: number; oldestAcceptedAt: number | null }> {
  const text = `select (select sum(n)::bigint from postern.queue_depth) as depth,
    (select accepted_at from postern.queue order by email_id limit 1) as oldest`
  const [row] = await ask(database, text, [], briefMs)
  return { depth: row?.depth as number, oldestAcceptedAt: (row?.oldest ?? null) as number | null }
}

export async function queueSummary(database: PostgresContext): Promise<QueueSummary> {
  const counts = await ask(
    database,
    'select app_id, state, count(*) as n from postern.queue group by app_id, state order by app_id, state',
  )
  const [next] = await ask(database, 'select min(due_at) as due from postern.queue where state = 1')
  return {
    ...(await queueGauge(database)),
    nextAttemptAt: (next?.due ?? null) as number | null,
    counts: toQueueCounts(counts),
  }
}

export const usage = async (database: PostgresContext, app: AppId): Promise<UsageDay[]> =>
  toUsageDays(
    await ask(
      database,
      `select day, what, sum(n)::bigint as n from postern.usage_day where app_id = $1
       group by day, what order by day desc, what`,
      [app],
    ),
  )

/** A transaction that is open for so long keeps dead rows from being cleared away, and claims slow down. */
const snapshotMaxS = 600

export async function examine(database: PostgresContext): Promise<Finding[]> {
  const text = `select current_setting('server_version') as version, current_user as role,
    pg_has_role('pg_read_all_stats', 'usage') as sees, current_setting('synchronous_standby_names') as standbys,
    (select count(*)::int from pg_stat_replication where sync_state in ('sync', 'quorum')) as synchronous,
    (select coalesce(max(extract(epoch from now() - xact_start)), 0)::int from pg_stat_activity
      where backend_xmin is not null and pid <> pg_backend_pid()) as oldest`
  const [row] = await ask(database, text)
  const version: Finding = { check: 'PostgreSQL', ok: true, detail: `version ${row?.version}` }
  if (row?.standbys === '') {
    const detail = 'no synchronous standby is asked for: a commit is on one disk'
    return [version, { check: 'replication', ok: true, detail }, oldestTransaction(row)]
  }
  const connected = Number(row?.synchronous)
  const detail = row?.sees ? `${connected} synchronous standbys are connected` : cannotSee(row)
  return [version, { check: 'replication', ok: connected > 0 || !row?.sees, detail }, oldestTransaction(row)]
}

const cannotSee = (row: Row | undefined): string =>
  `this role may not look: grant pg_read_all_stats to ${row?.role}`

function oldestTransaction(row: Row | undefined): Finding {
  const check = 'oldest transaction'
  if (!row?.sees) return { check, ok: true, detail: cannotSee(row) }
  const detail = `${row.oldest} s; one of over ${snapshotMaxS} s (a backup, a forgotten session) slows claims down`
  return { check, ok: Number(row.oldest) < snapshotMaxS, detail }
}
