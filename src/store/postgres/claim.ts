/**
 * Handing out due mail, in one round trip. Before any is claimed, lapsed leases return and deferred
 * mail that is due becomes ready, each in bounded steps; what has expired leaves. Apps with ready
 * mail take turns, found by hopping over the index, so one app's million costs another's email
 * nothing. Rows that another worker is taking are passed over, never waited for.
 */
import type { App } from '../../email/app.ts'
import type { EmailContent } from '../../email/delivery.ts'
import type { AppId, EmailId } from '../../email/id.ts'
import { KeyMissing, unseal } from '../key-ring.ts'
import { type Row, toApp } from '../records.ts'
import { type Claim, type Claimed, type ClaimRequest, leaseMs } from '../store.ts'
import type { Database } from './database.ts'
import { clockMs, sqlFunction } from './functions.ts'
import { appendTrail, finishFunction, type OutcomeCall, recordOutcomes } from './outcome.ts'

const stepMax = 500
const appsPerClaim = 32
/** An email that lost this many leases has probably killed its workers. */
const lostMax = 5
/** The longest wait between two attempts: an hour and a fifth. */
const waitMaxMs = 72 * 60_000
/** How often what is due, expired or lapsed is looked for: under load not with each claim. */
const tendEveryMs = 250
const unreadableWaitMs = 5 * 60_000

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
  '(p_turns text[], p_now_ms bigint, p_max int, p_per_app int, p_held_apps text[]) returns text[]',
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
        where state = 0 and lost < 2 and app_id = p_turns[i] and email_id > starts[i] and expires_at > p_now_ms
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
  `(p_slot int, p_offset_ms bigint, p_tend boolean, p_max int, p_per_app int, p_after text, p_suspect_last boolean,
    p_held text[], p_fences bigint[], p_held_apps text[])
  returns table (email_id text, fence bigint, app_id text, app_version bigint, type text, attempts int, lost int,
    accepted_at bigint, expires_at bigint, now_ms bigint, body bytea)`,
  `declare
  now_ms bigint := ${clockMs('p_offset_ms')};
  gone text[] := '{}'; dead text[] := '{}'; back text[]; ready text[]; turns text[]; suspect text; picked text[];
  lost_record jsonb := jsonb_build_object('at', now_ms, 'outcome', 'lost');
begin
  -- What its own worker still holds has not lapsed, also after a pause of the process or a clock step.
  update postern.queue q set lease_until = now_ms + ${leaseMs}
    from unnest(p_held, p_fences) h(id, fence)
    where q.email_id = h.id and q.fence = h.fence and q.state = 2 and q.lease_until < now_ms + ${leaseMs / 2};
  if p_tend then
    gone := array(select email_id from postern.queue where expires_at <= now_ms and state in (0, 1)
      order by expires_at limit ${stepMax} for update skip locked);
    back := ${lapsed};
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
    where q.state = 0 and q.lost >= 2 and q.expires_at > now_ms
      and exists (select from postern.app a where a.app_id = q.app_id and a.status = 'active')
    order by q.email_id limit 1 for update of q skip locked;
  turns := ${turnsFunction.name}(p_after);
  if suspect is not null and cardinality(p_held) = 0 and not (p_suspect_last and cardinality(turns) > 0) then
    picked := array[suspect];
  else
    picked := ${pickFunction.name}(turns, now_ms, p_max, p_per_app, p_held_apps);
  end if;
  return query with leased as (
      update postern.queue q set state = 2, attempts = q.attempts + 1, fence = q.fence + 1,
        lease_until = now_ms + ${leaseMs}, due_at = now_ms + ${leaseMs}
      from unnest(picked) with ordinality p(id, n) where q.email_id = p.id returning q.*, p.n
    )
    select l.email_id, l.fence, l.app_id, a.version, l.type, l.attempts, l.lost, l.accepted_at, l.expires_at, now_ms, s.body
    from leased l join postern.app a on a.app_id = l.app_id
    left join postern.sealed s on s.email_id = l.email_id and s.app_id = l.app_id order by l.n;
  if suspect is not null and cardinality(p_held) > 0 then
    return next; -- a row without an email: suspects wait for an idle worker
  end if;
  perform ${finishFunction.name}(p_slot, now_ms, gone || dead,
    array_fill('expired'::text, array[cardinality(gone)]) || array_fill('failed'::text, array[cardinality(dead)]),
    array_fill(null::text, array[cardinality(gone)]) || array_fill('workers_lost'::text, array[cardinality(dead)]),
    array_fill(null::jsonb, array[cardinality(gone)]) || array_fill(lost_record, array[cardinality(dead)]));
end`,
)

/** In the order in which they are made. */
export const claimFunctions = [turnsFunction, pickFunction, claimFunction]

type LeasedRow = {
  email_id: EmailId | null
  fence: number
  app_id: AppId
  app_version: number
  type: Claim['type']
  attempts: number
  lost: number
  accepted_at: number
  expires_at: number
  now_ms: number
  body: Uint8Array | null
}

/** One worker's claims: where its turns among apps go on, and the apps it has seen. */
export class Claims {
  readonly #database: Database
  readonly #apps = new Map<AppId, App>()
  #after = ''
  #tendedAtMs = 0
  #suspectLast = false

  constructor(database: Database) {
    this.#database = database
  }

  async claimDue(request: ClaimRequest, deadlineMs: number): Promise<Claimed> {
    const { sql, claims: connection } = this.#database
    const text = `select * from ${claimFunction.name}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
    const { slot, clock } = this.#database
    const tend = Math.abs(clock.nowMs() - this.#tendedAtMs) >= tendEveryMs
    if (tend) this.#tendedAtMs = clock.nowMs()
    const { max, perApp, inHand } = request
    const held = [
      inHand.map((hold) => hold.emailId),
      inHand.map((hold) => hold.fence),
      inHand.map((hold) => hold.appId),
    ]
    const values = [slot, clock.offsetMs, tend, max, perApp, this.#after, this.#suspectLast, ...held]
    const rows = await connection.query<LeasedRow>(sql(text), values, { deadlineMs })
    const leased = rows.filter((row) => row.email_id !== null)
    this.#after = leased.at(-1)?.app_id ?? this.#after
    this.#suspectLast = leased.some((row) => row.lost >= 2)
    await this.#learnApps(leased, deadlineMs)
    const claims = await this.#openAll(leased, deadlineMs)
    const apps = new Map(claims.map(({ appId }) => [appId, this.#apps.get(appId) as App]))
    return { claims, apps, suspects: leased.length < rows.length }
  }

  async #learnApps(leased: readonly LeasedRow[], deadlineMs: number): Promise<void> {
    const unknown = leased.filter((row) => this.#apps.get(row.app_id)?.version !== row.app_version)
    if (unknown.length === 0) return
    const ids = [...new Set(unknown.map((row) => row.app_id))]
    const text = this.#database.sql('select * from postern.app where app_id = any($1)')
    const rows = await this.#database.claims.query<Row>(text, [ids], { deadlineMs })
    for (const app of rows.map(toApp)) this.#apps.set(app.id, app)
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
    if (unreadable.length > 0) await recordOutcomes(this.#database, unreadable, deadlineMs)
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
