/** Apps: changes, which take effect for the next request in every process, and reads. */
import type { App, AppStatus } from '../../domain/app/app.ts'
import type { AppSettings } from '../../domain/app/settings.ts'
import { simulatedTransport, testSide } from '../../domain/app/test-side.ts'
import { type AppId, newId } from '../../domain/id.ts'
import { type Action, type Actor, differences } from '../../domain/operator/audit.ts'
import type { AppChange } from '../operator-store.ts'
import { testSlug, toApp } from '../shared/rows.ts'
import { recordAction } from './audit.ts'
import { lock, readAll, readOne, type Script, type ScriptContext, type Statement } from './script.ts'

function* createApp(
  context: ScriptContext,
  slug: string,
  settings: AppSettings,
  actor: Actor,
  status: AppStatus = 'active',
): Script<App | null> {
  const made = { id: newId('app', context.nowMs), slug, version: 1, settings, status }
  const app = yield* insertApp(context, made, 'slug')
  if (app === null) return null
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

/** Null if there is a row with this slug, or with this id. */
function* insertApp(
  { dialect, nowMs, prefix }: ScriptContext,
  { id, settings, slug, status, version }: Pick<App, 'id' | 'settings' | 'slug' | 'status' | 'version'>,
  conflict: 'slug' | 'app_id',
): Script<App | null> {
  const insert = {
    text: `insert into ${prefix}app (app_id, slug, version, status, status_at, created_at, updated_at, settings, transport)
      values ($1, $2, $3, $4, $5, $5, $5, $6, $7) on conflict (${conflict}) do nothing returning *`,
    values: [id, slug, version, status, nowMs, JSON.stringify(settings), settings.transport ?? null],
  }
  const app = yield* readOne(insert, toApp)
  if (app !== null && dialect.locksRows)
    yield { text: `insert into ${prefix}app_lock (app_id) values ($1)`, values: [id] }
  return app
}

function* updateApp(
  context: ScriptContext,
  id: AppId,
  { settings, status, ifVersion }: AppChange,
  actor: Actor,
): Script<App | 'stale' | null> {
  const app = yield* lockApp(context, id)
  if (app === null) return null
  if (ifVersion !== undefined && ifVersion !== app.version) return 'stale'
  const next = { status: status ?? app.status, settings: settings ?? app.settings }
  const changed = differences(toFacts(app), toFacts(next))
  if (changed === null) return app
  const action: Action = { action: 'app.update', app: app.id, target: app.slug, ...changed }
  yield* recordAction(context, action, actor)
  yield newUpdate(context, testSide(id), { ...next, settings: onTestSide(next.settings) })
  return yield* readOne(newUpdate(context, id, next), toApp)
}

const newUpdate = (
  { nowMs, prefix }: ScriptContext,
  id: AppId,
  { settings, status }: Pick<App, 'settings' | 'status'>,
): Statement => ({
  text: `update ${prefix}app set version = version + 1, settings = $2, transport = $5, status = $3, updated_at = $4,
      status_at = case when status = $3 then status_at else $4 end
    where app_id = $1 returning *`,
  values: [id, JSON.stringify(settings), status, nowMs, settings.transport ?? null],
})

const onTestSide = (settings: AppSettings): AppSettings => ({ ...settings, transport: simulatedTransport })

/** The row of the app's test side, if it has none yet. */
export function* makeTestSide(context: ScriptContext, app: App): Script<void> {
  const { nowMs, prefix } = context
  const side = { ...app, id: testSide(app.id), slug: testSlug + app.slug, settings: onTestSide(app.settings) }
  // A process of an earlier version may have deleted an app of this name without its test side.
  yield {
    text: `update ${prefix}app set slug = app_id, status = 'deleted', status_at = $3 where slug = $1 and app_id <> $2`,
    values: [side.slug, side.id, nowMs],
  }
  yield* insertApp(context, side, 'app_id')
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
  const sides = [id, testSide(id)]
  if (dialect.locksRows)
    yield {
      text: `select 1 from ${prefix}app_lock where app_id in ($1, $2) order by app_id for update`,
      values: sides,
    }
  const app = yield* lockApp(context, id)
  if (app === null) return null
  if (app.status === 'active') return 'active'
  // At most `keysMax` keys work, and as many have ended. Larger tables are emptied in steps (retention.ts).
  for (const table of ['delivery_key', 'webhook_receiver'])
    yield { text: `delete from ${prefix}${table} where app_id in ($1, $2)`, values: sides }
  yield {
    text: `update ${prefix}app set status = 'deleted', status_at = $3, slug = app_id, version = version + 1
      where app_id in ($1, $2)`,
    values: [...sides, nowMs],
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

/** Operators see the app, and its test side as a part of it. */
const isListed = `status <> 'deleted' and slug not like '${testSlug}%'`

function* findApp({ prefix }: ScriptContext, idOrSlug: string): Script<App | null> {
  const text = `select * from ${prefix}app where (app_id = $1 or slug = $1) and ${isListed}`
  return yield* readOne({ text, values: [idOrSlug] }, toApp)
}

function* findAppBySlug({ prefix }: ScriptContext, slug: string): Script<App | null> {
  if (slug.includes('\0')) return null // PostgreSQL rejects text with NUL
  const text = `select * from ${prefix}app where slug = $1 and ${isListed}`
  return yield* readOne({ text, values: [slug] }, toApp)
}

function* listApps({ prefix }: ScriptContext): Script<App[]> {
  const text = `select * from ${prefix}app where ${isListed} order by app_id`
  return yield* readAll({ text, values: [] }, toApp)
}

function* listLinkDomains({ prefix }: ScriptContext): Script<string[]> {
  const text = `select distinct settings ->> 'linkDomain' as domain from ${prefix}app
    where status = 'active' and settings ->> 'linkDomain' is not null`
  return yield* readAll({ text, values: [] }, ({ domain }) => String(domain))
}

export const appChanges = { createApp, updateApp, deleteApp }
export const appReads = { findApp, findAppBySlug, listApps, listLinkDomains }
