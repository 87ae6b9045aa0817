/** Changes of delivery keys. Each takes effect for the next request in every process. */
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { type AppId, type KeyId, newId } from '../../domain/id.ts'
import { hasEnded, toKeyRecord } from '../shared/records.ts'
import type { KeyRecord } from '../store.ts'
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

export const replaceKey = (
  { clock, operators, schema }: PostgresContext,
  id: KeyId,
  next: { hash: KeyHash; expiresAt: number },
): Promise<KeyRecord | 'ended' | null> =>
  operators.transaction(async (query) => {
    const [row] = await query(`select * from ${schema}.delivery_key where key_id = $1 for update`, [id])
    if (row === undefined) return null
    if (hasEnded(toKeyRecord(row), clock.nowMs())) return 'ended'
    await query(`update ${schema}.delivery_key set expires_at = least(expires_at, $2) where key_id = $1`, [
      id,
      next.expiresAt,
    ])
    const text = `insert into ${schema}.delivery_key (key_id, key_hash, app_id, name, created_at)
      select $1, $2, app_id, name, ${clockMs('$4')} from ${schema}.delivery_key where key_id = $3 returning *`
    const [made] = await query(text, [newId('key', clock.nowMs()), next.hash, id, clock.offsetMs])
    return toKeyRecord(made ?? {})
  }, deadlineMs)

export async function revokeKey(
  { clock, operators, schema }: PostgresContext,
  id: KeyId,
): Promise<KeyRecord | null> {
  const text = `update ${schema}.delivery_key set revoked_at = coalesce(revoked_at, ${clockMs('$2')})
    where key_id = $1 returning *`
  const [row] = await operators.query(text, [id, clock.offsetMs], { deadlineMs })
  return row === undefined ? null : toKeyRecord(row)
}
