/** Reads. They neither wait for writers nor make them wait. */
import type { App } from '../../domain/app/app.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { recipientName } from '../shared/bucket-names.ts'
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
import type { EmailQuery, EmailRecord, KeyRecord, QueueGauge, QueueSummary, UsageDay } from '../store.ts'
import type { PostgresContext } from './context.ts'
import type { Pool } from './pool.ts'

const deadlineMs = 10_000
/** For readiness checks, requests and hosted pages. */
const shortDeadlineMs = 2000

const ask = ({ operators }: PostgresContext, text: string, values: unknown[] = []): Promise<Row[]> =>
  operators.query(text, values, { deadlineMs })

export const findApp = (context: PostgresContext, idOrSlug: string): Promise<App | null> =>
  findAppWhere('(app_id = $1 or slug = $1)', idOrSlug, { context, pool: context.operators, deadlineMs })

export const findAppBySlug = (context: PostgresContext, slug: string): Promise<App | null> =>
  findAppWhere('slug = $1', slug, { context, pool: context.pages, deadlineMs: shortDeadlineMs })

async function findAppWhere(
  condition: string,
  name: string,
  { context, pool, deadlineMs }: { context: PostgresContext; pool: Pool; deadlineMs: number },
): Promise<App | null> {
  if (name.includes('\0')) return null // text of PostgreSQL cannot hold NUL
  const text = `select * from ${context.schema}.app where ${condition} and status <> 'deleted'`
  const [row] = await pool.query(text, [name], { deadlineMs })
  return row === undefined ? null : toApp(row)
}

export const listApps = async (context: PostgresContext): Promise<App[]> =>
  (await ask(context, `select * from ${context.schema}.app where status <> 'deleted' order by app_id`)).map(
    toApp,
  )

/** For requests that have to be judged again. */
export async function appsById(
  { lookups, schema }: PostgresContext,
  ids: readonly AppId[],
): Promise<ReadonlyMap<AppId, App>> {
  if (ids.length === 0) return new Map()
  const text = `select * from ${schema}.app where app_id = any($1) and status <> 'deleted'`
  const rows = await lookups.query(text, [[...new Set(ids)]], { deadlineMs: shortDeadlineMs })
  return new Map(rows.map(toApp).map((app) => [app.id, app]))
}

export async function listKeys(context: PostgresContext, app: AppId): Promise<KeyRecord[]> {
  const text = `select * from ${context.schema}.delivery_key where app_id = $1 order by key_id`
  return (await ask(context, text, [app])).map(toKeyRecord)
}

export async function findEmail(context: PostgresContext, id: EmailId): Promise<EmailRecord | null> {
  const [live] = await ask(context, `select * from ${context.schema}.queue where email_id = $1`, [id])
  if (live !== undefined) return toLiveRecord(live)
  const [finished] = await ask(context, `select * from ${context.schema}.history where email_id = $1`, [id])
  return finished === undefined ? null : toFinishedRecord(finished)
}

export async function listEmails(
  context: PostgresContext,
  { to, ...filter }: EmailQuery,
): Promise<EmailRecord[]> {
  const query = to === undefined ? filter : { ...filter, recipient: recipientName(context.keyedHash, to) }
  const tables = tablesOf(query)
  return newestFirst(
    tables.queue ? (await select(context, 'queue', query)).map(toLiveRecord) : [],
    tables.history ? (await select(context, 'history', query)).map(toFinishedRecord) : [],
    query.limit,
  )
}

function select(
  context: PostgresContext,
  name: 'queue' | 'history',
  query: StoredEmailQuery,
): Promise<Row[]> {
  const { text, values } = emailsStatement({ name, schema: context.schema }, query, (n) => `$${n}`)
  return ask(context, text, values)
}

export async function queueGauge({ lookups, schema }: PostgresContext): Promise<QueueGauge> {
  const text = `select (select sum(count)::bigint from ${schema}.queue_depth) as depth,
    (select accepted_at from ${schema}.queue order by email_id limit 1) as oldest`
  const [row] = await lookups.query<{ depth: number; oldest: number | null }>(text, [], {
    deadlineMs: shortDeadlineMs,
  })
  return { depth: row?.depth ?? 0, oldestAcceptedAt: row?.oldest ?? null }
}

export async function queueSummary(context: PostgresContext): Promise<QueueSummary> {
  const { schema } = context
  const counts = await ask(
    context,
    `select app_id, state, count(*) as count from ${schema}.queue group by app_id, state order by app_id, state`,
  )
  const [next] = await ask(
    context,
    `select min(due_at) as due_at from ${schema}.queue where state = 'deferred'`,
  )
  return {
    ...(await queueGauge(context)),
    nextAttemptAt: (next?.due_at ?? null) as number | null,
    counts: toQueueCounts(counts),
  }
}

export async function usage(context: PostgresContext, app: AppId): Promise<UsageDay[]> {
  const text = `select day, event, sum(count)::bigint as count from ${context.schema}.usage_day
    where app_id = $1 group by day, event order by day desc, event`
  return toUsageDays(await ask(context, text, [app]))
}
