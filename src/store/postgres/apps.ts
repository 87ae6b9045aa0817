/**
 * Changes of apps. Each takes effect for the next request in every process, because the transaction that
 * decides a request reads the app.
 */
import type { App, AppStatus } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import type { Actor } from '../../domain/audit.ts'
import type { EndedEmail } from '../../domain/delivery/states.ts'
import { dayMs } from '../../domain/duration.ts'
import { type AppId, idFloor, newId } from '../../domain/id.ts'
import type { AppChange } from '../operator-store.ts'
import { appCreated, appDeleted, appUpdated, auditedStatement, changesSettings } from '../shared/audited.ts'
import { auditedPerDayMax, heldDays, stepMax } from '../shared/bounds.ts'
import { queueParts } from '../shared/queue-parts.ts'
import { toApp } from '../shared/records.ts'
import { withAudit } from './audit.ts'
import type { Query } from './connection.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'
import { type ChosenRow, finishChosen, toEnded } from './outcome.ts'

const deadlineMs = 10_000

export const createApp = (
  context: PostgresContext,
  slug: string,
  settings: AppSettings,
  actor: Actor,
  status: AppStatus = 'active',
): Promise<App | null> =>
  withAudit(context, actor, async ({ query, record }) => {
    const { clock, schema } = context
    const text = `with made as (
        insert into ${schema}.app (app_id, slug, version, status, status_at, created_at, updated_at, settings)
        select $1, $2, 1, $5, now_ms, now_ms, now_ms, $3 from (select ${clockMs('$4')} as now_ms) c
        on conflict (slug) do nothing returning *
      ), locked as (insert into ${schema}.app_lock (app_id) select app_id from made)
      select * from made`
    const values = [newId('app', clock.nowMs()), slug, JSON.stringify(settings), clock.offsetMs, status]
    const [row] = await query(text, values)
    if (row === undefined) return null
    const app = toApp(row)
    await record(appCreated(app))
    return app
  })

export const updateApp = (
  context: PostgresContext,
  id: AppId,
  { settings, status, ifVersion }: AppChange,
  actor: Actor,
): Promise<App | 'stale' | 'too_often' | null> =>
  withAudit(context, actor, async ({ query, record }) => {
    const { clock, schema } = context
    const app = await lockApp(query, schema, id)
    if (app === null) return null
    if (ifVersion !== undefined && ifVersion !== app.version) return 'stale'
    const next = { status: status ?? app.status, settings: settings ?? app.settings }
    const action = appUpdated(app, next)
    if (action === null) return app
    if (changesSettings(action) && (await isChangedTooOften(query, context, id))) return 'too_often'
    const text = `update ${schema}.app set version = version + 1, settings = $2, status = $3,
        updated_at = ${clockMs('$4')}, status_at = case when $3 = status then status_at else ${clockMs('$4')} end
      where app_id = $1 returning *`
    const [row] = await query(text, [id, JSON.stringify(next.settings), next.status, clock.offsetMs])
    await record(action)
    return row === undefined ? null : toApp(row)
  })

async function isChangedTooOften(
  query: Query,
  { clock, schema }: PostgresContext,
  id: AppId,
): Promise<boolean> {
  const text = auditedStatement(`${schema}.`, (n) => `$${n}`)
  const sinceMs = clock.nowMs() - dayMs
  const [row] = await query(text, [id, idFloor('au', sinceMs), sinceMs])
  return Number(row?.characters) >= auditedPerDayMax
}

/** The app, locked against other changes by operators; requests read it meanwhile. */
async function lockApp(query: Query, schema: string, id: AppId): Promise<App | null> {
  const text = `select * from ${schema}.app where app_id = $1 and status <> 'deleted' for no key update`
  const [row] = await query(text, [id])
  return row === undefined ? null : toApp(row)
}

/** The app's lock is taken first, so that mail which a request in progress admits is there to be cancelled. */
export const deleteApp = (
  context: PostgresContext,
  id: AppId,
  actor: Actor,
): Promise<'deleted' | 'active' | null> =>
  withAudit(context, actor, async ({ query, record }) => {
    const { clock, schema } = context
    await query(`select from ${schema}.app_lock where app_id = $1 for update`, [id])
    const app = await lockApp(query, schema, id)
    if (app === null) return null
    if (app.status !== 'disabled') return 'active'
    await query(`delete from ${schema}.delivery_key where app_id = $1`, [id])
    const text = `update ${schema}.app
      set status = 'deleted', status_at = ${clockMs('$2')}, slug = app_id, version = version + 1
      where app_id = $1`
    await query(text, [id, clock.offsetMs])
    await record(appDeleted(app))
    return 'deleted'
  })

/**
 * Mail that a worker holds may be at its relay already: it ends by its outcome, or is cancelled when it comes back. The app
 * stays until then. A step may miss mail that a claim is taking at this time; the next step finds it.
 */
export async function cancelDeletedAppMail(context: PostgresContext, id: AppId): Promise<EndedEmail[]> {
  const queued = await cancelQueued(context, id)
  if (queued.length > 0) return queued
  const deferred = await cancel(context, id, queueParts.deferred)
  if (deferred.length > 0) return deferred
  const { maintenance, schema } = context
  const text = `with removed as (delete from ${schema}.app where app_id = $1 and status = 'deleted'
      and not exists (select from ${schema}.queue where app_id = $1) returning app_id)
    delete from ${schema}.app_lock using removed where app_lock.app_id = removed.app_id`
  await maintenance.query(text, [id], { deadlineMs })
  return []
}

/** One step of cancelling queued mail: first what is ready, then suspects. Each has an index. */
export async function cancelQueued(context: PostgresContext, id: AppId): Promise<EndedEmail[]> {
  const ready = await cancel(context, id, queueParts.ready)
  return ready.length > 0 ? ready : cancel(context, id, queueParts.suspect)
}

/** Checks in the same statement that the app is deleted, or has been disabled for `heldDays`. */
async function cancel(context: PostgresContext, id: AppId, where: string): Promise<EndedEmail[]> {
  const { clock, maintenance, schema, slot } = context
  const chosen = `select email_id, app_id from ${schema}.queue where app_id = $3 and ${where} and exists (
      select from ${schema}.app where app_id = $3 and (status = 'deleted'
        or (status = 'disabled' and status_at <= ${clockMs('$2')} - ${heldDays * dayMs})))
    order by email_id limit ${stepMax} for update skip locked`
  const end = { state: 'cancelled', reason: 'app_inactive' } as const
  const rows = await maintenance.query<ChosenRow>(
    finishChosen(schema, chosen, end),
    [slot, clock.offsetMs, id],
    { deadlineMs },
  )
  return toEnded(rows, end)
}
