/**
 * What an operator changes: apps, keys, single emails. Each takes effect for the next request on
 * every node, since the transaction that decides a request reads what stands here.
 */
import type { App, AppSettings, AppStatus } from '../../domain/app/app.ts'
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { type AppId, type EmailId, type KeyId, newId } from '../../domain/id.ts'
import { heldDays, stepMax } from '../shared/bounds.ts'
import { type Row, toApp, toKeyRecord } from '../shared/records.ts'
import type { EmailChange, KeyRecord } from '../store.ts'
import type { Connection, Query } from './connection.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'
import { finishFunction } from './outcome.ts'

const deadlineMs = 10_000
const dayMs = 86_400_000

const ask = <R = Row>(database: PostgresContext, text: string, values: unknown[]): Promise<R[]> =>
  database.general.query<R>(database.sql(text), values, { deadlineMs })

/** Statements in one transaction, written for the schema "postern". */
const together = <T>(database: PostgresContext, work: (query: Query) => Promise<T>): Promise<T> =>
  database.general.transaction(
    (query) => work((text, values) => query(database.sql(text), values)),
    deadlineMs,
  )

export async function createApp(
  database: PostgresContext,
  slug: string,
  settings: AppSettings,
): Promise<App | null> {
  const { clock } = database
  const text = `with made as (
      insert into postern.app (app_id, slug, version, status, status_at, created_at, settings)
      select $1, $2, 1, 'active', now_ms, now_ms, $3 from (select ${clockMs('$4')} as now_ms) c
      on conflict (slug) do nothing returning *
    ), locked as (insert into postern.app_lock select app_id from made)
    select * from made`
  const values = [newId('app', clock.nowMs()), slug, JSON.stringify(settings), clock.offsetMs]
  const [row] = await ask(database, text, values)
  return row === undefined ? null : toApp(row)
}

export async function updateApp(
  database: PostgresContext,
  id: AppId,
  change: { settings?: AppSettings; status?: AppStatus },
): Promise<App | null> {
  const text = `update postern.app set version = version + 1, settings = coalesce($2, settings),
      status = coalesce($3, status),
      status_at = case when coalesce($3, status) = status then status_at else ${clockMs('$4')} end
    where app_id = $1 and status <> 'deleted' returning *`
  const settings = change.settings === undefined ? null : JSON.stringify(change.settings)
  const [row] = await ask(database, text, [id, settings, change.status ?? null, database.clock.offsetMs])
  return row === undefined ? null : toApp(row)
}

/**
 * Ends the app for every request at once; `cancelDeletedAppMail` wipes its mail in steps and drops the row.
 * Its lock is taken first, so that what a request under way admits is there to be cancelled.
 */
export const deleteApp = (database: PostgresContext, id: AppId): Promise<boolean> =>
  together(database, async (query) => {
    await query('select from postern.app_lock where app_id = $1 for update', [id])
    await query('delete from postern.delivery_key where app_id = $1', [id])
    const text = `update postern.app set status = 'deleted', status_at = ${clockMs('$2')}, slug = app_id, version = version + 1
      where app_id = $1 and status <> 'deleted' returning app_id`
    return (await query(text, [id, database.clock.offsetMs])).length === 1
  })

/**
 * One step of cancelling a deleted app's mail, wherever it stands; the app goes when none is left.
 * What a claim is taking at this moment is left to the next step.
 */
export async function cancelDeletedAppMail(
  database: PostgresContext,
  id: AppId,
  by = database.general,
): Promise<number> {
  const cancelled = await cancelReady(database, id, by)
  if (cancelled > 0) return cancelled
  const rest = await cancel(database, { where: 'true', id, by })
  if (rest === 0) {
    const text = `with dropped as (delete from postern.app where app_id = $1 and status = 'deleted'
        and not exists (select from postern.queue where app_id = $1) returning app_id)
      delete from postern.app_lock using dropped where app_lock.app_id = dropped.app_id`
    await by.query(database.sql(text), [id], { deadlineMs })
  }
  return rest
}

/** One step of cancelling what waits for a worker: found by its index, however much others have queued. */
export const cancelReady = (database: PostgresContext, id: AppId, by = database.general): Promise<number> =>
  cancel(database, { where: 'state = 0 and lost < 2', id, by })

type Cancellation = { where: string; id: AppId; by: Connection }

/** Asks anew whether the app is gone: who read that it is may have read it long ago. */
async function cancel(database: PostgresContext, { where, id, by }: Cancellation): Promise<number> {
  const text = `with chosen as materialized (
      select email_id from postern.queue where app_id = $3 and ${where} and exists (
        select from postern.app where app_id = $3 and (status = 'deleted'
          or (status = 'disabled' and status_at <= ${clockMs('$2')} - ${heldDays * dayMs})))
      order by email_id limit ${stepMax} for update skip locked
    )
    select ${finishFunction.name}($1, ${clockMs('$2')}, array_agg(email_id), array_agg('cancelled'::text),
      array_agg('app_gone'::text), array_agg(null::jsonb)) as n from chosen`
  const values = [database.slot, database.clock.offsetMs, id]
  const [row] = await by.query<{ n: number }>(database.sql(text), values, { deadlineMs })
  return row?.n ?? 0
}

export async function createKey(
  database: PostgresContext,
  key: { app: AppId; hash: KeyHash; name: string | null; expiresAt: number | null },
): Promise<KeyRecord> {
  const text = `insert into postern.delivery_key values ($1, $2, $3, $4, ${clockMs('$6')}, $5, null, null) returning *`
  const { clock } = database
  const values = [newId('key', clock.nowMs()), key.hash, key.app, key.name, key.expiresAt, clock.offsetMs]
  const [row] = await ask(database, text, values)
  return toKeyRecord(row ?? {})
}

export async function revokeKey(database: PostgresContext, id: KeyId): Promise<KeyRecord | null> {
  const text = `update postern.delivery_key set revoked_at = coalesce(revoked_at, ${clockMs('$2')})
    where key_id = $1 returning *`
  const [row] = await ask(database, text, [id, database.clock.offsetMs])
  return row === undefined ? null : toKeyRecord(row)
}

export const retryEmail = (database: PostgresContext, id: EmailId): Promise<EmailChange> =>
  together(database, async (query) => {
    const state = await lockQueued(query, id)
    if (typeof state === 'string') return state
    if (state === 2) return 'sending'
    if (state === 0) return 'not_deferred'
    const text = `update postern.queue set state = 0, due_at = ${clockMs('$2')} where email_id = $1`
    await query(text, [id, database.clock.offsetMs])
    return 'done'
  })

export const cancelEmail = (database: PostgresContext, id: EmailId): Promise<EmailChange> =>
  together(database, async (query) => {
    const state = await lockQueued(query, id)
    if (typeof state === 'string') return state
    if (state === 2) return 'sending'
    const text = `select ${finishFunction.name}($1, ${clockMs('$2')}, array[$3], '{cancelled}', '{by_operator}', '{null}')`
    await query(text, [database.slot, database.clock.offsetMs, id])
    return 'done'
  })

async function lockQueued(query: Query, id: EmailId): Promise<number | EmailChange> {
  const [row] = await query<{ state: number }>(
    'select state from postern.queue where email_id = $1 for update',
    [id],
  )
  if (row !== undefined) return row.state
  const finished = await query('select from postern.history where email_id = $1', [id])
  return finished.length === 0 ? 'not_found' : 'finished'
}
