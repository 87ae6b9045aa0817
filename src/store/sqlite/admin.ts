/**
 * What an operator changes: apps, keys, single emails. Each takes effect for the next request,
 * also when the command line makes the change while the service runs.
 */
import type { App, AppSettings, AppStatus } from '../../domain/app/app.ts'
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { type AppId, type EmailId, type KeyId, newId } from '../../domain/id.ts'
import { stepMax } from '../shared/bounds.ts'
import { toApp, toKeyRecord } from '../shared/records.ts'
import type { EmailChange, KeyRecord } from '../store.ts'
import { finish, type QueueRow } from './outcome.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

export function createApp(tx: WriteTransaction, slug: string, settings: AppSettings): App | null {
  const id = newId('app', tx.nowMs)
  const row = tx
    .sql("insert into app values (?, ?, 1, 'active', ?, ?, ?) on conflict (slug) do nothing returning *")
    .get(id, slug, tx.nowMs, tx.nowMs, JSON.stringify(settings))
  tx.forget()
  return row === undefined ? null : toApp(row)
}

export function updateApp(
  tx: WriteTransaction,
  id: AppId,
  change: { settings?: AppSettings; status?: AppStatus },
): App | null {
  const app = tx.app(id)
  if (app === null || (app.status as string) === 'deleted') return null
  const status = change.status ?? app.status
  const row = tx
    .sql(
      `update app set version = version + 1, settings = ?, status = ?,
         status_at = case when status = ? then status_at else ? end
       where app_id = ? returning *`,
    )
    .get(JSON.stringify(change.settings ?? app.settings), status, status, tx.nowMs, id)
  tx.forget()
  return row === undefined ? null : toApp(row)
}

/** Ends the app for every request at once; `cancelDeletedAppMail` wipes its mail in steps and drops the row. */
export function deleteApp(tx: WriteTransaction, id: AppId): boolean {
  const statement = tx.sql(
    "update app set status = 'deleted', status_at = ?, slug = app_id, version = version + 1 where app_id = ? and status <> 'deleted'",
  )
  const { changes } = statement.run(tx.nowMs, id)
  tx.sql('delete from delivery_key where app_id = ?').run(id)
  tx.forget()
  return changes === 1
}

/** One step of cancelling a deleted app's mail, wherever it stands; the app goes when none is left. */
export function cancelDeletedAppMail(tx: WriteTransaction, id: AppId): number {
  if (tx.app(id)?.status === 'active') return 0
  const ready = cancelReady(tx, id)
  if (ready > 0) return ready
  const rest = tx.sql('select * from queue where app_id = ? limit ?').all(id, stepMax) as QueueRow[]
  for (const row of rest) finish(tx, row, { state: 'cancelled', reason: 'app_gone', record: null })
  if (rest.length === 0) {
    tx.sql("delete from app where app_id = ? and status = 'deleted'").run(id)
    tx.forget()
  }
  return rest.length
}

/** One step of cancelling what waits for a worker: found by its index, however much others have queued. */
export function cancelReady(tx: WriteTransaction, id: string): number {
  const rows = tx
    .sql('select * from queue where state = 0 and lost < 2 and app_id = ? order by email_id limit ?')
    .all(id, stepMax) as QueueRow[]
  for (const row of rows) finish(tx, row, { state: 'cancelled', reason: 'app_gone', record: null })
  return rows.length
}

export function createKey(
  tx: WriteTransaction,
  key: { app: AppId; hash: KeyHash; name: string | null; expiresAt: number | null },
): KeyRecord {
  const id = newId('key', tx.nowMs)
  const row = tx
    .sql('insert into delivery_key values (?, ?, ?, ?, ?, ?, null, null) returning *')
    .get(id, key.hash, key.app, key.name, tx.nowMs, key.expiresAt)
  tx.forget()
  return toKeyRecord(row ?? {})
}

export function revokeKey(tx: WriteTransaction, id: KeyId): KeyRecord | null {
  const row = tx
    .sql('update delivery_key set revoked_at = coalesce(revoked_at, ?) where key_id = ? returning *')
    .get(tx.nowMs, id)
  tx.forget()
  return row === undefined ? null : toKeyRecord(row)
}

export function retryEmail(tx: WriteTransaction, id: EmailId): EmailChange {
  const row = findQueued(tx, id)
  if (typeof row === 'string') return row
  if (row.state === 2) return 'sending'
  if (row.state === 0) return 'not_deferred'
  tx.sql('update queue set state = 0, due_at = ? where email_id = ?').run(tx.nowMs, id)
  return 'done'
}

export function cancelEmail(tx: WriteTransaction, id: EmailId): EmailChange {
  const row = findQueued(tx, id)
  if (typeof row === 'string') return row
  if (row.state === 2) return 'sending'
  finish(tx, row, { state: 'cancelled', reason: 'by_operator', record: null })
  return 'done'
}

function findQueued(tx: WriteTransaction, id: EmailId): QueueRow | EmailChange {
  const row = tx.sql('select * from queue where email_id = ?').get(id) as QueueRow | undefined
  if (row !== undefined) return row
  return tx.sql('select 1 from history where email_id = ?').get(id) === undefined ? 'not_found' : 'finished'
}
