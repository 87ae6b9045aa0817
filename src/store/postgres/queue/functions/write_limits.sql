-- Writes the buckets that a group charged, when its keys were used, and the day's counts.
create function write_limits(
  p_now_ms bigint, p_day bigint, p_apps text[], p_keys text[], p_key_app int[], p_key_bucket int[],
  p_buckets text[], p_bucket_app int[], p_key int[], p_refusal text[],
  p_kinds text[], p_arrivals bigint[], p_charged boolean[], p_new boolean[], p_keys_due boolean[])
returns void language plpgsql as $$
begin
  -- New buckets are inserted without a conflict clause, which costs less.
  if true = any(p_new) then
    insert into rate_bucket (app_id, bucket, arrival_us)
      select p_apps[app], bucket, arrival_us
      from unnest(p_buckets, p_bucket_app, p_arrivals, p_charged, p_new) b(bucket, app, arrival_us, charged, is_new)
      where charged and is_new;
  end if;
  if false = any(p_new) then
    insert into rate_bucket (app_id, bucket, arrival_us)
      select p_apps[app], bucket, arrival_us
      from unnest(p_buckets, p_bucket_app, p_arrivals, p_charged, p_new) b(bucket, app, arrival_us, charged, is_new)
      where charged and not is_new
      on conflict (app_id, bucket) do update set arrival_us = excluded.arrival_us;
  end if;
  if true = any(p_keys_due) then
    -- A key that an operator is changing keeps its last use: requests do not wait for that change.
    update delivery_key set last_used_at = p_now_ms
      where key_id = any(array(select key_id from delivery_key
        where key_id = any(array(select id from unnest(p_keys, p_key_bucket, p_keys_due) key(id, bucket, due)
          where due and p_charged[bucket])) for no key update skip locked));
  end if;
  insert into usage_day (app_id, day, event, slot, count)
    select p_apps[p_key_app[key]], p_day, e.event, 0, count(*)
    from unnest(p_kinds, p_key, p_refusal) r(kind, key, refusal)
    cross join lateral (select unnest(case kind when 'queued' then array['accepted'] when 'refused' then array[refusal]
      when 'suppressed' then array['accepted', kind] when 'idempotency_key_reused' then array['invalid_body']
      else array[kind] end) as event) e
    where kind not in ('invalid_key', 'judge_again', 'replayed')
    group by 1, 3 order by 1, 3
    on conflict (app_id, day, event, slot) do update set count = usage_day.count + excluded.count;
end
$$
