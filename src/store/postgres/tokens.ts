/** Changes of management tokens. */
import type { Actor } from '../../domain/audit.ts'
import { newId, type TokenId } from '../../domain/id.ts'
import type { NewTokenRecord, TokenRecord } from '../operator-store.ts'
import { tokenCreated, tokenRevoked } from '../shared/audited.ts'
import { toTokenRecord } from '../shared/records.ts'
import { withAudit } from './audit.ts'
import type { PostgresContext } from './context.ts'
import { clockMs } from './functions.ts'

const deadlineMs = 10_000

/** The table is locked against other writers, so that a name is given once. */
export const createToken = (
  context: PostgresContext,
  { hash, name, role, apps, expiresAt }: NewTokenRecord,
  actor: Actor,
): Promise<TokenRecord | 'name_taken'> =>
  withAudit(context, actor, async ({ query, record }) => {
    const { clock, schema } = context
    await query(`lock table ${schema}.token in share row exclusive mode`)
    const taken = `select from ${schema}.token
      where name = $1 and revoked_at is null and expires_at > ${clockMs('$2')}`
    if ((await query(taken, [name, clock.offsetMs])).length > 0) return 'name_taken'
    const text = `insert into ${schema}.token
        (token_id, token_hash, name, role, apps, created_at, created_by, expires_at)
      values ($1, $2, $3, $4, $5, ${clockMs('$8')}, $6, $7) returning *`
    const id = newId('tok', clock.nowMs())
    const listed = apps && JSON.stringify(apps)
    const values = [id, hash, name, role, listed, actor.name, expiresAt, clock.offsetMs]
    const [row] = await query(text, values)
    const token = toTokenRecord(row ?? {})
    await record(tokenCreated(token))
    return token
  })

export const revokeToken = (
  context: PostgresContext,
  id: TokenId,
  actor: Actor,
): Promise<TokenRecord | null> =>
  withAudit(context, actor, async ({ query, record }) => {
    const { clock, schema } = context
    const [row] = await query(`select * from ${schema}.token where token_id = $1 for update`, [id])
    if (row === undefined) return null
    const token = toTokenRecord(row)
    if (token.revokedAt !== null) return token
    const text = `update ${schema}.token set revoked_at = ${clockMs('$2')} where token_id = $1 returning *`
    const [revoked] = await query(text, [id, clock.offsetMs])
    await record(tokenRevoked(token))
    return toTokenRecord(revoked ?? row)
  })

export async function noteTokenUse(
  { clock, operators, schema }: PostgresContext,
  id: TokenId,
): Promise<void> {
  const text = `update ${schema}.token set last_used_at = ${clockMs('$2')} where token_id = $1`
  await operators.query(text, [id, clock.offsetMs], { deadlineMs })
}
