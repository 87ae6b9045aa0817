/**
 * The decision on a group of requests: one call of one function, one transaction. It locks the
 * group's apps in order, reads with fresh snapshots, decides in order of arrival as `sqlite/enqueue.ts`
 * does, and writes what came of it. What it decides is exact, since nothing else writes an app's
 * limits, idempotency keys and counts without its lock.
 */
import type { AppId, EmailId, KeyId } from '../../domain/id.ts'
import { seal } from '../crypto/key-ring.ts'
import { idempotencyMs } from '../shared/bounds.ts'
import { keyBucket, recipientNames } from '../shared/bucket-names.ts'
import type { EnqueueRequest, EnqueueResult } from '../store.ts'
import type { Lane, PostgresContext } from './context.ts'
import { commitDurably, lockTimeout, sqlFunction } from './functions.ts'

/** The app and id of a delivery key never change, so they are known for good. */
export type KnownKey = { readonly keyId: KeyId; readonly appId: AppId }
export type EnqueueCall = { readonly request: EnqueueRequest; readonly key: KnownKey }

/** As `chargeLimit` in `email/limit.ts`. */
const nextArrival = (tat: string, step: string, quota: string): string =>
  `greatest(case when ${tat} > now_us + 2 * ${step} * ${quota} then 0 else ${tat} end, now_us) + ${step}`

export const enqueueFunction = sqlFunction(
  'enqueue',
  `(p_slot int, p_queue_max bigint, p_offset_ms bigint,
    p_apps text[], p_keys text[], p_key_app int[], p_key_bucket int[],
    p_buckets text[], p_bucket_app int[], p_idems text[], p_idem_app int[],
    p_key_at int[], p_versions bigint[], p_refusals text[], p_to_at int[], p_mailbox_at int[],
    p_idem_at int[], p_bodies text[],
    p_ids text[], p_types text[], p_expiries bigint[], p_recipients text[],
    p_sealed_from int[], p_sealed_bytes int[], p_sealed bytea)
  returns table (kind text, email_id text, quota bigint, retry_after_us bigint)`,
  `declare
  now_us bigint; now_ms bigint; today bigint; room bigint; admitted int := 0;
  versions bigint[]; key_quotas bigint[]; recipient_quotas bigint[]; dailies bigint[]; accepted bigint[];
  key_ok boolean[]; tats bigint[]; bucket_new boolean[]; charged boolean[]; idem_bodies text[]; idem_ids text[]; idem_new boolean[];
  kinds text[]; ids text[]; quotas bigint[]; retries bigint[];
  a int; k int; b int; m int; d int; key_step bigint; to_step bigint; box_step bigint;
  t bigint; box_t bigint; late bigint; box_late bigint;
begin
  ${commitDurably}
  perform 1 from postern.app_lock where app_id = any(p_apps) order by app_id for update;
  now_us := floor(extract(epoch from clock_timestamp()) * 1000000)::bigint + p_offset_ms * 1000;
  now_ms := now_us / 1000;
  today := now_ms / 86400000;

  select array_agg(w.version order by u.n), array_agg(w.key_per_minute order by u.n),
      array_agg(w.recipient_per_hour order by u.n), array_agg(w.daily order by u.n),
      array_agg(coalesce((select c.n from postern.usage_day c
        where c.app_id = u.id and c.day = today and c.what = 'accepted' and c.slot = 0), 0) order by u.n)
    into versions, key_quotas, recipient_quotas, dailies, accepted
    from unnest(p_apps) with ordinality u(id, n)
    left join postern.app w on w.app_id = u.id and w.status = 'active';
  key_ok := array(select exists (select from postern.delivery_key d where d.key_id = u.id
      and d.revoked_at is null and (d.expires_at is null or d.expires_at > now_ms))
    from unnest(p_keys) with ordinality u(id, n) order by u.n);
  select array_agg(coalesce(r.tat, 0) order by u.n), array_agg(r.tat is null order by u.n) into tats, bucket_new
    from unnest(p_buckets, p_bucket_app) with ordinality u(k, a, n)
    left join postern.rate r on r.app_id = p_apps[u.a] and r.k = u.k;
  select array_agg(i.body order by u.n), array_agg(i.email_id order by u.n) into idem_bodies, idem_ids
    from unnest(p_idems, p_idem_app) with ordinality u(k, a, n)
    left join postern.idempotency i on i.app_id = p_apps[u.a] and i.k = u.k and i.at > now_ms - ${idempotencyMs};
  room := p_queue_max - (select sum(n) from postern.queue_depth);
  charged := array_fill(false, array[cardinality(tats)]);
  idem_new := array_fill(false, array[cardinality(p_idems)]);

  for i in 1 .. cardinality(p_key_at) loop
    ids[i] := null; quotas[i] := null; retries[i] := null;
    k := p_key_at[i];
    a := p_key_app[k];
    if not key_ok[k] or versions[a] is null then kinds[i] := 'invalid_key'; continue; end if;
    if p_versions[i] is distinct from versions[a] then kinds[i] := 'judge_again'; continue; end if;

    b := p_key_bucket[k];
    key_step := (60000000 + key_quotas[a] - 1) / key_quotas[a];
    t := ${nextArrival('tats[b]', 'key_step', 'key_quotas[a]')};
    late := t - key_step * key_quotas[a] - now_us;
    if late > 0 then
      kinds[i] := 'key_rate_limited'; quotas[i] := key_quotas[a]; retries[i] := late; continue;
    end if;
    tats[b] := t; charged[b] := true;

    d := p_idem_at[i];
    if d is not null and idem_ids[d] is not null then
      if idem_bodies[d] = p_bodies[i] then kinds[i] := 'replayed'; ids[i] := idem_ids[d];
      else kinds[i] := 'idempotency_key_reused';
      end if;
      continue;
    end if;
    if p_to_at[i] is null then kinds[i] := 'refused'; continue; end if;
    if room <= 0 then kinds[i] := 'queue_full'; continue; end if;

    b := p_to_at[i];
    m := p_mailbox_at[i];
    to_step := (3600000000 + recipient_quotas[a] - 1) / recipient_quotas[a];
    box_step := (3600000000 + 5 * recipient_quotas[a] - 1) / (5 * recipient_quotas[a]);
    t := ${nextArrival('tats[b]', 'to_step', 'recipient_quotas[a]')};
    box_t := ${nextArrival('tats[m]', 'box_step', '5 * recipient_quotas[a]')};
    late := t - to_step * recipient_quotas[a] - now_us;
    box_late := box_t - box_step * 5 * recipient_quotas[a] - now_us;
    if late > 0 then
      kinds[i] := 'recipient_rate_limited'; quotas[i] := recipient_quotas[a]; retries[i] := late; continue;
    end if;
    if box_late > 0 then
      kinds[i] := 'recipient_rate_limited'; quotas[i] := 5 * recipient_quotas[a]; retries[i] := box_late; continue;
    end if;
    if accepted[a] >= dailies[a] then
      kinds[i] := 'daily_limit_reached'; quotas[i] := dailies[a];
      retries[i] := ((today + 1) * 86400000 - now_ms) * 1000; continue;
    end if;

    tats[b] := t; charged[b] := true;
    tats[m] := box_t; charged[m] := true;
    accepted[a] := accepted[a] + 1;
    room := room - 1;
    admitted := admitted + 1;
    kinds[i] := 'queued'; ids[i] := p_ids[i];
    if d is not null then
      idem_ids[d] := p_ids[i]; idem_bodies[d] := p_bodies[i]; idem_new[d] := true;
    end if;
  end loop;

  insert into postern.rate
    select p_apps[u.a], u.k, u.tat from unnest(p_buckets, p_bucket_app, tats, charged, bucket_new) u(k, a, tat, charged, fresh)
    where u.charged and u.fresh;
  insert into postern.rate
    select p_apps[u.a], u.k, u.tat from unnest(p_buckets, p_bucket_app, tats, charged, bucket_new) u(k, a, tat, charged, fresh)
    where u.charged and not u.fresh
    on conflict (app_id, k) do update set tat = excluded.tat;
  update postern.delivery_key set last_used_at = now_ms
    where key_id = any(array(select p_keys[u.k] from unnest(p_key_bucket) with ordinality u(b, k) where charged[u.b]))
      and coalesce(last_used_at, 0) <= now_ms - 60000;
  if admitted > 0 then
    insert into postern.queue
      select u.id, p_apps[p_key_app[u.k]], u.type, 0, 0, 0, 0, now_ms, u.expires_at, now_ms, 0, u.recipient, '[]'
      from unnest(kinds, p_key_at, p_ids, p_types, p_expiries, p_recipients) u(kind, k, id, type, expires_at, recipient)
      where u.kind = 'queued';
    insert into postern.sealed
      select u.id, p_apps[p_key_app[u.k]], substring(p_sealed from u.first for u.bytes)
      from unnest(kinds, p_key_at, p_ids, p_sealed_from, p_sealed_bytes) u(kind, k, id, first, bytes)
      where u.kind = 'queued';
    insert into postern.idempotency
      select p_apps[u.a], u.k, u.body, u.id, now_ms
      from unnest(p_idems, p_idem_app, idem_bodies, idem_ids, idem_new) u(k, a, body, id, fresh) where u.fresh
      on conflict (app_id, k) do update set body = excluded.body, email_id = excluded.email_id, at = excluded.at;
    update postern.queue_depth set n = n + admitted where slot = p_slot;
  end if;
  insert into postern.usage_day
    select p_apps[p_key_app[u.k]], today, c.what, 0, count(*)
    from unnest(kinds, p_key_at, p_refusals) u(kind, k, refusal)
    cross join lateral (select case u.kind when 'queued' then 'accepted' when 'refused' then u.refusal
      when 'idempotency_key_reused' then 'invalid_body' else u.kind end as what) c
    where u.kind not in ('invalid_key', 'judge_again', 'replayed')
    group by 1, 3 order by 1, 3
    on conflict (app_id, day, what, slot) do update set n = usage_day.n + excluded.n;
  return query select * from unnest(kinds, ids, quotas, retries);
end`,
  lockTimeout,
)

const parameters = Array.from({ length: 25 }, (_, index) => `$${index + 1}`).join(', ')
const enqueueCall = `select * from ${enqueueFunction.name}(${parameters})`

type Decision = {
  kind: EnqueueResult['kind']
  email_id: EmailId | null
  quota: number
  retry_after_us: number
}

/** Enqueues a group on one lane. `judge_again` comes without the app: it is read afterwards. */
export async function enqueueGroup(
  database: PostgresContext,
  lane: Lane,
  calls: readonly EnqueueCall[],
  deadlineMs: number,
): Promise<Decision[]> {
  const values = [lane.slot, database.queueMax, database.clock.offsetMs, ...toColumns(database, calls)]
  return lane.connection.query<Decision>(database.sql(enqueueCall), values, { deadlineMs, strict: true })
}

export function toResult(decision: Exclude<Decision, { kind: 'judge_again' }>): EnqueueResult {
  const { kind, email_id, quota, retry_after_us } = decision
  switch (kind) {
    case 'queued':
    case 'replayed':
      return { kind, emailId: email_id as EmailId }
    case 'key_rate_limited':
    case 'recipient_rate_limited':
    case 'daily_limit_reached': {
      const retryAfterMs = Math.ceil(retry_after_us / 1000)
      return { kind, limit: { quota, windowS: windowsS[kind], retryAfterMs } }
    }
    default:
      return { kind } as EnqueueResult
  }
}

const windowsS = { key_rate_limited: 60, recipient_rate_limited: 3600, daily_limit_reached: 86_400 }

/** Distinct values in the order of their first use; PostgreSQL counts positions from 1. */
class Distinct {
  readonly #places = new Map<string, number>()
  readonly values: string[] = []
  /** For each value, the position of its app. */
  readonly apps: number[] = []

  place(value: string, app: number): number {
    const known = this.#places.get(value)
    if (known !== undefined) return known
    this.values.push(value)
    this.apps.push(app)
    this.#places.set(value, this.values.length)
    return this.values.length
  }
}

const noBytes = Buffer.alloc(0)

/** The function's arrays: what several requests share stands once, requests refer to its position. */
function toColumns({ keyedHash, ring }: PostgresContext, calls: readonly EnqueueCall[]): unknown[] {
  const apps = [...new Set(calls.map(({ key }) => key.appId))]
  const appPlaces = new Map(apps.map((app, index) => [app, index + 1]))
  const [keys, buckets, idems] = [new Distinct(), new Distinct(), new Distinct()]
  const keyBuckets: number[] = []
  const sealed: Buffer[] = []
  let sealedBytes = 0
  const rows = calls.map(({ request, key: { keyId, appId } }) => {
    const app = appPlaces.get(appId) ?? 0
    const key = keys.place(keyId, app)
    keyBuckets[key - 1] ??= buckets.place(keyBucket(keyId), app)
    const { verdict, idempotency } = request
    const admit = 'admit' in verdict ? verdict.admit : null
    const names = admit === null ? null : recipientNames(keyedHash, appId, admit.content.to)
    const body = admit === null ? noBytes : seal(ring, `email ${admit.id}`, JSON.stringify(admit.content))
    const from = sealedBytes + 1
    sealed.push(body)
    sealedBytes += body.length
    return [
      key,
      request.appVersion,
      'refuse' in verdict ? verdict.refuse : null,
      names === null ? null : buckets.place(names.address, app),
      names === null ? null : buckets.place(names.mailbox, app),
      idempotency === null ? null : idems.place(keyedHash('idempotency', appId, idempotency.key), app),
      idempotency === null ? null : keyedHash('body', appId, idempotency.bodyDigest),
      admit?.id ?? null,
      admit?.type ?? null,
      admit?.expiresAt ?? null,
      names?.recipient ?? null,
      from,
      body.length,
    ]
  })
  const columns = Array.from({ length: 13 }, (_, index) => rows.map((row) => row[index] ?? null))
  const shared = [
    apps,
    keys.values,
    keys.apps,
    keyBuckets,
    buckets.values,
    buckets.apps,
    idems.values,
    idems.apps,
  ]
  return [...shared, ...columns, Buffer.concat(sealed)]
}
