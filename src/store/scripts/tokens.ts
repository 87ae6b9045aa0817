/** Management tokens: changes and reads. */

import { newId, type TokenId } from '../../domain/id.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import type { Role, TokenHash } from '../../domain/operator/management-token.ts'
import type { NewTokenRecord, TokenRecord } from '../operator-store.ts'
import type { Row } from '../shared/rows.ts'
import { recordAction } from './audit.ts'
import { lock, readAll, readOne, type Script, type ScriptContext } from './script.ts'

/** The table is locked against other writers, so that a name is given once. */
function* createToken(
  context: ScriptContext,
  { hash, name, role, apps, expiresAt }: NewTokenRecord,
  actor: Actor,
): Script<TokenRecord | 'name_taken'> {
  const { dialect, nowMs, prefix } = context
  if (dialect.locksRows) yield { text: `lock table ${prefix}token in share row exclusive mode`, values: [] }
  const taken = yield {
    text: `select 1 from ${prefix}token where name = $1 and revoked_at is null and expires_at > $2`,
    values: [name, nowMs],
  }
  if (taken.length > 0) return 'name_taken'
  const [row = {}] = yield {
    text: `insert into ${prefix}token (token_id, token_hash, name, role, apps, created_at, created_by, expires_at)
      values ($1, $2, $3, $4, $5, $6, $7, $8) returning *`,
    values: [newId('tok', nowMs), hash, name, role, apps && JSON.stringify(apps), nowMs, actor.name, expiresAt],
  }
  const token = toTokenRecord(row)
  const after = { name, role, apps, expiresAt: new Date(expiresAt).toISOString() }
  const action = { action: 'token.create', app: null, target: token.id, before: null, after } as const
  yield* recordAction(context, action, actor)
  return token
}

function* revokeToken(context: ScriptContext, id: TokenId, actor: Actor): Script<TokenRecord | null> {
  const { nowMs, prefix } = context
  const text = `select * from ${prefix}token where token_id = $1 ${lock(context, 'for update')}`
  const token = yield* readOne({ text, values: [id] }, toTokenRecord)
  if (token === null || token.revokedAt !== null) return token
  yield { text: `update ${prefix}token set revoked_at = $2 where token_id = $1`, values: [id, nowMs] }
  const change = { before: { revoked: false }, after: { revoked: true } }
  yield* recordAction(context, { action: 'token.revoke', app: null, target: id, ...change }, actor)
  return { ...token, revokedAt: nowMs }
}

function* noteTokenUse({ nowMs, prefix }: ScriptContext, id: TokenId): Script<void> {
  yield { text: `update ${prefix}token set last_used_at = $2 where token_id = $1`, values: [id, nowMs] }
}

function* findTokenByHash({ prefix }: ScriptContext, hash: TokenHash): Script<TokenRecord | null> {
  return yield* readOne({ text: `select * from ${prefix}token where token_hash = $1`, values: [hash] }, toTokenRecord)
}

function* listTokens({ prefix }: ScriptContext): Script<TokenRecord[]> {
  return yield* readAll({ text: `select * from ${prefix}token order by token_id`, values: [] }, toTokenRecord)
}

const toTokenRecord = (row: Row): TokenRecord => ({
  id: row.token_id as TokenId,
  name: row.name as string,
  role: row.role as Role,
  apps: row.apps === null ? null : JSON.parse(row.apps as string),
  createdAt: row.created_at as number,
  createdBy: row.created_by as string,
  expiresAt: row.expires_at as number,
  revokedAt: row.revoked_at as number | null,
  lastUsedAt: row.last_used_at as number | null,
})

export const tokenChanges = { createToken, revokeToken }
export const tokenNotes = { noteTokenUse }
export const tokenReads = { findTokenByHash, listTokens }
