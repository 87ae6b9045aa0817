/** Values that are used once: challenges of passkeys, and forms that make a secret. Their hashes are kept. */
import { stepMax } from '../../domain/bounds.ts'
import type { Script, ScriptContext } from './script.ts'

function* keepNonce({ nowMs, prefix }: ScriptContext, hash: string, expiresAt: number): Script<boolean> {
  const expired = `select nonce_hash from ${prefix}nonce where expires_at <= $1 limit ${stepMax}`
  yield { text: `delete from ${prefix}nonce where nonce_hash in (${expired})`, values: [nowMs] }
  const text = `insert into ${prefix}nonce (nonce_hash, expires_at) values ($1, $2) on conflict do nothing returning 1`
  return (yield { text, values: [hash, expiresAt] }).length > 0
}

function* takeNonce({ nowMs, prefix }: ScriptContext, hash: string): Script<boolean> {
  const text = `delete from ${prefix}nonce where nonce_hash = $1 and expires_at > $2 returning 1`
  return (yield { text, values: [hash, nowMs] }).length > 0
}

export const nonceChanges = { keepNonce, takeNonce }
