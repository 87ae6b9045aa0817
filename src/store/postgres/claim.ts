/**
 * Handing out due mail, in one round trip. Before any is claimed, lapsed leases return and deferred
 * mail that is due becomes ready, each in bounded steps; what has expired leaves. Apps with ready
 * mail take turns, found by hopping over the index, so one app's million costs another's email
 * nothing. Rows that another worker is taking are passed over, never waited for.
 */
import type { App } from '../../domain/app/app.ts'
import type { EmailContent } from '../../domain/delivery/outcome.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { KeyMissing, unseal } from '../crypto/key-ring.ts'
import { appsPerClaim, lostMax, stepMax, unreadableWaitMs, waitMaxMs } from '../shared/bounds.ts'
import { type Row, toApp } from '../shared/records.ts'
import { type Claim, type Claimed, type ClaimRequest, leaseMs } from '../store.ts'
import type { PostgresContext } from './context.ts'
import { clockMs, commitDurably, lockTimeout, oneAtATime, sqlFunction } from './functions.ts'
import { appendTrail, finishFunction, type OutcomeCall, recordOutcomes } from './outcome.ts'

/** How often what is due, expired or lapsed is looked for: under load not with each claim. */
const tendEveryMs = 250
/** After an outage, others may hold results that they could not write: they are given time to. */
const recoverAfterMs = 5000

// A lease or a wait longer than any that is given was written before the clock stepped back. A
// transaction that began a moment later than this one read a later clock: hence twice as long.
const lapsed = `array(select email_id from postern.queue where state = 2 and lease_until <= now_ms
    order by lease_until limit ${stepMax} for update skip locked)
  || array(select email_id from postern.queue where state = 2 and lease_until > now_ms + ${2 * leaseMs}
    order by lease_until desc limit ${stepMax} for update skip locked)`
const due = `array(select email_id from postern.queue where state = 1 and due_at <= now_ms
    order by due_at limit ${stepMax} for update skip locked)
  || array(select email_id from postern.queue where state = 1 and due_at > now_ms + ${2 * waitMaxMs}
    order by due_at desc limit ${stepMax} for update skip locked)`

/** Active apps with ready mail, beginning after the one served last: a loose index scan. */
const turnsFunction = sqlFunction(
  'turns',
  '(p_after text) returns text[]',
  `declare
  turns text[] := '{}'; wrapped boolean := p_after = ''; after_app text := p_after; next_app text;
begin
  while cardinality(turns) < ${appsPerClaim} loop
    select q.app_id into next_app from postern.queue q
      where q.state = 0 and q.lost < 2 and q.app_id > after_app order by q.app_id limit 1;
    if next_app is null then
      exit when wrapped;
      wrapped := true; after_app := ''; continue;
    end if;
    exit when wrapped and p_after <> '' and next_app collate "C" > p_after;
    if exists (select from postern.app a where a.app_id = next_app and a.status = 'active') then
      turns := turns || next_app;
    end if;
    after_app := next_app;
  end loop;
  return turns;
end`,
)

/** Ids of ready mail, apps in turns: a share for each in the first round, then what others left over. */
const pickFunction = sqlFunction(
  'pick',
  '(p_turns text[], p_max int, p_per_app int, p_held_apps text[]) returns text[]',
  `declare
  picked text[] := '{}'; ids text[]; places int[]; starts text[]; share int; take int;
begin
  for i in 1 .. cardinality(p_turns) loop
    places[i] := p_per_app - (select count(*) from unnest(p_held_apps) h where h = p_turns[i]);
    starts[i] := '';
  end loop;
  share := greatest(1, p_max / greatest(1, (select count(*) from unnest(places) p where p > 0)));
  for round in 1 .. 2 loop
    for i in 1 .. cardinality(p_turns) loop
      take := least(case round when 1 then share else p_max end, places[i], p_max - cardinality(picked));
      continue when take <= 0 or starts[i] is null;
      ids := array(select email_id from postern.queue
        where state = 0 and lost < 2 and app_id = p_turns[i] and email_id > starts[i]
        order by email_id limit take for update skip locked);
      places[i] := places[i] - cardinality(ids);
      picked := picked || ids;
      starts[i] := ids[cardinality(ids)];
    end loop;
  end loop;
  return picked;
end`,
)

const claimFunction = sqlFunction(
  'claim',
  `(p_self int, p_slot int, p_offset_ms bigint, p_tend boolean, p_recover boolean, p_max int, p_per_app int, p_after text, p_suspect_last boolean,
    p_held text[], p_fences bigint[], p_held_apps text[])
  returns table (email_id text, fence bigint, app_id text, type text, attempts int, lost int,
    accepted_at bigint, expires_at bigint, now_ms bigint, body bytea,
    slug text, version bigint, status text, created_at bigint, settings json, suspects boolean)`,
  `declare
  now_ms bigint := ${clockMs('p_offset_ms')};
  gone text[] := '{}'; dead text[] := '{}'; back text[]; ready text[]; turns text[]; suspect text; picked text[];
  expired text[]; last_app text;
  lost_record jsonb := jsonb_build_object('at', now_ms, 'outcome', 'lost');
begin
  ${commitDurably}
  ${oneAtATime('p_self', 1)}
  -- What its own worker still holds has not lapsed, also after a pause of the process or a clock step.
  update postern.queue set lease_until = now_ms + ${leaseMs} where email_id = any(array(
    select q.email_id from unnest(p_held, p_fences) h(id, fence) join postern.queue q on q.email_id = h.id
    where q.fence = h.fence and q.state = 2
      and (q.lease_until < now_ms + ${leaseMs / 2} or q.lease_until > now_ms + ${leaseMs}) for update of q skip locked));
  if p_tend then
    gone := array(select email_id from postern.queue where expires_at <= now_ms and state in (0, 1)
      order by expires_at limit ${stepMax} for update skip locked);
    if p_recover then
      back := ${lapsed};
    end if;
    if cardinality(back) > 0 then
      dead := array(select email_id from postern.queue where email_id = any(back) and lost + 1 >= ${lostMax});
      update postern.queue set state = 0, attempts = attempts - 1, lost = lost + 1, fence = fence + 1,
          trail = ${appendTrail('trail', 'lost_record')}
        where email_id = any(back) and email_id <> all(dead);
    end if;
    ready := ${due};
    if cardinality(ready) > 0 then
      update postern.queue set state = 0 where email_id = any(ready);
    end if;
  end if;

  select q.email_id into suspect from postern.queue q
    where q.state = 0 and q.lost >= 2
      and exists (select from postern.app a where a.app_id = q.app_id and a.status = 'active')
    order by q.email_id limit 1 for update of q skip locked;
  turns := ${turnsFunction.name}(p_after);
  if suspect is not null and cardinality(p_held) = 0 and not (p_suspect_last and cardinality(turns) > 0) then
    picked := array[suspect];
  else
    picked := ${pickFunction.name}(turns, p_max, p_per_app, p_held_apps);
  end if;
  select q.app_id into last_app from postern.queue q where q.email_id = picked[cardinality(picked)];
  -- What has expired meanwhile is picked too, so that turns go on, and leaves instead of going out.
  expired := array(select email_id from postern.queue where email_id = any(picked) and expires_at <= now_ms);
  return query with leased as (
      update postern.queue q set state = 2, attempts = q.attempts + 1, fence = q.fence + 1,
        lease_until = now_ms + ${leaseMs}, due_at = now_ms + ${leaseMs}
      from unnest(picked) with ordinality p(id, n)
      where q.email_id = p.id and q.email_id <> all(expired) returning q.*, p.n
    )
    select l.email_id, l.fence, l.app_id, l.type, l.attempts, l.lost, l.accepted_at, l.expires_at, now_ms, s.body,
      a.slug, a.version, a.status, a.created_at, a.settings, false
    from leased l join postern.app a on a.app_id = l.app_id
    left join postern.sealed s on s.email_id = l.email_id and s.app_id = l.app_id order by l.n;
  -- The last row holds no email: where the turns go on, and whether suspects wait for an idle worker.
  app_id := coalesce(last_app, p_after);
  suspects := suspect is not null and cardinality(p_held) > 0;
  return next;
  gone := array(select distinct id from unnest(gone || expired) id);
  perform ${finishFunction.name}(p_slot, now_ms, gone || dead,
    array_fill('expired'::text, array[cardinality(gone)]) || array_fill('failed'::text, array[cardinality(dead)]),
    array_fill(null::text, array[cardinality(gone)]) || array_fill('workers_lost'::text, array[cardinality(dead)]),
    array_fill(null::jsonb, array[cardinality(gone)]) || array_fill(lost_record, array[cardinality(dead)]));
end`,
  lockTimeout,
)

/** In the order in which they are made. */
export const claimFunctions = [turnsFunction, pickFunction, claimFunction]

type LeasedRow = Row & {
  email_id: EmailId | null
  fence: number
  app_id: AppId
  type: Claim['type']
  attempts: number
  lost: number
  accepted_at: number
  expires_at: number
  now_ms: number
  body: Uint8Array | null
  version: number
  suspects: boolean
}

/** One worker's claims: where its turns among apps go on, and the apps it has seen. */
export class Claims {
  readonly #database: PostgresContext
  readonly #apps = new Map<AppId, App>()
  #after = ''
  #suspectLast = false
  #tendedAtMs = 0
  #recoverFromMs = 0

  constructor(database: PostgresContext) {
    this.#database = database
  }

  async claimDue(request: ClaimRequest, deadlineMs: number): Promise<Claimed> {
    const rows = await this.#lease(request, deadlineMs).catch((error: unknown) => {
      this.#recoverFromMs = performance.now() + recoverAfterMs
      throw error
    })
    const leased = rows.filter((row) => row.email_id !== null)
    const last = rows.at(-1)
    this.#after = last?.app_id ?? ''
    this.#suspectLast = leased.some((row) => row.lost >= 2)
    for (const row of leased)
      if (this.#apps.get(row.app_id)?.version !== row.version) this.#apps.set(row.app_id, toApp(row))
    const claims = await this.#openAll(leased, deadlineMs)
    const apps = new Map(leased.map(({ app_id }) => [app_id, this.#apps.get(app_id) as App]))
    return { claims, apps, suspects: last?.suspects ?? false }
  }

  #lease({ max, perApp, leases }: ClaimRequest, deadlineMs: number): Promise<LeasedRow[]> {
    const { sql, self, slot, clock, claims } = this.#database
    const tend = Math.abs(clock.nowMs() - this.#tendedAtMs) >= tendEveryMs
    if (tend) this.#tendedAtMs = clock.nowMs()
    const recover = performance.now() >= this.#recoverFromMs
    const held = [
      leases.map((lease) => lease.emailId),
      leases.map((lease) => lease.fence),
      leases.map((lease) => lease.appId),
    ]
    const values = [
      self,
      slot,
      clock.offsetMs,
      tend,
      recover,
      max,
      perApp,
      this.#after,
      this.#suspectLast,
      ...held,
    ]
    const text = `select * from ${claimFunction.name}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
    return claims.query<LeasedRow>(sql(text), values, { deadlineMs })
  }

  /** What cannot be read is not handed out: without its key it waits for it, damaged it can never be sent. */
  async #openAll(leased: readonly LeasedRow[], deadlineMs: number): Promise<Claim[]> {
    const unreadable: OutcomeCall[] = []
    const claims = leased.flatMap((row) => {
      const hold = { emailId: row.email_id as EmailId, fence: row.fence }
      try {
        return [toClaim(row, this.#open(row))]
      } catch (error) {
        const waits = error instanceof KeyMissing && row.body !== null
        unreadable.push({
          hold,
          outcome: waits
            ? { kind: 'unattempted', reply: error.message, waitMs: unreadableWaitMs }
            : { kind: 'failed', reply: 'its content cannot be opened', relay: '-', reason: 'unreadable' },
        })
        return []
      }
    })
    // Where that fails, they come back when their leases lapse; the others are not held up for it.
    if (unreadable.length > 0) await recordOutcomes(this.#database, unreadable, deadlineMs).catch(() => {})
    return claims
  }

  #open({ email_id, body }: LeasedRow): EmailContent {
    return JSON.parse(unseal(this.#database.ring, `email ${email_id}`, body ?? new Uint8Array()))
  }
}

const toClaim = (row: LeasedRow, content: EmailContent): Claim => ({
  emailId: row.email_id as EmailId,
  fence: row.fence,
  appId: row.app_id,
  type: row.type,
  content,
  acceptedAt: row.accepted_at,
  expiresAt: row.expires_at,
  attempt: row.attempts,
  lifeLeftMs: row.expires_at - row.now_ms,
  ageMs: row.now_ms - row.accepted_at,
  alone: row.lost >= 2,
})
