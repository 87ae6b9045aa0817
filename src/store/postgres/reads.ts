/** Reads. They neither wait for writers nor make them wait. */

import type { ActivityRow } from '../../domain/activity.ts'
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
import { findSecret, type PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'
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

export async function findKey(context: PostgresContext, id: KeyId): Promise<KeyRecord | null> {
  const [row] = await ask(context, `select * from ${context.schema}.delivery_key where key_id = $1`, [id])
  return row === undefined ? null : toKeyRecord(row)
}

export async function findKeyByHash(context: PostgresContext, hash: KeyHash): Promise<KeyRecord | null> {
  const text = `select * from ${context.schema}.delivery_key where key_hash = $1`
  const [row] = await ask(context, text, [hash])
  return row === undefined ? null : toKeyRecord(row)
}

export async function listKeys(context: PostgresContext, app: AppId): Promise<KeyRecord[]> {
  const text = `select * from ${context.schema}.delivery_key where app_id = $1 order by key_id`
  return (await ask(context, text, [app])).map(toKeyRecord)
}

export async function listExpiringKeys(context: PostgresContext, until: number): Promise<KeyRecord[]> {
  const table = `${context.schema}.delivery_key`
  const text = `select * from ${table} old where revoked_at is null and expires_at between ${clockMs('$2')} and $1
      and not exists (select from ${table} new where new.app_id = old.app_id and new.replaces = old.key_id)
    order by key_id`
  return (await ask(context, text, [until, context.clock.offsetMs])).map(toKeyRecord)
}

export async function listKeysMadeBy(context: PostgresContext, name: string): Promise<KeyRecord[]> {
  const text = `select * from ${context.schema}.delivery_key where created_by = $1 and revoked_at is null
    and (expires_at is null or expires_at > ${clockMs('$2')}) order by key_id`
  return (await ask(context, text, [name, context.clock.offsetMs])).map(toKeyRecord)
}

export const findTokenByHash = (context: PostgresContext, hash: TokenHash): Promise<TokenRecord | null> =>
  findSecret(context, hash, async (pool) => {
    const text = `select * from ${context.schema}.token where token_hash = $1`
    const [row] = await pool.query(text, [hash], { deadlineMs: shortDeadlineMs })
    return row === undefined ? null : toTokenRecord(row)
  })

export const listTokens = async (context: PostgresContext): Promise<TokenRecord[]> =>
  (await ask(context, `select * from ${context.schema}.token order by token_id`)).map(toTokenRecord)

export async function findEmail(context: PostgresContext, id: EmailId): Promise<EmailRecord | null> {
  const [live] = await ask(context, `select * from ${context.schema}.queue where email_id = $1`, [id])
  if (live !== undefined) return toLiveRecord(live)
  const [finished] = await ask(context, `select * from ${context.schema}.history where email_id = $1`, [id])
  return finished === undefined ? null : toFinishedRecord(finished)
}

export async function listEmails(
  context: PostgresContext,
  query: EmailQuery,
): Promise<Page<EmailRecord, EmailId>> {
  const { queue, history } = emailScans(query, `${context.schema}.`)
  return context.operators.transaction(async (ask) => {
    await ask('set transaction isolation level repeatable read read only', [])
    const readSteps = async (scans: readonly Scan[]): Promise<Step[]> => {
      const steps: Step[] = []
      for (const scan of scans) steps.push(await readStep(ask, scan))
      return steps
    }
    return emailsPage({ queue: await readSteps(queue), history: await readSteps(history) }, query.limit)
  }, deadlineMs)
}

export async function listAudit(
  context: PostgresContext,
  query: AuditQuery,
): Promise<Page<AuditEntry, AuditId>> {
  const run = (text: string, values: unknown[]) => ask(context, text, values)
  const { rows, end } = await readStep(run, auditScan(query, `${context.schema}.`))
  return cutPage(rows.map(toAuditEntry), [end], query.limit)
}

async function readStep(
  query: (text: string, values: unknown[]) => Promise<Row[]>,
  scan: Scan,
): Promise<Step> {
  const read = ({ text, values }: Statement): Promise<Row[]> => query(text, [...values])
  const mark = (n: number) => `$${n}`
  const ending = endStatement(scan, mark)
  const [last] = ending === null ? [] : await read(ending)
  const end = (last?.[scan.id] ?? null) as string | null
  return stepOf(scan, await read(rowsStatement(scan, end, mark)), end)
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
  const statement = countStatements(`${schema}.`, (n) => `$${n}`).join(' union all ')
  const counts = await ask(context, statement, ageFloors(context.clock.nowMs()))
  const [next] = await ask(
    context,
    `select min(due_at) as due_at from ${schema}.queue where state = 'deferred'`,
  )
  return {
    ...(await queueGauge(context)),
    nextAttemptAt: (next?.due_at ?? null) as number | null,
    ...toQueueCounts(counts),
    late: toLate(await ask(context, ...lateQuery(context))),
  }
}

export async function measureQueue(context: PostgresContext): Promise<QueueMeasures> {
  const gauge = await queueGauge(context)
  const observe = (text: string, values: unknown[] = []): Promise<Row[]> =>
    context.observers.query(text, values, { deadlineMs })
  const [row] = await observe(measureStatement(`${context.schema}.`))
  const late = toLate(await observe(...lateQuery(context)))
  return { ...gauge, states: toStates(row, gauge.depth), late, diskFreeBytes: null }
}

const lateQuery = ({ clock, schema }: PostgresContext): [text: string, values: unknown[]] => [
  lateStatement(`${schema}.`, clockMs('$1'), (apps) => `app_id = any(array(${apps}))`),
  [clock.offsetMs],
]

export async function readActivity(
  context: PostgresContext,
  { apps, from, to, step }: ActivityQuery,
): Promise<Omit<ActivityRow, 'app'>[]> {
  const text = `select minute - minute % $1 as minute, event, sum(count)::bigint as count from ${context.schema}.activity
    where app_id = any($2) and minute >= $3 and minute < $4 group by 1, 2 order by 1, 2`
  return (await ask(context, text, [step, activityApps(apps), from, to])).map(toActivityRow)
}

export async function listRefusals(context: PostgresContext, app: AppId): Promise<RefusedRequest[]> {
  const text = `select * from ${context.schema}.refusal where app_id = $1 order by request_id desc`
  return (await ask(context, text, [app])).map(toRefusal)
}

export async function findRefusal(
  context: PostgresContext,
  requestId: string,
): Promise<RefusedRequest | null> {
  const text = `select * from ${context.schema}.refusal where request_id = $1`
  const [row] = await ask(context, text, [requestId])
  return row === undefined ? null : toRefusal(row)
}

export const listNodes = async (context: PostgresContext): Promise<NodeRecord[]> =>
  (await ask(context, `select * from ${context.schema}.node order by node_id`)).map(toNodeRecord)

export async function usage(context: PostgresContext, app: AppId): Promise<UsageDay[]> {
  const text = `select day, event, sum(count)::bigint as count from ${context.schema}.usage_day
    where app_id = $1 group by day, event order by day desc, event`
  return toUsageDays(await ask(context, text, [app]))
}

export async function usageToday(context: PostgresContext): Promise<ReadonlyMap<AppId, UsageDay['counts']>> {
  const text = `select app_id, event, sum(count)::bigint as count from ${context.schema}.usage_day
    where day = ${clockMs('$1')} / ${dayMs} group by app_id, event`
  return toCountsByApp(await ask(context, text, [context.clock.offsetMs]))
}
