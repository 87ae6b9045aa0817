/**
 * Recording what became of emails, a group in one transaction. Only the holder of the lease may:
 * the fence tells. A finished email's content is deleted in the transaction that moves its record
 * to the history.
 */
import type { DeliveryOutcome } from '../../domain/delivery/outcome.ts'
import type { EmailId } from '../../domain/id.ts'
import { trailMax } from '../shared/bounds.ts'
import { attemptRecord } from '../shared/records.ts'
import type { Lease } from '../store.ts'
import type { PostgresContext } from './context.ts'
import { clockMs, commitDurably, lockTimeout, oneAtATime, sqlFunction } from './functions.ts'

export const appendTrail = (trail: string, record: string): string =>
  `(case when jsonb_array_length(${trail}) >= ${trailMax} then ${trail} - 0 else ${trail} end) || ${record}`

/**
 * Ends emails, whatever their state: deletes content, moves the record, counts. Call it last in a
 * transaction, and once: it is where counters are locked.
 */
export const finishFunction = sqlFunction(
  'finish',
  `(p_slot int, p_now_ms bigint, p_ids text[], p_states text[], p_reasons text[], p_records jsonb[])
  returns int`,
  `declare finished int;
begin
  if coalesce(cardinality(p_ids), 0) = 0 then return 0; end if;
  with ending as (
    select * from unnest(p_ids, p_states, p_reasons, p_records) e(id, final, reason, record)
  ), gone as (
    delete from postern.queue q using ending e where q.email_id = e.id returning q.*, e.final, e.reason, e.record
  ), wiped as (
    delete from postern.sealed s using gone g where s.email_id = g.email_id and s.app_id = g.app_id
  ), kept as (
    insert into postern.history
      select email_id, app_id, type, final, reason, attempts, accepted_at, expires_at, p_now_ms, recipient,
        case when record is null then trail else ${appendTrail('trail', 'record')} end
      from gone
  ), counted as (
    insert into postern.usage_day
      select app_id, p_now_ms / 86400000, final, p_slot, count(*) from gone group by app_id, final order by app_id, final
      on conflict (app_id, day, what, slot) do update set n = usage_day.n + excluded.n
  )
  select count(*) into finished from gone;
  update postern.queue_depth set n = n - finished where slot = p_slot;
  return finished;
end`,
)

export const recordFunction = sqlFunction(
  'record',
  `(p_self int, p_slot int, p_offset_ms bigint, p_ids text[], p_fences bigint[], p_finals text[], p_reasons text[],
    p_waits bigint[], p_given_back int[], p_records jsonb[])
  returns boolean[]`,
  `declare
  now_ms bigint := ${clockMs('p_offset_ms')};
  held bigint[]; records jsonb[];
begin
  ${commitDurably}
  ${oneAtATime('p_self', 2)}
  held := array(select u.n from unnest(p_ids, p_fences) with ordinality u(id, fence, n)
    join postern.queue q on q.email_id = u.id where q.fence = u.fence and q.state = 2 order by q.email_id for update of q);
  records := array(select case when r is null then null else jsonb_build_object('at', now_ms) || r end
    from unnest(p_records) with ordinality u(r, n) order by n);
  update postern.queue q
    set state = case when u.given_back = 1 and u.wait = 0 then 0 else 1 end,
      due_at = least(now_ms + u.wait, q.expires_at), attempts = q.attempts - u.given_back, fence = q.fence + 1,
      trail = ${appendTrail('q.trail', 'u.record')}
    from unnest(p_ids, p_finals, p_waits, p_given_back, records) with ordinality u(id, final, wait, given_back, record, n)
    where q.email_id = u.id and u.n = any(held) and u.final is null;
  perform ${finishFunction.name}(p_slot, now_ms, array_agg(u.id), array_agg(u.final), array_agg(u.reason), array_agg(u.record))
    from unnest(p_ids, p_finals, p_reasons, records) with ordinality u(id, final, reason, record, n)
    where u.n = any(held) and u.final is not null;
  return array(select n = any(held) from generate_subscripts(p_ids, 1) n order by n);
end`,
  lockTimeout,
)

export type OutcomeCall = { readonly hold: Lease; readonly outcome: DeliveryOutcome }

type Ending = { final: string | null; reason: string | null; waitMs: number; givenBack: 0 | 1 }

/** Whether each was recorded: false where its lease was lost. */
export async function recordOutcomes(
  database: PostgresContext,
  calls: readonly OutcomeCall[],
  deadlineMs: number,
): Promise<boolean[]> {
  const endings = calls.map(({ outcome }) => endingOf(outcome))
  const values = [
    database.self,
    database.slot,
    database.clock.offsetMs,
    calls.map(({ hold }) => hold.emailId),
    calls.map(({ hold }) => hold.fence),
    endings.map(({ final }) => final),
    endings.map(({ reason }) => reason),
    endings.map(({ waitMs }) => Math.ceil(waitMs)),
    endings.map(({ givenBack }) => givenBack),
    calls.map(({ outcome }) => (outcome.kind === 'expired' ? null : JSON.stringify(attemptRecord(outcome)))),
  ]
  const text = `select ${recordFunction.name}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) as recorded`
  const [row] = await database.outcomes.query<{ recorded: boolean[] }>(database.sql(text), values, {
    deadlineMs,
  })
  return row?.recorded ?? []
}

function endingOf(outcome: DeliveryOutcome): Ending {
  const waiting = { final: null, reason: null }
  const finished = { waitMs: 0, givenBack: 0 } as const
  switch (outcome.kind) {
    case 'delivered':
    case 'expired':
      return { ...finished, final: outcome.kind, reason: null }
    case 'failed':
      return { ...finished, final: 'failed', reason: outcome.reason }
    case 'deferred':
      return { ...waiting, waitMs: outcome.waitMs, givenBack: 0 }
    case 'unattempted':
      return { ...waiting, waitMs: outcome.waitMs, givenBack: 1 }
    default:
      return outcome satisfies never
  }
}

export async function renewLeases(
  database: PostgresContext,
  leases: readonly Lease[],
  options: { leaseMs: number; deadlineMs: number },
): Promise<EmailId[]> {
  const text = `update postern.queue q set lease_until = ${clockMs('$1')} + $2
    from unnest($3::text[], $4::bigint[]) u(id, fence)
    where q.email_id = u.id and q.fence = u.fence and q.state = 2 returning q.email_id`
  const values = [
    database.clock.offsetMs,
    options.leaseMs,
    leases.map((lease) => lease.emailId),
    leases.map((lease) => lease.fence),
  ]
  const rows = await database.outcomes.query<{ email_id: EmailId }>(database.sql(text), values, options)
  const kept = new Set(rows.map((row) => row.email_id))
  return leases.map((lease) => lease.emailId).filter((id) => !kept.has(id))
}
