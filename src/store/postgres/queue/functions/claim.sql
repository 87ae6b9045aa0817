-- Claims due mail in one round trip: renews the worker's leases, maintains the queue, and leases ready mail
-- of apps in turns. Rows that another worker is changing are skipped, never waited for.
-- The last row holds no email: the app where the turns continue, whether suspects wait, whether there may be more
-- ready mail, which leases were taken back, which sessions are missing, the emails that the claim ended, with their apps,
-- the other transports with ready mail, and whether the claim passed too many apps to see all.
create function claim({{parameters}})
returns table (email_id text, fence bigint, app_id text, type text, attempts int, lost_leases int,
  accepted_at bigint, expires_at bigint, now_ms bigint, traceparent text, sealed bytea,
  slug text, version bigint, status text, created_at bigint, settings json,
  suspects boolean, more boolean, ended text[], ended_apps text[], lost text[], lost_counts int[], missing int[],
  elsewhere text[], is_cut boolean)
language plpgsql {{settings}} as $$
#variable_conflict use_column
declare
  {{commitDurably}}
  now_ms bigint := {{clockMs}};
  kept record; chosen record; expired text[] := '{}';
begin
  -- Most claims of a quiet service end here.
  if (select sum(count) from queue_depth) = 0 and not exists (select from queue) then app_id := p_after; return next; return; end if;
  perform pg_advisory_xact_lock(p_self, 1); -- one at a time for a process: see outcome.ts
  if cardinality(p_leased) > 0 then
    -- The worker's own leases have not lapsed, even after a pause of the process or a clock step.
    update queue set lease_until = now_ms + {{leaseMs}} where email_id = any(array(
      select q.email_id from unnest(p_leased, p_fences) l(id, fence) join queue q on q.email_id = l.id
      where q.email_id = any(p_leased) and q.fence = l.fence and {{isSending}}
        and (q.lease_until < now_ms + {{leaseMs}} / 2 or q.lease_until > now_ms + {{leaseMs}}) for update of q skip locked));
  end if;
  if p_maintain then
    kept := {{maintain_queue}}(now_ms, p_keys, p_recover, p_missing);
    expired := kept.expired; lost := kept.lost; lost_counts := kept.lost_counts;
    missing := {{missing_sessions}}(p_session);
  end if;

  chosen := {{choose_mail}}(now_ms, p_transport, p_max, p_per_app, p_after, p_sought_from, p_suspect_last, p_take_suspect, p_leased_apps);
  return query with leased as (
      update queue q set state = 'sending', attempts = q.attempts + 1, fence = q.fence + 1,
        session_id = p_session, lease_until = now_ms + {{leaseMs}}, due_at = now_ms + {{leaseMs}}, missing_key = null
      from unnest(chosen.picked) with ordinality p(id, n)
      where q.email_id = p.id and q.email_id = any(chosen.picked) and q.email_id <> all(chosen.expired) returning q.*, p.n
    )
    select l.email_id, l.fence, l.app_id, l.type, l.attempts, l.lost_leases, l.accepted_at, l.expires_at, now_ms, l.traceparent, l.sealed,
      a.slug, a.version, a.status, a.created_at, a.settings, false, false, null::text[], null::text[], null::text[], null::int[], null::int[],
      null::text[], false
    from leased l join app a on a.app_id = l.app_id order by l.n;
  app_id := chosen.last_app; more := chosen.more; suspects := chosen.suspects; elsewhere := chosen.elsewhere; is_cut := chosen.is_cut;
  -- Expired mail that maintenance has not reached was picked too, so that the turns go on; it ends here.
  expired := expired || chosen.expired;
  if cardinality(expired) > 0 then
    select array_agg(q.email_id), array_agg(q.app_id) into ended, ended_apps from queue q where q.email_id = any(expired);
  end if;
  return next;
  if ended is not null then
    perform {{finish}}(p_slot, now_ms, ended, array_fill('expired'::text, array[cardinality(ended)]),
      array_fill(null::text, array[cardinality(ended)]), array_fill(null::jsonb, array[cardinality(ended)]));
  end if;
end
$$
