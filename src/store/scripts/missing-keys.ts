/**
 * Mail that waits for a key of the ring. A claim marks it with the id of the key that it lacked. After a
 * start without a key that the database was used with, maintenance searches the queue once, so that an
 * operator learns of all such mail, due or not. Workers that have the key claim it at once.
 */
import { stepMax } from '../../domain/bounds.ts'
import type { EmailId } from '../../domain/id.ts'
import { isKeyId, type KeyRing, sealingKeyId } from '../crypto/key-ring.ts'
import type { MissingKey } from '../store.ts'
import type { Script, ScriptContext } from './script.ts'

/** More would take a while to count, and say nothing more. */
const countedMax = 10_000

const holds = (ring: KeyRing, keyId: string): boolean => ring.some(({ id }) => id === keyId)

function* listMissingKeys({ prefix }: ScriptContext): Script<MissingKey[]> {
  const rows = yield {
    text: `select missing_key, count(*) as emails from
        (select missing_key from ${prefix}queue where state = 'deferred' and missing_key is not null limit $1) waiting
      group by missing_key order by missing_key`,
    values: [countedMax],
  }
  return rows.map((row) => ({ keyId: row.missing_key as string, emails: Number(row.emails) }))
}

/** The length of the id, and an id of 32 characters. */
const headBytes = 33

/** One step: marks mail after `after` that no key of the ring opens. Returns where the next step begins. */
export function* markMissingKeys(
  { dialect, prefix }: ScriptContext,
  ring: KeyRing,
  after: EmailId | '',
): Script<EmailId | null> {
  const rows = yield {
    text: `select email_id, substr(sealed, 1, ${headBytes}) as head from ${prefix}queue where email_id > $1
      order by email_id limit ${stepMax}`,
    values: [after],
  }
  const sealed = rows.map(({ email_id: id, head }) => ({ id, keyId: sealingKeyId(head as Uint8Array) }))
  const closed = sealed.filter(({ keyId }) => isKeyId(keyId) && !holds(ring, keyId))
  for (const [keyId, emails] of Map.groupBy(closed, (email) => email.keyId))
    yield {
      text: `update ${prefix}queue set state = 'deferred', missing_key = $1, due_at = expires_at,
          wanted_at = case when state = 'deferred' then due_at else wanted_at end
        where email_id ${dialect.isIn(dialect.elements('$2'))} and state not in ('sending') and missing_key is null`,
      values: [keyId, JSON.stringify(emails.map(({ id }) => id))],
    }
  return rows.length < stepMax ? null : (rows.at(-1)?.email_id as EmailId)
}

export const missingKeyReads = { listMissingKeys }

/** A worker that lacked a key marked mail of others, which this process queues with its next claim. */
export const withoutOwn = (ring: KeyRing, keys: readonly MissingKey[]): MissingKey[] =>
  keys.filter(({ keyId }) => !holds(ring, keyId))
