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

/** Never compared. `name` for people; null if it is none of their concern. */
export const tablesAsInBackup: readonly { readonly table: string; readonly name: string | null }[] = [
  { table: 'migration', name: null },
  { table: 'secret', name: null }, // the hash key is the same, or nothing is compared
  { table: 'node', name: null }, // every process writes its own
  { table: 'probe', name: null },
  { table: 'activity', name: 'charts' },
  { table: 'refusal', name: 'refused requests' },
  { table: 'last_check', name: null },
  { table: 'inbox_email', name: null }, // kept for an hour
  // The retry of a request whose email is lost must be accepted.
  { table: 'idempotency', name: 'idempotency keys' },
  // They refill within the hour.
  { table: 'bucket_journal', name: 'limits for a minute or an hour' },
  { table: 'rate_bucket', name: null },
  { table: 'audit_day', name: null },
  { table: 'strike_count', name: null },
]
