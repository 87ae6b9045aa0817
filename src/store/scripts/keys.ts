/** Delivery keys: changes, which take effect for the next request in every process, and reads. */
import type { KeyHash } from '../../domain/app/delivery-key.ts'
import { firstTestSide, isTestSide, realSide, sideOf, testSide } from '../../domain/app/test-side.ts'
import type { AuthHookName } from '../../domain/auth-hooks/auth-hook-settings.ts'
import { hasEnded } from '../../domain/bearer.ts'
import { authHookSecretsMax, keyInUseMs, keysMax } from '../../domain/bounds.ts'
import { type AppId, type KeyId, newId } from '../../domain/id.ts'
import { type Action, type Actor, type AuditAction, differences } from '../../domain/operator/audit.ts'
import type { AuthHookKey, AuthHookSecretRecord, SealedSecret } from '../auth-hook-store.ts'
import type { ExpiringKey, KeyChange, KeyRecord, KeyReplacement, NewKeyRecord } from '../operator-store.ts'
import { type Row, toNetworks } from '../shared/rows.ts'
import { lockApp, makeTestSide } from './apps.ts'
import { recordAction } from './audit.ts'
import { lock, readAll, readOne, type Script, type ScriptContext } from './script.ts'

function* createKey(
  context: ScriptContext,
  key: NewKeyRecord,
  actor: Actor,
): Script<KeyRecord | 'name_taken' | 'too_many' | null> {
  const app = yield* lockApp(context, key.app)
  if (app === null) return null
  if (key.name !== null && (yield* isNameTaken(context, key.app, key.name))) return 'name_taken'
  if (yield* hasTooMany(context, key.app)) return 'too_many'
  if (key.isTest) yield* makeTestSide(context, app)
  const made = yield* insertKey(context, key, { actor, replaces: null })
  const action = keyAction('key.create', made, { before: null, after: toFacts(made) })
  yield* recordAction(context, action, actor)
  return made
}

function* updateKey(
  context: ScriptContext,
  id: KeyId,
  { name, expiresAt, networks }: KeyChange,
  actor: Actor,
): Script<KeyRecord | 'name_taken' | 'ended' | null> {
  const key = yield* lockKey(context, id)
  if (key === null) return null
  if (hasEnded(key, context.nowMs)) return 'ended'
  const isRenamed = name !== undefined && name !== key.name
  if (isRenamed && (yield* isNameTaken(context, key.app, name))) return 'name_taken'
  const next: KeyRecord = {
    ...key,
    name: name ?? key.name,
    expiresAt: expiresAt === undefined ? key.expiresAt : expiresAt,
    networks: networks === undefined ? key.networks : networks,
  }
  const changed = differences(toFacts(key), toFacts(next))
  if (changed === null) return key
  yield {
    text: `update ${context.prefix}delivery_key set name = $2, expires_at = $3, networks = $4 where key_id = $1`,
    values: [id, next.name, next.expiresAt, formatNetworks(next.networks)],
  }
  if (formatNetworks(next.networks) !== formatNetworks(key.networks)) yield* judgeAgain(context, key)
  yield* recordAction(context, keyAction('key.update', key, changed), actor)
  return next
}

function* replaceKey(
  context: ScriptContext,
  id: KeyId,
  { hash, expiresAt, oldExpiresAt, sealed }: KeyReplacement,
  actor: Actor,
): Script<KeyRecord | 'ended' | 'too_many' | null> {
  const old = yield* lockKey(context, id)
  if (old === null) return null
  if (hasEnded(old, context.nowMs)) return 'ended'
  // Somebody else has just replaced it: a second successor would have no end.
  if (old.hook !== null && (yield* isReplaced(context, old))) return 'ended'
  if (yield* hasTooMany(context, old.app, id)) return 'too_many'
  const ending = { ...old, expiresAt: Math.min(old.expiresAt ?? oldExpiresAt, oldExpiresAt) }
  yield {
    text: `update ${context.prefix}delivery_key set expires_at = $2 where key_id = $1`,
    values: [id, ending.expiresAt],
  }
  const ofAuthHook = { ...(old.hook !== null && { hook: old.hook }), ...(sealed !== undefined && { sealed }) }
  const { app, isTest, name, networks } = old
  const next = { app, isTest, hash, name, networks, expiresAt, ...ofAuthHook }
  const made = yield* insertKey(context, next, { actor, replaces: id })
  if (old.hook !== null) yield* endOldSecrets(context, old.app, old.hook)
  const change = { before: toFacts(old), after: { ...toFacts(ending), replacedBy: made.id } }
  yield* recordAction(context, keyAction('key.replace', old, change), actor)
  return made
}

/** Ends the oldest secrets of an auth server beyond `authHookSecretsMax`. */
function* endOldSecrets({ nowMs, prefix }: ScriptContext, app: AppId, hook: AuthHookName): Script<void> {
  yield {
    text: `update ${prefix}delivery_key set expires_at = $3 where key_id in (select key_id from ${prefix}delivery_key
      where app_id = $1 and hook = $2 and ${works('$3')} order by key_id desc limit ${keysMax} offset ${authHookSecretsMax})`,
    values: [app, hook, nowMs],
  }
}

function* revokeKey(context: ScriptContext, id: KeyId, actor: Actor): Script<KeyRecord | null> {
  const key = yield* lockKey(context, id)
  if (key === null || key.revokedAt !== null) return key
  const { nowMs, prefix } = context
  yield { text: `update ${prefix}delivery_key set revoked_at = $2 where key_id = $1`, values: [id, nowMs] }
  const { name } = key
  const change = { before: { name, revoked: false }, after: { name, revoked: true } }
  yield* recordAction(context, keyAction('key.revoke', key, change), actor)
  return { ...key, revokedAt: nowMs }
}

/** Requests are judged by the networks of their key until the version of its app changes. */
function* judgeAgain({ prefix }: ScriptContext, key: Pick<KeyRecord, 'app' | 'isTest'>): Script<void> {
  yield { text: `update ${prefix}app set version = version + 1 where app_id = $1`, values: [sideOf(key)] }
}

const formatNetworks = (networks: readonly string[] | null): string | null =>
  networks === null ? null : JSON.stringify(networks)

const toFacts = ({ hook, isTest, name, expiresAt, networks, revokedAt }: KeyRecord) => ({
  name,
  ...(isTest && { test: true }),
  ...(networks !== null && { networks }),
  ...(hook !== null && { hook }),
  expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
  revoked: revokedAt !== null,
})

const keyAction = (action: AuditAction, { app, id }: KeyRecord, change: Pick<Action, 'before' | 'after'>): Action => ({
  action,
  app,
  target: id,
  ...change,
})

function* lockKey(context: ScriptContext, id: KeyId): Script<KeyRecord | null> {
  const known = yield* findKey(context, id)
  if (known === null || (yield* lockApp(context, known.app)) === null) return null
  const text = `select * from ${context.prefix}delivery_key where key_id = $1 ${lock(context, 'for update')}`
  return yield* readOne({ text, values: [id] }, toKeyRecord)
}

/** Whether a key or a token works, as a condition: see `hasEnded`. `row`: its name, with a dot. */
export const works = (now: string, row = ''): string =>
  `${row}revoked_at is null and (${row}expires_at is null or ${row}expires_at > ${now})`

function* hasTooMany({ nowMs, prefix }: ScriptContext, app: AppId, except = ''): Script<boolean> {
  const [row] = yield {
    text: `select count(*) as keys from ${prefix}delivery_key
      where app_id in ($1, $4) and key_id <> $2 and ${works('$3')}`,
    values: [app, except, nowMs, testSide(app)],
  }
  return Number(row?.keys) >= keysMax
}

function* isReplaced({ nowMs, prefix }: ScriptContext, key: KeyRecord): Script<boolean> {
  const text = `select 1 from ${prefix}delivery_key where app_id = $1 and replaces = $2 and ${works('$3')} limit 1`
  return (yield { text, values: [sideOf(key), key.id, nowMs] }).length > 0
}

function* isNameTaken({ nowMs, prefix }: ScriptContext, app: AppId, name: string): Script<boolean> {
  const rows = yield {
    text: `select 1 from ${prefix}delivery_key
      where app_id in ($1, $4) and name = $2 and ${works('$3')} limit 1`,
    values: [app, name, nowMs, testSide(app)],
  }
  return rows.length > 0
}

/** Deletes keys of the app that have ended, beyond the newest `keysMax`. */
function* insertKey(
  { nowMs, prefix }: ScriptContext,
  { app, expiresAt, hash, hook, isTest = false, name, networks, sealed }: NewKeyRecord,
  { actor, replaces }: { readonly actor: Actor; readonly replaces: KeyId | null },
): Script<KeyRecord> {
  const side = sideOf({ app, isTest })
  const [row = {}] = yield {
    text: `insert into ${prefix}delivery_key
        (key_id, key_hash, app_id, name, created_at, created_by, expires_at, replaces, hook, sealed, networks)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) returning *`,
    values: [
      newId('key', nowMs),
      hash,
      side,
      name,
      nowMs,
      actor.name,
      expiresAt,
      replaces,
      hook ?? null,
      sealed ?? null,
      formatNetworks(networks ?? null),
    ],
  }
  yield {
    text: `delete from ${prefix}delivery_key where key_id in (select key_id from ${prefix}delivery_key
      where app_id = $1 and not (${works('$2')}) order by key_id desc limit ${keysMax} offset ${keysMax})`,
    values: [side, nowMs],
  }
  return toKeyRecord(row)
}

function* findKey({ prefix }: ScriptContext, id: KeyId): Script<KeyRecord | null> {
  const text = `select * from ${prefix}delivery_key where key_id = $1`
  return yield* readOne({ text, values: [id] }, toKeyRecord)
}

function* findKeyByHash({ prefix }: ScriptContext, hash: KeyHash): Script<KeyRecord | null> {
  const text = `select * from ${prefix}delivery_key where key_hash = $1`
  return yield* readOne({ text, values: [hash] }, toKeyRecord)
}

function* listKeys(
  { prefix }: ScriptContext,
  app: AppId,
  after: KeyId | null = null,
  max = Number.MAX_SAFE_INTEGER,
): Script<KeyRecord[]> {
  const text = `select * from ${prefix}delivery_key where app_id in ($1, $3) and key_id > $2 order by key_id limit ${max}`
  return yield* readAll({ text, values: [app, after ?? '', testSide(app)] }, toKeyRecord)
}

function* listExpiringKeys({ nowMs, prefix }: ScriptContext, until: number): Script<ExpiringKey[]> {
  const text = `select old.*, new.key_id as replaced_by from ${prefix}delivery_key old
    left join ${prefix}delivery_key new on new.key_id = (
      select max(key_id) from ${prefix}delivery_key next where next.app_id = old.app_id and next.replaces = old.key_id and next.revoked_at is null)
    where old.app_id < '${firstTestSide}' and old.revoked_at is null and old.expires_at between $1 and $2 and (
      new.key_id is null
      or old.last_used_at > new.created_at and (old.last_used_at > $3 or new.last_used_at is null))
    order by old.key_id`
  return yield* readAll({ text, values: [nowMs, until, nowMs - keyInUseMs] }, (row) => ({
    ...toKeyRecord(row),
    isReplaced: row.replaced_by !== null,
  }))
}

function* listKeysMadeBy({ nowMs, prefix }: ScriptContext, name: string): Script<KeyRecord[]> {
  const text = `select * from ${prefix}delivery_key where created_by = $1 and ${works('$2')} order by key_id`
  return yield* readAll({ text, values: [name, nowMs] }, toKeyRecord)
}

const toKeyRecord = (row: Row): KeyRecord => ({
  id: row.key_id as KeyId,
  app: realSide(row.app_id as AppId),
  isTest: isTestSide(row.app_id as AppId),
  name: row.name as string | null,
  createdAt: row.created_at as number,
  createdBy: row.created_by as string,
  expiresAt: row.expires_at as number | null,
  revokedAt: row.revoked_at as number | null,
  lastUsedAt: row.last_used_at as number | null,
  replaces: row.replaces as KeyId | null,
  hook: row.hook as AuthHookName | null,
  networks: toNetworks(row.networks),
})

function* listAuthHookSecrets(
  { nowMs, prefix }: ScriptContext,
  slug: string,
  hook: AuthHookName | null,
): Script<AuthHookSecretRecord[]> {
  const text = `select key_hash, hook, sealed from ${prefix}delivery_key
    where hook = coalesce($2, hook) and ${works('$3')} and app_id in (
      select app_id from ${prefix}app where slug = $1 and status = 'active')
    order by key_id desc limit ${hook === null ? keysMax : authHookSecretsMax}`
  return yield* readAll({ text, values: [slug, hook, nowMs] }, (row) => ({
    hash: row.key_hash as KeyHash,
    hook: row.hook as AuthHookName,
    sealed: row.sealed as string | null,
  }))
}

function* listAuthHookKeys({ nowMs, prefix }: ScriptContext): Script<AuthHookKey[]> {
  const text = `select key_id, app_id, hook, key_hash, sealed from ${prefix}delivery_key where hook is not null and ${works('$1')} order by key_id`
  return yield* readAll({ text, values: [nowMs] }, (row) => ({
    id: row.key_id as KeyId,
    app: row.app_id as AppId,
    hook: row.hook as AuthHookName,
    hash: row.key_hash as KeyHash,
    sealed: row.sealed as string | null,
  }))
}

function* resealAuthHookSecret(
  { prefix }: ScriptContext,
  { hash, sealed }: SealedSecret,
  resealed: string,
): Script<void> {
  yield {
    text: `update ${prefix}delivery_key set sealed = $3 where key_hash = $1 and sealed = $2`,
    values: [hash, sealed, resealed],
  }
}

export const keyChanges = { createKey, updateKey, replaceKey, revokeKey, resealAuthHookSecret }
export const keyReads = {
  ...{ findKey, findKeyByHash, listKeys, listExpiringKeys, listKeysMadeBy },
  ...{ listAuthHookSecrets, listAuthHookKeys },
}
