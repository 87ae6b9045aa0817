/** Writes what processes observe: counts behind charts, refusals, and the processes themselves. */

import type { ActivityRow } from '../../domain/activity.ts'
import { dayMs } from '../../domain/duration.ts'
import type { NodeId } from '../../domain/id.ts'
import { type NodeRecord, nodeSilentMs } from '../../domain/node.ts'
import { type RefusedRequest, refusalsMax } from '../../domain/request/refused-request.ts'
import { activityApp } from '../shared/records.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'

const deadlineMs = 10_000

/** The rows are written in one order, so that processes that write the same ones never wait for each other in a circle. */
export async function addActivity(
  { observers, schema }: PostgresContext,
  rows: readonly ActivityRow[],
): Promise<void> {
  const text = `insert into ${schema}.activity as known (app_id, minute, event, count)
    select * from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) order by 1, 2, 3
    on conflict (app_id, minute, event) do update set count = known.count + excluded.count`
  const columns = [
    rows.map(({ app }) => activityApp(app)),
    rows.map(({ minute }) => minute),
    rows.map(({ event }) => event),
    rows.map(({ count }) => count),
  ]
  await observers.query(text, columns, { deadlineMs })
}

export async function addRefusals(
  { observers, schema }: PostgresContext,
  refusals: readonly RefusedRequest[],
): Promise<void> {
  const insert = `insert into ${schema}.refusal (request_id, at, app_id, key_id, code, issues, origin)
    select * from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::json[], $7::text[]) order by 1
    on conflict (request_id) do nothing`
  const columns = [
    refusals.map(({ requestId }) => requestId),
    refusals.map(({ at }) => at),
    refusals.map(({ app }) => app),
    refusals.map(({ key }) => key),
    refusals.map(({ code }) => code),
    refusals.map(({ issues }) => JSON.stringify(issues)),
    refusals.map(({ origin }) => origin),
  ]
  // Rows that another process is deleting are left to it.
  const cut = `delete from ${schema}.refusal where request_id in (
      select old.request_id from unnest($1::text[]) app(id) join ${schema}.refusal old on old.app_id = app.id
        and old.request_id <= (select request_id from ${schema}.refusal
          where app_id = app.id order by request_id desc limit 1 offset $2)
      for update of old skip locked)`
  await observers.transaction(async (query) => {
    await query(insert, columns)
    await query(cut, [[...new Set(refusals.map(({ app }) => app))], refusalsMax])
  }, deadlineMs)
}

export async function noteNode(
  { clock, observers, schema }: PostgresContext,
  { id, machine, version, roles, startedAt, relays }: Omit<NodeRecord, 'seenAt'>,
): Promise<void> {
  const now = clockMs('$1')
  const text = `with gone as (delete from ${schema}.node where seen_at < ${now} - ${dayMs}
      or (machine = $3 and roles::text = $5 and seen_at < least($6, ${now} - ${nodeSilentMs})))
    insert into ${schema}.node (node_id, machine, version, roles, started_at, seen_at, relays)
    values ($2, $3, $4, $5::json, $6, ${now}, $7)
    on conflict (node_id) do update set seen_at = excluded.seen_at, relays = excluded.relays`
  const values = [
    clock.offsetMs,
    id,
    machine,
    version,
    JSON.stringify(roles),
    startedAt,
    JSON.stringify(relays),
  ]
  await observers.query(text, values, { deadlineMs })
}

export async function removeNode({ observers, schema }: PostgresContext, id: NodeId): Promise<void> {
  await observers.query(`delete from ${schema}.node where node_id = $1`, [id], { deadlineMs })
}
