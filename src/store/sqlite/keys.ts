/** Changes of delivery keys. Each takes effect for the next request. */
import type { Actor } from '../../domain/audit.ts'
import { hasEnded } from '../../domain/bearer.ts'
import { type KeyId, newId } from '../../domain/id.ts'
import type { KeyChange, KeyRecord, KeyReplacement, NewKeyRecord } from '../operator-store.ts'
import { keyChanged, keyCreated, keyReplaced } from '../shared/audited.ts'
import { keysMax } from '../shared/bounds.ts'
import { toKeyRecord } from '../shared/records.ts'
import { recordAction } from './audit.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

export function createKey(
  tx: WriteTransaction,
  key: NewKeyRecord,
  actor: Actor,
): KeyRecord | 'name_taken' | 'too_many' | null {
  const app = tx.sql("select 1 from app where app_id = ? and status <> 'deleted'").get(key.app)
  if (app === undefined) return null
  if (key.name !== null && isNameTaken(tx, key.app, key.name)) return 'name_taken'
  if (hasTooMany(tx, key.app)) return 'too_many'
  const record = insert(tx, key, { actor, replaces: null })
  recordAction(tx, keyCreated(record), actor)
  return record
}

const isLive = 'revoked_at is null and (expires_at is null or expires_at > ?)'

const hasTooMany = (tx: WriteTransaction, app: string, except = ''): boolean =>
  Number(
    tx
      .sql(`select count(*) as keys from delivery_key where app_id = ? and key_id <> ? and ${isLive}`)
      .get(app, except, tx.nowMs)?.keys,
  ) >= keysMax

/** Deletes the oldest keys that have ended, beyond `keysMax`. */
function forgetEndedKeys(tx: WriteTransaction, app: string): void {
  tx.sql(
    `delete from delivery_key where key_id in (select key_id from delivery_key
       where app_id = ? and not (${isLive}) order by key_id desc limit -1 offset ${keysMax})`,
  ).run(app, tx.nowMs)
}

function isNameTaken(tx: WriteTransaction, app: string, name: string, except = ''): boolean {
  const row = tx
    .sql(`select 1 from delivery_key where app_id = ? and name = ? and key_id <> ? and ${isLive} limit 1`)
    .get(app, name, except, tx.nowMs)
  return row !== undefined
}

function insert(
  tx: WriteTransaction,
  key: NewKeyRecord,
  { actor, replaces }: { actor: Actor; replaces: KeyId | null },
): KeyRecord {
  const row = tx
    .sql(
      `insert into delivery_key (key_id, key_hash, app_id, name, created_at, created_by, expires_at, replaces)
       values (?, ?, ?, ?, ?, ?, ?, ?) returning *`,
    )
    .get(newId('key', tx.nowMs), key.hash, key.app, key.name, tx.nowMs, actor.name, key.expiresAt, replaces)
  forgetEndedKeys(tx, key.app)
  tx.clearCaches()
  return toKeyRecord(row ?? {})
}

function findKey(tx: WriteTransaction, id: KeyId): KeyRecord | null {
  const row = tx.sql('select * from delivery_key where key_id = ?').get(id)
  return row === undefined ? null : toKeyRecord(row)
}

export function updateKey(
  tx: WriteTransaction,
  id: KeyId,
  { name, expiresAt }: KeyChange,
  actor: Actor,
): KeyRecord | 'name_taken' | 'ended' | null {
  const key = findKey(tx, id)
  if (key === null) return null
  if (hasEnded(key, tx.nowMs)) return 'ended'
  if (name !== undefined && name !== key.name && isNameTaken(tx, key.app, name, id)) return 'name_taken'
  const next = {
    ...key,
    name: name ?? key.name,
    expiresAt: expiresAt === undefined ? key.expiresAt : expiresAt,
  }
  const action = keyChanged('key.update', key, next)
  if (action === null) return key
  tx.sql('update delivery_key set name = ?, expires_at = ? where key_id = ?').run(
    next.name,
    next.expiresAt,
    id,
  )
  tx.clearCaches()
  recordAction(tx, action, actor)
  return next
}

export function replaceKey(
  tx: WriteTransaction,
  id: KeyId,
  { hash, expiresAt, oldExpiresAt }: KeyReplacement,
  actor: Actor,
): KeyRecord | 'ended' | 'too_many' | null {
  const old = findKey(tx, id)
  if (old === null) return null
  if (hasEnded(old, tx.nowMs)) return 'ended'
  const end = Math.min(old.expiresAt ?? oldExpiresAt, oldExpiresAt)
  if (hasTooMany(tx, old.app, id)) return 'too_many'
  tx.sql('update delivery_key set expires_at = ? where key_id = ?').run(end, id)
  const record = insert(tx, { app: old.app, hash, name: old.name, expiresAt }, { actor, replaces: id })
  recordAction(tx, keyReplaced(old, record, end), actor)
  return record
}

export function revokeKey(tx: WriteTransaction, id: KeyId, actor: Actor): KeyRecord | null {
  const key = findKey(tx, id)
  if (key === null || key.revokedAt !== null) return key
  tx.sql('update delivery_key set revoked_at = ? where key_id = ?').run(tx.nowMs, id)
  tx.clearCaches()
  const next = { ...key, revokedAt: tx.nowMs }
  const action = keyChanged('key.revoke', key, next)
  if (action !== null) recordAction(tx, action, actor)
  return next
}
