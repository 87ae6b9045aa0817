-- Decides on a group of requests and writes the result, in one transaction. It locks the group's apps in
-- order and reads with fresh snapshots. Nothing else writes an app's limits, idempotency keys and counts
-- without the app's lock, so the decisions are exact. A request without a key has its app in the place of the key.
create function enqueue({{parameters}})
returns table (kind text, email_id text, quota bigint, wait_us bigint, superseded text)
language plpgsql {{settings}} as $$
#variable_conflict use_column
declare {{commitDurably}}
  now_us bigint; now_ms bigint; day_number bigint; free_places bigint; suppressing boolean; decided record;
  app_versions bigint[]; key_quotas bigint[]; recipient_quotas bigint[]; daily_quotas bigint[]; accepted_today bigint[];
  keys_valid boolean[]; keys_due boolean[]; arrivals bigint[]; new_buckets boolean[];
  known_emails text[] := '{}'; known_bodies text[] := '{}'; reasons text[]; cancelled text[];
begin
  perform 1 from app_lock where app_id = any(p_apps) order by app_id for update;
  now_us := floor(extract(epoch from clock_timestamp()) * 1000000)::bigint + p_offset_ms * 1000;
  now_ms := now_us / 1000; day_number := now_us / {{dayUs}};
  select p_queue_max - sum(count), exists (select from suppression) into free_places, suppressing from queue_depth;

  select array_agg(active.version order by n), array_agg(active.key_per_minute order by n), array_agg(active.recipient_per_hour order by n),
      array_agg(active.daily order by n), array_agg(coalesce((select today.count from usage_day today where today.app_id = app.id
        and today.day = day_number and today.event = 'accepted' and today.slot = 0), 0) order by n)
    into app_versions, key_quotas, recipient_quotas, daily_quotas, accepted_today
    from unnest(p_apps) with ordinality app(id, n)
    left join app active on active.app_id = app.id and active.status = 'active';
  select array_agg(key.id = p_apps[key.app] or (k.key_id is not null and k.revoked_at is null and (k.expires_at is null or k.expires_at > now_ms)) order by n),
      array_agg(coalesce(k.last_used_at, 0) <= now_ms - {{lastUseEveryMs}} order by n)
    into keys_valid, keys_due
    from unnest(p_keys, p_key_app) with ordinality key(id, app, n) left join delivery_key k on k.key_id = key.id;
  select array_agg(coalesce(stored.arrival_us, 0) order by n), array_agg(stored.arrival_us is null order by n)
    into arrivals, new_buckets
    from unnest(p_buckets, p_bucket_app) with ordinality wanted(bucket, app, n)
    left join rate_bucket stored on stored.app_id = p_apps[wanted.app] and stored.bucket = wanted.bucket;
  if cardinality(p_request_keys) > 0 then
    select array_agg(stored.email_id order by n), array_agg(stored.body_hash order by n) into known_emails, known_bodies
      from unnest(p_request_keys, p_request_key_app) with ordinality wanted(request_key, app, n)
      left join idempotency stored on stored.app_id = p_apps[wanted.app]
        and stored.request_key = wanted.request_key and stored.created_at > now_ms - {{idempotencyMs}};
  end if;

  -- A request that was refused already has no buckets of recipients; the limit of its key is charged all the same.
  decided := {{decide}}(p_now_us => now_us, p_free_places => free_places, p_app_versions => app_versions, p_key_quotas => key_quotas,
    p_recipient_quotas => recipient_quotas, p_daily_quotas => daily_quotas, accepted_today => accepted_today, p_keys_valid => keys_valid,
    p_key_app => p_key_app, p_key_bucket => p_key_bucket, p_key => p_key, p_version => p_version, p_recipient_bucket => p_recipient_bucket,
    p_mailbox_bucket => p_mailbox_bucket, p_request_key => p_request_key, p_body_hash => p_body_hash, p_email_id => p_email_id,
    arrivals => arrivals, known_emails => known_emails, known_bodies => known_bodies);
  if suppressing then
    select * into decided.kinds, reasons from {{suppress}}(now_ms, p_apps, p_key_app, p_key, p_type, p_recipient, decided.kinds);
  end if;
  perform {{write_limits}}(p_now_ms => now_ms, p_day => day_number, p_apps => p_apps, p_keys => p_keys, p_key_app => p_key_app,
    p_key_bucket => p_key_bucket, p_buckets => p_buckets, p_bucket_app => p_bucket_app, p_key => p_key, p_refusal => p_refusal,
    p_kinds => decided.kinds, p_arrivals => decided.arrivals, p_charged => decided.charged, p_new => new_buckets, p_keys_due => keys_due);
  if decided.queued > 0 then
    perform {{write_emails}}(p_now_ms => now_ms, p_apps => p_apps, p_keys => p_keys, p_key_app => p_key_app, p_key => p_key,
      p_kinds => decided.kinds, p_reasons => reasons, p_email_id => p_email_id, p_type => p_type, p_expires_at => p_expires_at,
      p_recipient => p_recipient, p_traceparent => p_traceparent, p_sealed_from => p_sealed_from, p_sealed_length => p_sealed_length,
      p_sealed => p_sealed, p_request_keys => p_request_keys, p_request_key_app => p_request_key_app, p_bodies => decided.known_bodies,
      p_emails => decided.known_emails, p_remembered => decided.remembered);
    if cardinality(p_older) > 0 then cancelled := {{supersede}}(p_slot, now_ms, decided.kinds, p_expires_at, p_older, p_older_row); end if;
    update queue_depth set count = count + cardinality(array_positions(decided.kinds, 'queued')) where slot = p_slot;
  end if;
  return query select * from unnest(decided.kinds, decided.email_ids, decided.quotas, decided.waits_us, cancelled);
end
$$
