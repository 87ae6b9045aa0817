/** Apps: changes, which take effect for the next request in every process, and reads. */
import type { App, AppStatus } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { type AppId, newId } from '../../domain/id.ts'
import { type Action, type Actor, differences } from '../../domain/operator/audit.ts'
import type { AppChange } from '../operator-store.ts'
import { toApp } from '../shared/rows.ts'
import { recordAction } from './audit.ts'
import { lock, readAll, readOne, type Script, type ScriptContext } from './script.ts'

function* createApp(
  context: ScriptContext,
  slug: string,
  settings: AppSettings,
  actor: Actor,
  status: AppStatus = 'active',
): Script<App | null> {
  const { dialect, nowMs, prefix } = context
  const insert = {
    text: `insert into ${prefix}app (app_id, slug, version, status, status_at, created_at, updated_at, settings)
      values ($1, $2, 1, $3, $4, $4, $4, $5) on conflict (slug) do nothing returning *`,
    values: [newId('app', nowMs), slug, status, nowMs, JSON.stringify(settings)],
  }
  const app = yield* readOne(insert, toApp)
  if (app === null) return null
  if (dialect.locksRows) yield { text: `insert into ${prefix}app_lock (app_id) values ($1)`, values: [app.id] }
  const action = {
    action: 'app.create',
    app: app.id,
    target: app.slug,
    before: null,
    after: toFacts(app),
  } as const
  yield* recordAction(context, action, actor)
  return app
}

function* updateApp(
  context: ScriptContext,
  id: AppId,
  { settings, status, ifVersion }: AppChange,
  actor: Actor,
): Script<App | 'stale' | null> {
  const { nowMs, prefix } = context
  const app = yield* lockApp(context, id)
  if (app === null) return null
  if (ifVersion !== undefined && ifVersion !== app.version) return 'stale'
  const next = { status: status ?? app.status, settings: settings ?? app.settings }
  const changed = differences(toFacts(app), toFacts(next))
  if (changed === null) return app
  const action: Action = { action: 'app.update', app: app.id, target: app.slug, ...changed }
  const update = {
    text: `update ${prefix}app set version = version + 1, settings = $2, status = $3, updated_at = $4,
        status_at = case when status = $3 then status_at else $4 end
      where app_id = $1 returning *`,
    values: [id, JSON.stringify(next.settings), next.status, nowMs],
  }
  yield* recordAction(context, action, actor)
  return yield* readOne(update, toApp)
}

const toFacts = ({ status, settings }: Pick<App, 'status' | 'settings'>) => ({ status, ...settings })

/**
 * The app, locked against other changes by operators, also of its keys; requests read it meanwhile. Each
 * change of an app or a key locks the app first, so that no two transactions wait for each other.
 */
export function* lockApp(context: ScriptContext, id: AppId): Script<App | null> {
  const text = `select * from ${context.prefix}app
    where app_id = $1 and status <> 'deleted' ${lock(context, 'for no key update')}`
  return yield* readOne({ text, values: [id] }, toApp)
}

/**
 * The lock of requests is taken first, so that mail which a request in progress queues is there to be
 * cancelled.
 */
function* deleteApp(context: ScriptContext, id: AppId, actor: Actor): Script<'deleted' | 'active' | null> {
  const { dialect, nowMs, prefix } = context
  if (dialect.locksRows) yield { text: `select 1 from ${prefix}app_lock where app_id = $1 for update`, values: [id] }
  const app = yield* lockApp(context, id)
  if (app === null) return null
  if (app.status === 'active') return 'active'
  // At most `keysMax` keys work, and as many have ended. Larger tables are emptied in steps (retention.ts).
  for (const table of ['delivery_key', 'webhook_receiver'])
    yield { text: `delete from ${prefix}${table} where app_id = $1`, values: [id] }
  yield {
    text: `update ${prefix}app set status = 'deleted', status_at = $2, slug = app_id, version = version + 1
      where app_id = $1`,
    values: [id, nowMs],
  }
  const action = {
    action: 'app.delete',
    app: id,
    target: app.slug,
    before: toFacts(app),
    after: null,
  } as const
  yield* recordAction(context, action, actor)
  return 'deleted'
}

function* findApp({ prefix }: ScriptContext, idOrSlug: string): Script<App | null> {
  const text = `select * from ${prefix}app where (app_id = $1 or slug = $1) and status <> 'deleted'`
  return yield* readOne({ text, values: [idOrSlug] }, toApp)
}

function* findAppBySlug({ prefix }: ScriptContext, slug: string): Script<App | null> {
  if (slug.includes('\0')) return null // PostgreSQL rejects text with NUL
  const text = `select * from ${prefix}app where slug = $1 and status <> 'deleted'`
  return yield* readOne({ text, values: [slug] }, toApp)
}

function* listApps({ prefix }: ScriptContext): Script<App[]> {
  const text = `select * from ${prefix}app where status <> 'deleted' order by app_id`
  return yield* readAll({ text, values: [] }, toApp)
}

export const appChanges = { createApp, updateApp, deleteApp }
export const appReads = { findApp, findAppBySlug, listApps }
