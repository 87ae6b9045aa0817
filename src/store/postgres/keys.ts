/** Changes of delivery keys. Each takes effect for the next request in every process. */
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { type AppId, type KeyId, newId } from '../../domain/id.ts'
import { toKeyRecord } from '../shared/records.ts'
import type { KeyRecord, KeyReplacement } from '../store.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'

const deadlineMs = 10_000

export async function createKey(
  { clock, operators, schema }: PostgresContext,
  key: { app: AppId; hash: KeyHash; name: string | null; expiresAt: number | null },
): Promise<KeyRecord> {
  const text = `insert into ${schema}.delivery_key (key_id, key_hash, app_id, name, created_at, expires_at)
    values ($1, $2, $3, $4, ${clockMs('$6')}, $5) returning *`
  const values = [newId('key', clock.nowMs()), key.hash, key.app, key.name, key.expiresAt, clock.offsetMs]
  const [row] = await operators.query(text, values, { deadlineMs })
  return toKeyRecord(row ?? {})
}

export async function replaceKey(
  { clock, operators, schema }: PostgresContext,
  id: KeyId,
  { hash, expiresAt, oldExpiresAt }: KeyReplacement,
): Promise<KeyRecord | 'ended' | null> {
  const now = clockMs('$6')
  const text = `with old as (
      update ${schema}.delivery_key set expires_at = least(expires_at, $2)
      where key_id = $1 and revoked_at is null and (expires_at is null or expires_at > ${now})
      returning app_id, name)
    insert into ${schema}.delivery_key (key_id, key_hash, app_id, name, created_at, expires_at)
    select $3, $4, app_id, name, ${now}, $5 from old returning *`
  const values = [id, oldExpiresAt, newId('key', clock.nowMs()), hash, expiresAt, clock.offsetMs]
  const [made] = await operators.query(text, values, { deadlineMs })
  if (made !== undefined) return toKeyRecord(made)
  const present = `select from ${schema}.delivery_key where key_id = $1`
  return (await operators.query(present, [id], { deadlineMs })).length === 0 ? null : 'ended'
}

export async function revokeKey(
  { clock, operators, schema }: PostgresContext,
  id: KeyId,
): Promise<KeyRecord | null> {
  const text = `update ${schema}.delivery_key set revoked_at = coalesce(revoked_at, ${clockMs('$2')})
    where key_id = $1 returning *`
  const [row] = await operators.query(text, [id, clock.offsetMs], { deadlineMs })
  return row === undefined ? null : toKeyRecord(row)
}
