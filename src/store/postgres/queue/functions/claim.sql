-- Claims due mail in one round trip: renews the worker's leases, maintains the queue, and leases ready mail
-- of apps in turns. Rows that another worker is changing are skipped, never waited for.
-- The last row holds no email: the app where the turns continue, whether suspects wait, whether there may be more
-- ready mail, which leases were taken back, which sessions are missing, and the emails that the claim ended, with their apps.
create function claim({{parameters}})
returns table (email_id text, fence bigint, app_id text, type text, attempts int, lost_leases int,
  accepted_at bigint, expires_at bigint, now_ms bigint, traceparent text, sealed bytea,
  slug text, version bigint, status text, created_at bigint, settings json,
  suspects boolean, more boolean, ended text[], ended_apps text[], lost text[], lost_counts int[], missing int[])
language plpgsql {{settings}} as $$
#variable_conflict use_column
declare
  now_ms bigint := {{clockMs}};
  turns_max int := least(greatest(p_max, 8), {{appsPerClaim}}); -- of some apps, other workers may be taking the mail
  expired text[] := '{}'; picked_expired text[]; turns text[]; suspect text; picked text[]; last_app text;
  lost_now text[]; lost_counts_now int[];
begin
  -- Most claims of a quiet service end here.
  if (select sum(count) from queue_depth) = 0 and not exists (select from queue) then app_id := p_after; return next; return; end if;
  {{commitDurably}}
  perform pg_advisory_xact_lock(p_self, 1); -- one at a time for a process: see outcome.ts
  -- The worker's own leases have not lapsed, even after a pause of the process or a clock step.
  update queue set lease_until = now_ms + {{leaseMs}} where email_id = any(array(
    select q.email_id from unnest(p_leased, p_fences) l(id, fence) join queue q on q.email_id = l.id
    where q.email_id = any(p_leased) and q.fence = l.fence and {{isSending}}
      and (q.lease_until < now_ms + {{leaseMs}} / 2 or q.lease_until > now_ms + {{leaseMs}}) for update of q skip locked));
  if p_maintain then
    select m.expired, m.lost, m.lost_counts into expired, lost_now, lost_counts_now
      from {{maintain_queue}}(now_ms, p_keys, p_recover, p_missing) m;
  end if;

  select q.email_id into suspect from queue q
    where {{isSuspect}}
      and exists (select from app a where a.app_id = q.app_id and a.status = 'active')
    order by q.email_id limit 1 for update of q skip locked;
  turns := {{app_turns}}(p_after, turns_max, p_per_app, p_leased_apps);
  if suspect is not null and p_take_suspect and not (p_suspect_last and cardinality(turns) > 0) then
    picked := array[suspect];
  else
    picked := {{pick_in_turns}}(turns, p_max, p_per_app, p_leased_apps);
  end if;
  select q.app_id into last_app from queue q where q.email_id = picked[cardinality(picked)];
  -- Expired mail that maintenance has not reached is picked too, so that the turns go on; it ends here.
  picked_expired := array(select email_id from queue where email_id = any(picked) and expires_at <= now_ms);
  more := cardinality(picked) > 0 and (cardinality(picked) >= p_max or cardinality(turns) >= turns_max
    or cardinality(picked_expired) > 0 or (suspect is not null and p_take_suspect));
  return query select leased.*, false, false, null::text[], null::text[], null::text[], null::int[], null::int[]
    from {{lease}}(now_ms, p_session, picked, picked_expired) leased;
  -- Without any of theirs, because other workers are changing it, the turns of these apps are over all the same.
  -- A suspect is out of turn.
  app_id := case when suspect = any(picked) then p_after else coalesce(last_app, turns[cardinality(turns)], p_after) end;
  suspects := suspect is not null and not p_take_suspect;
  select array_agg(q.email_id), array_agg(q.app_id) into ended, ended_apps
    from queue q where q.email_id = any(expired || picked_expired);
  lost := lost_now;
  lost_counts := lost_counts_now;
  if p_maintain then missing := {{missing_sessions}}(p_session); end if;
  return next;
  if ended is not null then
    perform {{finish}}(p_slot, now_ms, ended, array_fill('expired'::text, array[cardinality(ended)]),
      array_fill(null::text, array[cardinality(ended)]), array_fill(null::jsonb, array[cardinality(ended)]));
  end if;
end
$$
