/**
 * Upkeep in bounded steps, so that none of it ever stands in the way of a request: what has been
 * kept long enough goes, mail of apps that are gone is cancelled, and buckets that say no more
 * than an absent one are dropped in slow passes over their tables. Several processes may do it at
 * once: they pass over each other's rows, and share where a pass stands.
 */
import { type AppId, idFloor } from '../../domain/id.ts'
import { heldDays, idempotencyMs, keepDays, passEveryMs, passMax, stepMax } from '../shared/bounds.ts'
import { cancelDeletedAppMail, cancelReady } from './admin.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'
import { finishFunction } from './outcome.ts'

const deadlineMs = 30_000
const dayMs = 86_400_000

/** True while there is more to do now. */
export async function maintain(database: PostgresContext): Promise<boolean> {
  const more = [
    await expire(database),
    await cancelGoneApps(database),
    await dropHistory(database),
    await passOver(database, 'rate', `t.tat < ${clockMs('$4')} * 1000`),
    await passOver(database, 'idempotency', `t.at <= ${clockMs('$4')} - ${idempotencyMs}`),
  ]
  return more.includes(true)
}

const ask = <R = Record<string, unknown>>(
  database: PostgresContext,
  text: string,
  values: unknown[],
): Promise<R[]> => database.upkeep.query<R>(database.sql(text), values, { deadlineMs })

/** One step; true where there may be more. */
async function expire(database: PostgresContext): Promise<boolean> {
  const text = `with chosen as materialized (
      select email_id from postern.queue where expires_at <= ${clockMs('$2')} and state in (0, 1)
      order by expires_at limit ${stepMax} for update skip locked
    )
    select ${finishFunction.name}($1, ${clockMs('$2')}, array_agg(email_id), array_agg('expired'::text),
      array_agg(null::text), array_agg(null::jsonb)) as n from chosen`
  const [row] = await ask<{ n: number }>(database, text, [database.slot, database.clock.offsetMs])
  return row?.n === stepMax
}

async function cancelGoneApps(database: PostgresContext): Promise<boolean> {
  const text = `select app_id, status from postern.app a
    where status = 'deleted' or (status = 'disabled' and status_at <= ${clockMs('$1')} - ${heldDays * dayMs}
      and exists (select from postern.queue q where q.state = 0 and q.lost < 2 and q.app_id = a.app_id))`
  const gone = await ask<{ app_id: AppId; status: string }>(database, text, [database.clock.offsetMs])
  let cancelled = 0
  for (const { app_id, status } of gone)
    cancelled += await (status === 'deleted' ? cancelDeletedAppMail : cancelReady)(
      database,
      app_id,
      database.upkeep,
    )
  return cancelled > 0
}

async function dropHistory(database: PostgresContext): Promise<boolean> {
  const text = `delete from postern.history where email_id in (
      select email_id from postern.history where email_id < $1 order by email_id limit ${stepMax} for update skip locked
    ) returning 1`
  const floor = idFloor('em', database.clock.nowMs() - keepDays * dayMs)
  return (await ask(database, text, [floor])).length === stepMax
}

type Pass = { after_app: string; after_k: string; begun_at: number; ended: boolean }
type Place = { app_id: string; k: string }

/** One page of the pass over a table of keyed hashes; a pass begins every ten minutes. */
function passOver(database: PostgresContext, table: 'rate' | 'idempotency', stale: string): Promise<boolean> {
  const { clock, sql } = database
  return database.upkeep.transaction(async (query) => {
    const [pass] = await query<Pass>(
      sql('select * from postern.pass where name = $1 for update skip locked'),
      [table],
    )
    if (pass === undefined) return false // another process is at it
    if (pass.ended) {
      if (Math.abs(clock.nowMs() - pass.begun_at) < passEveryMs) return false
      if (table === 'rate')
        await query(sql('delete from postern.usage_day where day < $1'), [
          Math.floor(clock.nowMs() / dayMs) - keepDays,
        ])
    }
    const [afterApp, afterK] = pass.ended ? ['', ''] : [pass.after_app, pass.after_k]
    const begunAt = pass.ended ? clock.nowMs() : pass.begun_at
    const text = `with page as materialized (
        select app_id, k from postern.${table} where (app_id, k) > ($1, $2) order by app_id, k limit $3
      ), stale as (
        select t.app_id, t.k from page join postern.${table} t using (app_id, k) where ${stale} for update of t skip locked
      ), dropped as (
        delete from postern.${table} t using stale where t.app_id = stale.app_id and t.k = stale.k
      )
      select app_id, k from page order by app_id desc, k desc limit 1`
    const [last] = await query<Place>(sql(text), [afterApp, afterK, passMax, clock.offsetMs])
    const place: Place = last ?? { app_id: '', k: '' }
    const update =
      'update postern.pass set after_app = $2, after_k = $3, begun_at = $4, ended = $5 where name = $1'
    await query(sql(update), [table, place.app_id, place.k, begunAt, last === undefined])
    return last !== undefined
  }, deadlineMs)
}
