/**
 * Functions in the database, so that a transaction of many statements is one round trip. Each stands
 * in `functions/NAME.sql`. The database knows it by its name and a hash of its text
 * (`enqueue_3f2a9c01`): a program always calls exactly the function it was written with, and old and
 * new programs can run side by side.
 */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  appsPerClaim,
  appsSeenPerClaim,
  idempotencyMs,
  lastUseEveryMs,
  stepMax,
  supersededAfterMs,
  trailMax,
  waitMaxMs,
} from '../../../domain/bounds.ts'
import { lostLeaseWaitsMs } from '../../../domain/delivery/states.ts'
import { dayMs } from '../../../domain/duration.ts'
import { dailyWindowS, keyWindowS, mailboxFactor, recipientWindowS } from '../../../domain/limit.ts'
import { unaskedTypes } from '../../../domain/request/email-kinds.ts'
import { queueParts } from '../../shared/queue-parts.ts'
import { leaseMs } from '../../store.ts'
import { sessionLockClass } from './missing-sessions.ts'

/** A parameter of a function that Postern calls: name, type, and its value in a call. */
export type Parameter<Input> = readonly [name: string, type: string, value: (input: Input) => unknown]

export type SqlFunction = {
  readonly name: string
  /** `create function …`, for a search path that begins with Postern's schema. */
  readonly define: (schema: string) => string
}

/** `call`: the statement that calls the function, and its values. */
export type CalledFunction<Input> = SqlFunction & {
  readonly call: (schema: string, input: Input) => { text: string; values: unknown[] }
}

/**
 * For functions that this program calls; those that only they call run under the same settings.
 * `search_path` makes every name in the function one of Postern's schema or of PostgreSQL itself.
 * Plans are made once and must suit a full queue, also if they were made on an empty one. Therefore a join of
 * the queue with a list of ids also says `email_id = any(ids)`: whichever side PostgreSQL begins with, it
 * reads these rows alone.
 */
const settings = `set search_path = {{schema}}, pg_temp set lock_timeout = '1500ms'
set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off`

/**
 * Milliseconds since 1970 on the database's clock. Not now(), which is the time when the transaction
 * began. As a sub-select it is read once per statement, so that an index can be searched by it.
 */
export const clockMs = (offsetMs: string): string =>
  `(select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + ${offsetMs})`

/**
 * Declared first in every function whose result is acknowledged. Forces `synchronous_commit` on for this
 * transaction, and lets warnings reach the client: one tells that a wait for a standby was cancelled.
 */
const commitDurably = `durable_commit text := set_config('synchronous_commit',
    replace(current_setting('synchronous_commit'), 'off', 'on'), true);
  shown_warnings text := set_config('client_min_messages', 'warning', true);`

/** `q.state = 'sending'` where ids select the rows: written so that no partial index seems to fit. */
export const isSending = "q.state not in ('queued', 'deferred')"

const constants: Readonly<Record<string, string | number>> = {
  settings,
  commitDurably,
  clockMs: clockMs('p_offset_ms'),
  isSending,
  isReady: queueParts.ready,
  isSuspect: queueParts.suspect,
  unaskedTypes: unaskedTypes.map((type) => `'${type}'`).join(', '),
  keyWindowUs: keyWindowS * 1e6,
  recipientWindowUs: recipientWindowS * 1e6,
  dayUs: dailyWindowS * 1e6,
  dayMs,
  mailboxFactor,
  idempotencyMs,
  lastUseEveryMs,
  leaseMs,
  lostLeaseWaitsMs: lostLeaseWaitsMs.join(', '),
  lostLeaseWaits: lostLeaseWaitsMs.length,
  sessionLockClass,
  supersededAfterMs,
  stepMax,
  trailMax,
  waitMaxMs,
  appsPerClaim,
  appsSeenPerClaim,
}

/** Replaces each `{{name}}`. `{{schema}}` stays, because it differs from database to database. */
function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (placeholder, name: string) => {
    if (name === 'schema') return placeholder
    const value = values[name]
    if (value === undefined) throw new Error(`${placeholder} of a database function has no value`)
    return typeof value === 'number' ? String(value) : fill(value, values)
  })
}

/** Reads `functions/NAME.sql`. `uses` are the functions that it calls. */
export function sqlFunction(
  name: string,
  uses: readonly SqlFunction[] = [],
  parameters: readonly Parameter<never>[] = [],
): SqlFunction {
  const names = Object.fromEntries(uses.map((used) => [used.name.replace(/_\w{8}$/, ''), used.name]))
  const file = readFileSync(new URL(`./functions/${name}.sql`, import.meta.url), 'utf8')
  const text = fill(file.slice(file.indexOf('create function')), {
    ...constants,
    ...names,
    parameters: parameters.map(([parameter, type]) => `${parameter} ${type}`).join(', '),
  })
  const hashed = `${name}_${hash('sha256', text, 'hex').slice(0, 8)}`
  const definition = text.replace(`create function ${name}(`, `create function ${hashed}(`)
  return { name: hashed, define: (schema) => definition.replaceAll('{{schema}}', schema) }
}

/** A function that Postern calls: its parameters give the signature and the call. */
export function calledFunction<Input>(
  name: string,
  uses: readonly SqlFunction[],
  parameters: readonly Parameter<Input>[],
): CalledFunction<Input> {
  const made = sqlFunction(name, uses, parameters as readonly Parameter<never>[])
  const marks = parameters.map((_, index) => `$${index + 1}`).join(', ')
  return {
    ...made,
    call: (schema, input) => ({
      text: `select * from ${schema}.${made.name}(${marks})`,
      values: parameters.map(([, , value]) => value(input)),
    }),
  }
}
