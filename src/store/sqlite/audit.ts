/** Audit entries, in the transaction of the change that they record. */
import type { Action, Actor } from '../../domain/audit.ts'
import { newId } from '../../domain/id.ts'
import { auditColumns } from '../shared/records.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

export function recordAction(tx: WriteTransaction, action: Action, actor: Actor): void {
  const columns = auditColumns(action, actor)
  const names = Object.keys(columns)
  tx.sql(
    `insert into audit (audit_id, at, ${names.join(', ')}) values (?, ?, ${names.map(() => '?').join(', ')})`,
  ).run(newId('au', tx.nowMs), tx.nowMs, ...Object.values(columns))
}
