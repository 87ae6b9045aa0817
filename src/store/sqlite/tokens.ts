/** Changes of management tokens. */
import type { Actor } from '../../domain/audit.ts'
import { newId, type TokenId } from '../../domain/id.ts'
import type { NewTokenRecord, TokenRecord } from '../operator-store.ts'
import { tokenCreated, tokenRevoked } from '../shared/audited.ts'
import { toTokenRecord } from '../shared/records.ts'
import { recordAction } from './audit.ts'
import type { WriteTransaction } from './threads/write-transaction.ts'

export function createToken(
  tx: WriteTransaction,
  { hash, name, role, apps, expiresAt }: NewTokenRecord,
  actor: Actor,
): TokenRecord | 'name_taken' {
  const taken = tx
    .sql('select 1 from token where name = ? and revoked_at is null and expires_at > ?')
    .get(name, tx.nowMs)
  if (taken !== undefined) return 'name_taken'
  const row = tx
    .sql(
      `insert into token (token_id, token_hash, name, role, apps, created_at, created_by, expires_at)
       values (?, ?, ?, ?, ?, ?, ?, ?) returning *`,
    )
    .get(
      newId('tok', tx.nowMs),
      hash,
      name,
      role,
      apps && JSON.stringify(apps),
      tx.nowMs,
      actor.name,
      expiresAt,
    )
  const token = toTokenRecord(row ?? {})
  recordAction(tx, tokenCreated(token), actor)
  return token
}

export function revokeToken(tx: WriteTransaction, id: TokenId, actor: Actor): TokenRecord | null {
  const row = tx.sql('select * from token where token_id = ?').get(id)
  if (row === undefined) return null
  const token = toTokenRecord(row)
  if (token.revokedAt !== null) return token
  tx.sql('update token set revoked_at = ? where token_id = ?').run(tx.nowMs, id)
  recordAction(tx, tokenRevoked(token), actor)
  return { ...token, revokedAt: tx.nowMs }
}

export function noteTokenUse(tx: WriteTransaction, id: TokenId): void {
  tx.sql('update token set last_used_at = ? where token_id = ?').run(tx.nowMs, id)
}
