/**
 * Every table of the schema, by what a restore does with it. Apps come first: much of the rest is carried
 * over for the apps of the copy alone. The audit comes last: all others compare with it.
 */
import { accessKinds } from './access.ts'
import { appKinds } from './apps.ts'
import type { Kind } from './kind.ts'
import { mailKinds } from './mail.ts'

export const kinds: readonly Kind[] = [...appKinds, ...accessKinds, ...mailKinds]

/** Emptied: no session, sign-in code or form that was begun works after a restore. */
export const emptiedTables = ['session', 'sign_in_code', 'nonce']

type AsInBackup = { readonly table: string; readonly name: string | null; readonly reason: string }

/** Never compared. `name` for people; null if it is none of their concern. */
export const tablesAsInBackup: readonly AsInBackup[] = [
  { table: 'migration', name: null, reason: 'the schema of the file' },
  { table: 'secret', name: null, reason: 'the hash key, which is the same or nothing is compared' },
  { table: 'node', name: null, reason: 'every process writes its own anew' },
  { table: 'activity', name: 'charts', reason: 'they decide nothing, and are kept for days only' },
  { table: 'refusal', name: 'refused requests', reason: 'they decide nothing' },
  {
    table: 'idempotency',
    name: 'idempotency keys',
    reason: 'the retry of a request whose email is lost must be accepted',
  },
  { table: 'bucket_journal', name: 'limits for a minute or an hour', reason: 'they refill within the hour' },
  { table: 'rate_bucket', name: null, reason: 'as bucket_journal' },
  { table: 'audit_day', name: null, reason: 'a bound for one day' },
  { table: 'strike_count', name: null, reason: 'counts of the last minutes' },
]
