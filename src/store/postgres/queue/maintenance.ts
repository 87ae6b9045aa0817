/**
 * Maintenance in bounded steps, so that no request waits long for one: expired mail, mail of deleted
 * apps and old records are removed. Rate-limit rows that have refilled completely and old
 * idempotency keys are deleted by scans of their tables, one step at a time. Several processes may do
 * it at once: they skip each other's rows, and share the position of a scan.
 */

import { idempotencyMs, scanEveryMs, scanMax, stepMax } from '../../../domain/bounds.ts'
import type { EndedEmail } from '../../../domain/delivery/states.ts'
import type { AppId } from '../../../domain/id.ts'
import { markMissingKeys } from '../../scripts/missing-keys.ts'
import { deleteAppRecords, deleteOldActivity, deleteOldHistory, deleteOldRecords } from '../../scripts/retention.ts'
import { isInactive, queueParts } from '../../shared/queue-parts.ts'
import type { Maintained } from '../../store.ts'
import type { Query } from '../engine/connection.ts'
import type { PostgresContext } from '../engine/context.ts'
import { runIn } from '../engine/run-script.ts'
import { cancelDeletedAppMail, cancelQueued } from './cancel-app-mail.ts'
import { clockMs } from './functions.ts'
import { maintainPartitions, oldRowsMs } from './history-partitions.ts'
import { endChosen } from './outcome.ts'

const deadlineMs = 30_000

export async function maintain(context: PostgresContext): Promise<Maintained> {
  const query: Query = (text, values = []) => context.maintenance.query(text, values, { deadlineMs })
  await maintainPartitions(context)
  const expired = await expire(context)
  const cancelled = await cancelMailOfInactiveApps(context)
  const more = [
    expired.length === stepMax,
    cancelled.length > 0,
    await runIn(context, query, (on) => deleteOldHistory(on, oldRowsMs(on.nowMs))),
    await runIn(context, query, deleteOldActivity),
    await runIn(context, query, deleteAppRecords),
    await scanStep(context, rateBuckets),
    await scanStep(context, requestKeys),
    await findMissingKeys(context, query),
  ]
  return { more: more.includes(true), ended: [...expired, ...cancelled] }
}

/** One step: if it ends `stepMax` emails, there may be more. */
function expire(context: PostgresContext): Promise<EndedEmail[]> {
  const chosen = `select email_id, app_id from ${context.schema}.queue
    where expires_at <= ${clockMs('$1')} and state in ('queued', 'deferred')
    order by expires_at limit ${stepMax} for update skip locked`
  return endChosen(context, { chosen, state: 'expired', reason: null }, deadlineMs)
}

async function cancelMailOfInactiveApps(context: PostgresContext): Promise<EndedEmail[]> {
  const { clock, maintenance, schema } = context
  const text = `select app_id, status from ${schema}.app a
    where ${isInactive(clockMs('$1'))} and (status = 'deleted'
      or exists (select from ${schema}.queue where ${queueParts.ready} and app_id = a.app_id)
      or exists (select from ${schema}.queue where ${queueParts.suspect} and app_id = a.app_id))`
  const inactive = await maintenance.query<{ app_id: AppId; status: string }>(text, [clock.offsetMs], {
    deadlineMs,
  })
  const cancelled: EndedEmail[] = []
  for (const { app_id, status } of inactive)
    cancelled.push(...(await (status === 'deleted' ? cancelDeletedAppMail : cancelQueued)(context, app_id)))
  return cancelled
}

/** Once after the start, if the ring lacks a key that the database was used with. */
async function findMissingKeys(context: PostgresContext, query: Query): Promise<boolean> {
  const { missingKeys, ring } = context
  const { after } = missingKeys
  if (after === null) return false
  missingKeys.after = await runIn(context, query, (on) => markMissingKeys(on, ring, after))
  return missingKeys.after !== null
}

/** A table of keyed hashes: its key beside the app, and which rows are old. */
type ScannedTable = { readonly table: string; readonly key: string; readonly isOld: string }

const rateBuckets: ScannedTable = {
  table: 'rate_bucket',
  key: 'bucket',
  isOld: `t.arrival_us < ${clockMs('$4')} * 1000`,
}
const requestKeys: ScannedTable = {
  table: 'idempotency',
  key: 'request_key',
  isOld: `t.created_at <= ${clockMs('$4')} - ${idempotencyMs}`,
}

type Scan = { after_app: string; after_key: string; begun_at: number; ended: boolean }

/** One step of the scan of a table. A scan begins every ten minutes. */
function scanStep(context: PostgresContext, scanned: ScannedTable): Promise<boolean> {
  const { clock, maintenance, schema } = context
  return maintenance.transaction(async (query) => {
    const [scan] = await query<Scan>(`select * from ${schema}.scan where name = $1 for update skip locked`, [
      scanned.table,
    ])
    if (scan === undefined) return false // another process makes this step
    if (scan.ended && Math.abs(clock.nowMs() - scan.begun_at) < scanEveryMs) return false
    const more = scanned === rateBuckets && (await runIn(context, query, deleteOldRecords))
    const after = scan.ended ? ['', ''] : [scan.after_app, scan.after_key]
    const begunAt = scan.ended ? clock.nowMs() : scan.begun_at
    const values = [...after, scanMax, clock.offsetMs]
    const [last] = await query<{ app_id: string; key: string }>(deleteOldRows(schema, scanned), values)
    const update = `update ${schema}.scan
      set after_app = $2, after_key = $3, begun_at = $4, ended = $5 where name = $1`
    // At its end the scan stays where it is for as long as there are old records elsewhere.
    const [afterApp, afterKey] = last === undefined ? after : [last.app_id, last.key]
    const ended = last === undefined && !more
    await query(update, [scanned.table, afterApp, afterKey, begunAt, ended])
    return !ended
  }, deadlineMs)
}

/** Deletes the old rows of one step; its result is the last row that the step read. */
const deleteOldRows = (schema: string, { table, key, isOld }: ScannedTable): string =>
  `with step as materialized (
      select app_id, ${key} from ${schema}.${table} where (app_id, ${key}) > ($1, $2) order by app_id, ${key} limit $3
    ), old as (
      select t.app_id, t.${key} from step join ${schema}.${table} t using (app_id, ${key})
      where ${isOld} for update of t skip locked
    ), deleted as (
      delete from ${schema}.${table} t using old where t.app_id = old.app_id and t.${key} = old.${key}
    )
    select app_id, ${key} as key from step order by app_id desc, ${key} desc limit 1`
