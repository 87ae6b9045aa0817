/** Writes what processes observe: counts behind charts, refusals, and the processes themselves. */

import type { ActivityRow } from '../../domain/activity.ts'
import { dayMs } from '../../domain/duration.ts'
import type { NodeId } from '../../domain/id.ts'
import { type NodeRecord, nodeSilentMs } from '../../domain/node.ts'
import { type RefusedRequest, refusalsMax } from '../../domain/request/refused-request.ts'
import { activityApp } from '../shared/records.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

export function addActivity(tx: WriteTransaction, rows: readonly ActivityRow[]): void {
  const statement = tx.sql(
    `insert into activity (app_id, minute, event, count) values (?, ?, ?, ?)
     on conflict (app_id, minute, event) do update set count = count + excluded.count`,
  )
  for (const { app, minute, event, count } of rows) statement.run(activityApp(app), minute, event, count)
}

export function addRefusals(tx: WriteTransaction, refusals: readonly RefusedRequest[]): void {
  const statement = tx.sql(
    `insert or ignore into refusal (request_id, at, app_id, key_id, code, issues, origin)
     values (?, ?, ?, ?, ?, ?, ?)`,
  )
  for (const { requestId, at, app, key, code, issues, origin } of refusals)
    statement.run(requestId, at, app, key, code, JSON.stringify(issues), origin)
  for (const app of new Set(refusals.map(({ app }) => app))) {
    tx.sql(
      `delete from refusal where app_id = ? and request_id <=
         (select request_id from refusal where app_id = ? order by request_id desc limit 1 offset ?)`,
    ).run(app, app, refusalsMax)
  }
}

export function noteNode(tx: WriteTransaction, node: Omit<NodeRecord, 'seenAt'>): void {
  tx.sql(
    `insert or replace into node (node_id, machine, version, roles, started_at, seen_at, relays)
     values (?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    node.id,
    node.machine,
    node.version,
    JSON.stringify(node.roles),
    node.startedAt,
    tx.nowMs,
    JSON.stringify(node.relays),
  )
  tx.sql('delete from node where seen_at < ?').run(tx.nowMs - dayMs)
  tx.sql('delete from node where machine = ? and roles = ? and seen_at < min(?, ?)').run(
    node.machine,
    JSON.stringify(node.roles),
    node.startedAt,
    tx.nowMs - nodeSilentMs,
  )
}

export function removeNode(tx: WriteTransaction, id: NodeId): void {
  tx.sql('delete from node where node_id = ?').run(id)
}
