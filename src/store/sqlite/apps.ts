/**
 * Changes of apps. Each takes effect for the next request, also when the command line makes the
 * change while the service runs.
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
import { recordAction } from './audit.ts'
import { finish, type QueueRow } from './outcome.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

export function createApp(
  tx: WriteTransaction,
  slug: string,
  settings: AppSettings,
  actor: Actor,
  status: AppStatus = 'active',
): App | null {
  const row = tx
    .sql(
      `insert into app (app_id, slug, version, status, status_at, created_at, updated_at, settings)
       values (?, ?, 1, ?, ?, ?, ?, ?) on conflict (slug) do nothing returning *`,
    )
    .get(newId('app', tx.nowMs), slug, status, tx.nowMs, tx.nowMs, tx.nowMs, JSON.stringify(settings))
  tx.clearCaches()
  if (row === undefined) return null
  const app = toApp(row)
  recordAction(tx, appCreated(app), actor)
  return app
}

export function updateApp(
  tx: WriteTransaction,
  id: AppId,
  { settings, status, ifVersion }: AppChange,
  actor: Actor,
): App | 'stale' | 'too_often' | null {
  const app = findLiveApp(tx, id)
  if (app === null) return null
  if (ifVersion !== undefined && ifVersion !== app.version) return 'stale'
  const next = { status: status ?? app.status, settings: settings ?? app.settings }
  const action = appUpdated(app, next)
  if (action === null) return app
  if (changesSettings(action) && isChangedTooOften(tx, id)) return 'too_often'
  const row = tx
    .sql(
      `update app set version = version + 1, settings = ?, status = ?, updated_at = ?,
         status_at = case when status = ? then status_at else ? end
       where app_id = ? returning *`,
    )
    .get(JSON.stringify(next.settings), next.status, tx.nowMs, next.status, tx.nowMs, id)
  tx.clearCaches()
  recordAction(tx, action, actor)
  return row === undefined ? null : toApp(row)
}

function isChangedTooOften(tx: WriteTransaction, id: AppId): boolean {
  const sinceMs = tx.nowMs - dayMs
  const row = tx.sql(auditedStatement('', () => '?')).get(id, idFloor('au', sinceMs), sinceMs)
  return Number(row?.characters) >= auditedPerDayMax
}

function findLiveApp(tx: WriteTransaction, id: AppId): App | null {
  const row = tx.sql("select * from app where app_id = ? and status <> 'deleted'").get(id)
  return row === undefined ? null : toApp(row)
}

export function deleteApp(tx: WriteTransaction, id: AppId, actor: Actor): 'deleted' | 'active' | null {
  const app = findLiveApp(tx, id)
  if (app === null) return null
  if (app.status !== 'disabled') return 'active'
  tx.sql(
    `update app set status = 'deleted', status_at = ?, slug = app_id, version = version + 1
     where app_id = ?`,
  ).run(tx.nowMs, id)
  tx.sql('delete from delivery_key where app_id = ?').run(id)
  tx.clearCaches()
  recordAction(tx, appDeleted(app), actor)
  return 'deleted'
}

/** One step for an app that is deleted, or has been disabled for `heldDays`; nothing for every other app. */
export function cancelDeletedAppMail(tx: WriteTransaction, id: AppId): EndedEmail[] {
  const app = tx
    .sql(
      `select status from app where app_id = ?
         and (status = 'deleted' or (status = 'disabled' and status_at <= ?))`,
    )
    .get(id, tx.nowMs - heldDays * dayMs)
  if (app === undefined) return []
  const queued = cancelQueued(tx, id)
  if (queued.length > 0) return queued
  const deferred = cancelPart(tx, id, queueParts.deferred)
  if (deferred.length === 0 && !isSending(tx, id)) {
    tx.sql("delete from app where app_id = ? and status = 'deleted'").run(id)
    tx.clearCaches()
  }
  return deferred
}

/** Mail that a worker holds may be at its relay already: it ends by its outcome, or is cancelled when it comes back. */
const isSending = (tx: WriteTransaction, id: AppId): boolean =>
  tx.sql(`select 1 from queue where ${queueParts.sending} and app_id = ? limit 1`).get(id) !== undefined

/** One step of cancelling queued mail: first what is ready, then suspects. */
export function cancelQueued(tx: WriteTransaction, id: AppId): EndedEmail[] {
  const ready = cancelPart(tx, id, queueParts.ready)
  return ready.length > 0 ? ready : cancelPart(tx, id, queueParts.suspect)
}

/** `part`: a condition with an index. */
function cancelPart(tx: WriteTransaction, id: AppId, part: string): EndedEmail[] {
  const text = `select * from queue where ${part} and app_id = ? order by email_id limit ?`
  const rows = tx.sql(text).all(id, stepMax) as QueueRow[]
  return rows.map((row) => finish(tx, row, { state: 'cancelled', reason: 'app_inactive', record: null }))
}
