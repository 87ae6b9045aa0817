/** Recording the outcomes of attempts, a group in one transaction, and renewing leases. */
import type { DeliveryOutcome } from '../../../domain/delivery/outcome.ts'
import type { EndedEmail } from '../../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../../domain/id.ts'
import { attemptRecord, type Ending, toEnding } from '../../shared/endings.ts'
import { type Lease, leaseMs } from '../../store.ts'
import type { PostgresContext } from '../engine/context.ts'
import { calledFunction, clockMs, isSending, sqlFunction } from './functions.ts'

export const appendTrail = sqlFunction('append_trail')
export const finish = sqlFunction('finish', [appendTrail])

type End = Pick<EndedEmail, 'state' | 'reason'>

/**
 * Ends the emails whose ids and apps `chosen` selects and locks. Its first parameter is the offset of the
 * clock, and `values` are the others.
 */
export function endChosen(
  { clock, maintenance, schema, slot }: PostgresContext,
  { chosen, values = [], state, reason }: End & { readonly chosen: string; readonly values?: readonly unknown[] },
  deadlineMs: number,
): Promise<EndedEmail[]> {
  return maintenance.transaction(async (query) => {
    const rows = await query<{ email_id: EmailId; app_id: AppId }>(chosen, [clock.offsetMs, ...values])
    const ids = rows.map(({ email_id }) => email_id)
    const text = `select ${schema}.${finish.name}($1, ${clockMs('$2')}, $3, array_fill($4::text, array[$6::int]),
      array_fill($5::text, array[$6]), array_fill(null::jsonb, array[$6]))`
    if (ids.length > 0) await query(text, [slot, clock.offsetMs, ids, state, reason, ids.length])
    return rows.map((row) => ({ emailId: row.email_id, appId: row.app_id, state, reason }))
  }, deadlineMs)
}

export type OutcomeCall = { readonly lease: Lease; readonly outcome: DeliveryOutcome }
type Input = { context: PostgresContext; calls: readonly OutcomeCall[]; endings: readonly Ending[] }

/**
 * By the advisory lock in `record.sql` and `claim.sql`, one process runs one transaction of a kind at a
 * time. Otherwise each call that timed out while its commit waited for a lost standby would
 * leave one more backend waiting on the server.
 */
const record = calledFunction<Input>(
  'record',
  [finish, appendTrail],
  [
    ['p_self', 'int', ({ context }) => context.self],
    ['p_slot', 'int', ({ context }) => context.slot],
    ['p_offset_ms', 'bigint', ({ context }) => context.clock.offsetMs],
    ['p_ids', 'text[]', ({ calls }) => calls.map(({ lease }) => lease.emailId)],
    ['p_fences', 'bigint[]', ({ calls }) => calls.map(({ lease }) => lease.fence)],
    ['p_finals', 'text[]', ({ endings }) => endings.map(({ final }) => final)],
    ['p_reasons', 'text[]', ({ endings }) => endings.map((ending) => (ending.final === null ? null : ending.reason))],
    [
      'p_waits_ms',
      'bigint[]',
      ({ endings }) => endings.map((ending) => (ending.final === null ? ending.waitMs : null)),
    ],
    [
      'p_given_back',
      'boolean[]',
      ({ endings }) => endings.map((ending) => (ending.final === null ? ending.givenBack : null)),
    ],
    [
      'p_missing_keys',
      'text[]',
      ({ endings }) => endings.map((ending) => (ending.final === null ? ending.missingKey : null)),
    ],
    ['p_attempts', 'jsonb[]', ({ calls }) => calls.map(({ outcome }) => recordText(outcome))],
  ],
)

function recordText(outcome: DeliveryOutcome): string | null {
  const line = attemptRecord(outcome)
  return line === null ? null : JSON.stringify(line)
}

export const outcomeFunctions = [appendTrail, finish, record]

/** Whether each outcome was recorded: false if its lease was lost. */
export async function recordOutcomes(
  context: PostgresContext,
  calls: readonly OutcomeCall[],
  deadlineMs: number,
): Promise<boolean[]> {
  const endings = calls.map(({ outcome }) => toEnding(outcome))
  const { text, values } = record.call(context.schema, { context, calls, endings })
  const [row] = await context.outcomes.query<Record<string, number[]>>(text, values, { deadlineMs })
  const recorded = new Set(Object.values(row ?? {})[0])
  return calls.map((_, index) => recorded.has(index + 1))
}

/** The leases that could not be renewed: they are lost. */
export async function renewLeases(
  { schema, clock, outcomes }: PostgresContext,
  leases: readonly Lease[],
  deadlineMs: number,
): Promise<Lease[]> {
  const text = `update ${schema}.queue q set lease_until = ${clockMs('$1')} + $2
    from unnest($3::text[], $4::bigint[]) l(id, fence)
    where q.email_id = l.id and q.email_id = any($3) and q.fence = l.fence and ${isSending}
    returning q.email_id, q.fence`
  const ids = leases.map((lease) => lease.emailId)
  const fences = leases.map((lease) => lease.fence)
  const values = [clock.offsetMs, leaseMs, ids, fences]
  const rows = await outcomes.query<{ email_id: string; fence: number }>(text, values, { deadlineMs })
  const renewed = new Set(rows.map((row) => `${row.email_id} ${row.fence}`))
  return leases.filter(({ emailId, fence }) => !renewed.has(`${emailId} ${fence}`))
}
