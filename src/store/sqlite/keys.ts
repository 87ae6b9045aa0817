/** Changes of delivery keys. Each takes effect for the next request. */
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { type AppId, type KeyId, newId } from '../../domain/id.ts'
import { hasEnded, toKeyRecord } from '../shared/records.ts'
import type { KeyRecord, KeyReplacement } from '../store.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

export function createKey(
  tx: WriteTransaction,
  key: { app: AppId; hash: KeyHash; name: string | null; expiresAt: number | null },
): KeyRecord {
  const row = tx
    .sql(
      `insert into delivery_key (key_id, key_hash, app_id, name, created_at, expires_at)
       values (?, ?, ?, ?, ?, ?) returning *`,
    )
    .get(newId('key', tx.nowMs), key.hash, key.app, key.name, tx.nowMs, key.expiresAt)
  tx.clearCaches()
  return toKeyRecord(row ?? {})
}

export function replaceKey(
  tx: WriteTransaction,
  id: KeyId,
  next: KeyReplacement,
): KeyRecord | 'ended' | null {
  const row = tx.sql('select * from delivery_key where key_id = ?').get(id)
  if (row === undefined) return null
  const old = toKeyRecord(row)
  if (hasEnded(old, tx.nowMs)) return 'ended'
  const { hash, expiresAt, oldExpiresAt } = next
  const end = Math.min(old.expiresAt ?? oldExpiresAt, oldExpiresAt)
  tx.sql('update delivery_key set expires_at = ? where key_id = ?').run(end, id)
  return createKey(tx, { app: old.app, hash, name: old.name, expiresAt })
}

export function revokeKey(tx: WriteTransaction, id: KeyId): KeyRecord | null {
  const row = tx
    .sql('update delivery_key set revoked_at = coalesce(revoked_at, ?) where key_id = ? returning *')
    .get(tx.nowMs, id)
  tx.clearCaches()
  return row === undefined ? null : toKeyRecord(row)
}
