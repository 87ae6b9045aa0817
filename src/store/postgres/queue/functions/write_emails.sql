-- Writes the emails of a group that are queued, and the records of those that are suppressed, and remembers their idempotency keys.
create function write_emails(
  p_now_ms bigint, p_apps text[], p_keys text[], p_key_app int[], p_key int[], p_kinds text[], p_reasons text[],
  p_email_id text[], p_type text[], p_expires_at bigint[], p_recipient text[], p_traceparent text[],
  p_sealed_from int[], p_sealed_length int[], p_sealed bytea,
  p_request_keys text[], p_request_key_app int[], p_bodies text[], p_emails text[], p_remembered boolean[])
returns void language plpgsql as $$
begin
  insert into queue (email_id, app_id, key_id, type, state, attempts, lost_leases, fence, accepted_at,
      expires_at, due_at, wanted_at, lease_until, session_id, recipient, trail, traceparent, sealed)
    select id, p_apps[p_key_app[key]], nullif(p_keys[key], p_apps[p_key_app[key]]), type, 'queued', 0, 0, 0, p_now_ms,
      expires_at, p_now_ms, p_now_ms, 0, 0, recipient, '[]', traceparent, substring(p_sealed from sealed_from for sealed_length)
    from unnest(p_kinds, p_key, p_email_id, p_type, p_expires_at, p_recipient, p_traceparent, p_sealed_from, p_sealed_length)
      r(kind, key, id, type, expires_at, recipient, traceparent, sealed_from, sealed_length)
    where kind = 'queued';
  if 'suppressed' = any(p_kinds) then
    insert into history (email_id, app_id, key_id, type, state, reason, attempts, lost_leases, accepted_at, expires_at,
        finished_at, recipient, trail, traceparent)
      select id, p_apps[p_key_app[key]], nullif(p_keys[key], p_apps[p_key_app[key]]), type, kind, reason,
        0, 0, p_now_ms, expires_at, p_now_ms, recipient, '[]', traceparent
      from unnest(p_kinds, p_reasons, p_key, p_email_id, p_type, p_expires_at, p_recipient, p_traceparent)
        r(kind, reason, key, id, type, expires_at, recipient, traceparent)
      where kind = 'suppressed';
  end if;
  if true = any(p_remembered) then
    insert into idempotency (app_id, request_key, body_hash, email_id, created_at)
      select p_apps[app], request_key, body_hash, email_id, p_now_ms
      from unnest(p_request_keys, p_request_key_app, p_bodies, p_emails, p_remembered)
        k(request_key, app, body_hash, email_id, remembered)
      where remembered
      on conflict (app_id, request_key) do update
        set body_hash = excluded.body_hash, email_id = excluded.email_id, created_at = excluded.created_at;
  end if;
end
$$
