-- Decides on each request of a group in order of arrival, as sqlite/enqueue.ts does. Pure: reads no table.
-- A request refers by position to its key, its buckets and its idempotency key; a key refers to its app.
create function decide(
  p_now_us bigint, p_free_places bigint, p_app_versions bigint[],
  p_key_quotas bigint[], p_recipient_quotas bigint[], p_daily_quotas bigint[],
  accepted_today bigint[], p_keys_valid boolean[], p_key_app int[], p_key_bucket int[], p_key int[],
  p_version bigint[], p_recipient_bucket int[], p_mailbox_bucket int[], p_request_key int[], p_body_hash text[],
  p_email_id text[], inout arrivals bigint[], inout known_emails text[], inout known_bodies text[],
  out kinds text[], out email_ids text[], out quotas bigint[], out waits_us bigint[],
  out charged boolean[], out remembered boolean[], out queued int)
language plpgsql as $$
declare
  key int; app int; bucket int; mailbox int; request_key int; quota bigint; step_us bigint; next_us bigint;
  mailbox_step_us bigint; mailbox_next_us bigint; wait_us bigint;
begin
  queued := 0;
  charged := array_fill(false, array[cardinality(arrivals)]);
  remembered := array_fill(false, array[cardinality(known_emails)]);
  for i in 1 .. cardinality(p_key) loop
    key := p_key[i]; app := p_key_app[key]; request_key := p_request_key[i];
    email_ids[i] := null; quotas[i] := null; waits_us[i] := null;
    if not p_keys_valid[key] or p_app_versions[app] is null then kinds[i] := 'invalid_key'; continue; end if;
    if p_version[i] is distinct from p_app_versions[app] then kinds[i] := 'judge_again'; continue; end if;

    bucket := p_key_bucket[key]; quota := p_key_quotas[app];
    step_us := ({{keyWindowUs}} + quota - 1) / quota;
    next_us := {{next_arrival}}(arrivals[bucket], step_us, quota, p_now_us);
    wait_us := next_us - step_us * quota - p_now_us;
    if wait_us > 0 then kinds[i] := 'key_rate_limited'; quotas[i] := quota; waits_us[i] := wait_us; continue; end if;
    arrivals[bucket] := next_us; charged[bucket] := true;

    if known_emails[request_key] is not null then
      if known_bodies[request_key] <> p_body_hash[i] then kinds[i] := 'idempotency_key_reused'; continue; end if;
      kinds[i] := 'replayed'; email_ids[i] := known_emails[request_key]; continue;
    end if;
    bucket := p_recipient_bucket[i]; mailbox := p_mailbox_bucket[i];
    if bucket is null then kinds[i] := 'refused'; continue; end if;
    if p_free_places <= queued then kinds[i] := 'queue_full'; continue; end if;

    quota := p_recipient_quotas[app]; step_us := ({{recipientWindowUs}} + quota - 1) / quota;
    next_us := {{next_arrival}}(arrivals[bucket], step_us, quota, p_now_us);
    wait_us := next_us - step_us * quota - p_now_us;
    if wait_us <= 0 then
      quota := {{mailboxFactor}} * quota; mailbox_step_us := ({{recipientWindowUs}} + quota - 1) / quota;
      mailbox_next_us := {{next_arrival}}(arrivals[mailbox], mailbox_step_us, quota, p_now_us);
      wait_us := mailbox_next_us - mailbox_step_us * quota - p_now_us;
    end if;
    if wait_us > 0 then kinds[i] := 'recipient_rate_limited'; quotas[i] := quota; waits_us[i] := wait_us; continue; end if;
    if accepted_today[app] >= p_daily_quotas[app] then
      kinds[i] := 'daily_limit_reached'; quotas[i] := p_daily_quotas[app]; waits_us[i] := {{dayUs}} - p_now_us % {{dayUs}}; continue;
    end if;

    kinds[i] := 'queued'; email_ids[i] := p_email_id[i]; queued := queued + 1;
    arrivals[bucket] := next_us; charged[bucket] := true;
    arrivals[mailbox] := mailbox_next_us; charged[mailbox] := true;
    accepted_today[app] := accepted_today[app] + 1;
    if request_key is not null then
      known_emails[request_key] := p_email_id[i]; known_bodies[request_key] := p_body_hash[i]; remembered[request_key] := true;
    end if;
  end loop;
end
$$
