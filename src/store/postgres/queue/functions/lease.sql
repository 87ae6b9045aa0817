-- Leases the picked emails, except the expired ones, and returns them with their content and their app.
create function lease(p_now_ms bigint, p_session int, p_picked text[], p_expired text[])
returns table (email_id text, fence bigint, app_id text, type text, attempts int, lost_leases int,
  accepted_at bigint, expires_at bigint, now_ms bigint, traceparent text, sealed bytea,
  slug text, version bigint, status text, created_at bigint, settings json)
language plpgsql as $$
#variable_conflict use_column
begin
  return query with leased as (
      update queue q set state = 'sending', attempts = q.attempts + 1, fence = q.fence + 1,
        session_id = p_session, lease_until = p_now_ms + {{leaseMs}}, due_at = p_now_ms + {{leaseMs}},
        missing_key = null
      from unnest(p_picked) with ordinality p(id, n)
      where q.email_id = p.id and q.email_id = any(p_picked) and q.email_id <> all(p_expired) returning q.*, p.n
    )
    select l.email_id, l.fence, l.app_id, l.type, l.attempts, l.lost_leases, l.accepted_at, l.expires_at, p_now_ms, l.traceparent, l.sealed,
      a.slug, a.version, a.status, a.created_at, a.settings
    from leased l join app a on a.app_id = l.app_id order by l.n;
end
$$
