-- The maintenance part of a claim, in bounded steps: finds what has expired, takes back the leases of missing
-- sessions and lapsed ones, queues deferred mail that is due, or whose key the worker has. A lease or a wait longer than any that is given
-- dates from before the clock was set back; twice as long, because a transaction that began later read a later clock.
-- Returns the ids to finish as expired, and the emails whose leases were taken back, with how many each has lost.
create function maintain_queue(p_now_ms bigint, p_keys text[], p_recover boolean, p_missing int[],
  out expired text[], out lost text[], out lost_counts int[])
language plpgsql as $$
declare
  taken_back text[] := '{}'; due text[];
begin
  expired := array(select email_id from queue where expires_at <= p_now_ms and state in ('queued', 'deferred')
    order by expires_at limit {{stepMax}} for update skip locked);
  if p_recover then
    taken_back := array(select email_id from queue where state = 'sending' and lease_until <= p_now_ms
        order by lease_until limit {{stepMax}} for update skip locked)
      || array(select email_id from queue where state = 'sending' and lease_until > p_now_ms + 2 * {{leaseMs}}
        order by lease_until desc limit {{stepMax}} for update skip locked)
      || array(select email_id from queue where state = 'sending' and session_id = any(p_missing)
        limit {{stepMax}} for update skip locked);
  end if;
  if cardinality(taken_back) > 0 then
    with taken as (
      update queue set attempts = attempts - 1, lost_leases = lost_leases + 1, fence = fence + 1,
          state = case when {{lost_lease_wait}}(lost_leases + 1) = 0 then 'queued' else 'deferred' end,
          due_at = least(p_now_ms + {{lost_lease_wait}}(lost_leases + 1), expires_at),
          trail = {{append_trail}}(trail, p_now_ms, '{"outcome": "lost"}')
        where email_id = any(taken_back) returning email_id, lost_leases
    )
    select array_agg(email_id), array_agg(lost_leases) into lost, lost_counts from taken;
  end if;
  due := array(select email_id from queue where state = 'deferred' and missing_key is null and due_at <= p_now_ms
      order by due_at limit {{stepMax}} for update skip locked)
    || array(select email_id from queue where state = 'deferred' and missing_key is null and due_at > p_now_ms + 2 * {{waitMaxMs}}
      order by due_at desc limit {{stepMax}} for update skip locked);
  if cardinality(due) > 0 then
    update queue set state = 'queued' where email_id = any(due);
  end if;
  due := array(select email_id from queue where state = 'deferred' and missing_key = any(p_keys)
    limit {{stepMax}} for update skip locked);
  if cardinality(due) > 0 then
    update queue set missing_key = null, due_at = greatest(wanted_at, p_now_ms),
      state = case when wanted_at <= p_now_ms then 'queued' else 'deferred' end where email_id = any(due);
  end if;
end
$$
