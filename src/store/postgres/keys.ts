/** Changes of delivery keys. Each takes effect for the next request in every process. */
import type { Actor } from '../../domain/audit.ts'
import { type KeyId, newId } from '../../domain/id.ts'
import type { KeyChange, KeyRecord, KeyReplacement, NewKeyRecord } from '../operator-store.ts'
import { keyChanged, keyCreated, keyReplaced } from '../shared/audited.ts'
import { keysMax } from '../shared/bounds.ts'
import { toKeyRecord } from '../shared/records.ts'
import { withAudit } from './audit.ts'
import type { Query } from './connection.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'

export const createKey = (
  context: PostgresContext,
  key: NewKeyRecord,
  actor: Actor,
): Promise<KeyRecord | 'name_taken' | 'too_many' | null> =>
  withAudit(context, actor, async ({ query, record }) => {
    if (!(await lockApp(query, context, key.app))) return null
    if (key.name !== null && (await isNameTaken(query, context, { ...key, name: key.name })))
      return 'name_taken'
    if (await hasTooMany(query, context, key)) return 'too_many'
    const made = await insert(query, context, { ...key, createdBy: actor.name, replaces: null })
    await record(keyCreated(made))
    return made
  })

/** Locks the app against other changes by operators, so that the names of its keys stay as they are. */
async function lockApp(query: Query, { schema }: PostgresContext, app: string): Promise<boolean> {
  const text = `select from ${schema}.app where app_id = $1 and status <> 'deleted' for no key update`
  return (await query(text, [app])).length === 1
}

/** `offset` is the placeholder of the clock's offset. */
const isLive = (offset: string): string =>
  `revoked_at is null and (expires_at is null or expires_at > ${clockMs(offset)})`

async function hasTooMany(
  query: Query,
  { clock, schema }: PostgresContext,
  { app, except = '' }: { app: string; except?: string },
): Promise<boolean> {
  const text = `select count(*) as keys from ${schema}.delivery_key
    where app_id = $1 and key_id <> $2 and ${isLive('$3')}`
  const [row] = await query<{ keys: number }>(text, [app, except, clock.offsetMs])
  return Number(row?.keys) >= keysMax
}

/** Deletes the oldest keys that have ended, beyond `keysMax`. */
async function forgetEndedKeys(query: Query, { clock, schema }: PostgresContext, app: string): Promise<void> {
  const text = `delete from ${schema}.delivery_key where key_id in (select key_id from ${schema}.delivery_key
    where app_id = $1 and not (${isLive('$2')}) order by key_id desc offset ${keysMax})`
  await query(text, [app, clock.offsetMs])
}

async function isNameTaken(
  query: Query,
  { clock, schema }: PostgresContext,
  { app, name, except = '' }: { app: string; name: string; except?: string },
): Promise<boolean> {
  const text = `select from ${schema}.delivery_key where app_id = $1 and name = $2 and key_id <> $3
    and ${isLive('$4')} limit 1`
  return (await query(text, [app, name, except, clock.offsetMs])).length > 0
}

async function insert(
  query: Query,
  context: PostgresContext,
  key: NewKeyRecord & Pick<KeyRecord, 'createdBy' | 'replaces'>,
): Promise<KeyRecord> {
  const { clock, schema } = context
  const text = `insert into ${schema}.delivery_key
      (key_id, key_hash, app_id, name, created_at, created_by, expires_at, replaces)
    values ($1, $2, $3, $4, ${clockMs('$8')}, $5, $6, $7) returning *`
  const { hash, app, name, createdBy, expiresAt, replaces } = key
  const id = newId('key', clock.nowMs())
  const [row] = await query(text, [id, hash, app, name, createdBy, expiresAt, replaces, clock.offsetMs])
  await forgetEndedKeys(query, context, app)
  return toKeyRecord(row ?? {})
}

type Locked = { readonly key: KeyRecord; readonly hasEnded: boolean; readonly nowMs: number }

async function lockKey(query: Query, { clock, schema }: PostgresContext, id: KeyId): Promise<Locked | null> {
  const text = `select *, coalesce(least(revoked_at, expires_at) <= now_ms, false) as has_ended, now_ms
    from ${schema}.delivery_key, (select ${clockMs('$2')} as now_ms) c where key_id = $1 for update of delivery_key`
  const [row] = await query(text, [id, clock.offsetMs])
  if (row === undefined) return null
  return { key: toKeyRecord(row), hasEnded: row.has_ended === true, nowMs: row.now_ms as number }
}

export const updateKey = (
  context: PostgresContext,
  id: KeyId,
  { name, expiresAt }: KeyChange,
  actor: Actor,
): Promise<KeyRecord | 'name_taken' | 'ended' | null> =>
  withAudit(context, actor, async ({ query, record }) => {
    const locked = await lockWithApp(query, context, id)
    if (locked === null) return null
    const { key, hasEnded } = locked
    if (hasEnded) return 'ended'
    const isNew = name !== undefined && name !== key.name
    if (isNew && (await isNameTaken(query, context, { app: key.app, name, except: id }))) return 'name_taken'
    const next = {
      ...key,
      name: name ?? key.name,
      expiresAt: expiresAt === undefined ? key.expiresAt : expiresAt,
    }
    const action = keyChanged('key.update', key, next)
    if (action === null) return key
    const text = `update ${context.schema}.delivery_key set name = $2, expires_at = $3 where key_id = $1`
    await query(text, [id, next.name, next.expiresAt])
    await record(action)
    return next
  })

/** The app is locked before the key, as everywhere, so that no two transactions wait for each other. */
async function lockWithApp(query: Query, context: PostgresContext, id: KeyId): Promise<Locked | null> {
  const text = `select app_id from ${context.schema}.delivery_key where key_id = $1`
  const [row] = await query<{ app_id: string }>(text, [id])
  if (row === undefined || !(await lockApp(query, context, row.app_id))) return null
  return lockKey(query, context, id)
}

export const replaceKey = (
  context: PostgresContext,
  id: KeyId,
  { hash, expiresAt, oldExpiresAt }: KeyReplacement,
  actor: Actor,
): Promise<KeyRecord | 'ended' | 'too_many' | null> =>
  withAudit(context, actor, async ({ query, record }) => {
    const locked = await lockWithApp(query, context, id)
    if (locked === null) return null
    const { key: old, hasEnded } = locked
    if (hasEnded) return 'ended'
    const end = Math.min(old.expiresAt ?? oldExpiresAt, oldExpiresAt)
    if (await hasTooMany(query, context, { app: old.app, except: id })) return 'too_many'
    await query(`update ${context.schema}.delivery_key set expires_at = $2 where key_id = $1`, [id, end])
    const next = { app: old.app, hash, name: old.name, expiresAt, createdBy: actor.name, replaces: id }
    const made = await insert(query, context, next)
    await record(keyReplaced(old, made, end))
    return made
  })

export const revokeKey = (context: PostgresContext, id: KeyId, actor: Actor): Promise<KeyRecord | null> =>
  withAudit(context, actor, async ({ query, record }) => {
    const locked = await lockWithApp(query, context, id)
    if (locked === null || locked.key.revokedAt !== null) return locked?.key ?? null
    const { key, nowMs } = locked
    await query(`update ${context.schema}.delivery_key set revoked_at = $2 where key_id = $1`, [id, nowMs])
    const next = { ...key, revokedAt: nowMs }
    const action = keyChanged('key.revoke', key, next)
    if (action !== null) await record(action)
    return next
  })
