-- The maintenance part of a claim, in bounded steps: finds what has expired, recovers lapsed leases, queues
-- deferred mail that is due. A lease or a wait longer than any that is given dates from before the clock was
-- set back; twice as long, because a transaction that began later read a later clock.
-- Returns the ids to finish as expired, and as failed because they lost too many leases.
create function maintain_queue(p_now_ms bigint, p_recover boolean, p_lost_record jsonb, out expired text[], out dead text[])
language plpgsql {{settings}} as $$
declare
  lapsed text[] := '{}'; due text[];
begin
  dead := '{}';
  expired := array(select email_id from queue where expires_at <= p_now_ms and state in ('queued', 'deferred')
    order by expires_at limit {{stepMax}} for update skip locked);
  if p_recover then
    lapsed := array(select email_id from queue where state = 'sending' and lease_until <= p_now_ms
        order by lease_until limit {{stepMax}} for update skip locked)
      || array(select email_id from queue where state = 'sending' and lease_until > p_now_ms + 2 * {{leaseMs}}
        order by lease_until desc limit {{stepMax}} for update skip locked);
  end if;
  if cardinality(lapsed) > 0 then
    dead := array(select email_id from queue where email_id = any(lapsed) and lost_leases + 1 >= {{lostLeasesMax}});
    update queue set state = 'queued', attempts = attempts - 1, lost_leases = lost_leases + 1, fence = fence + 1,
        trail = {{append_trail}}(trail, p_lost_record)
      where email_id = any(lapsed) and email_id <> all(dead);
  end if;
  due := array(select email_id from queue where state = 'deferred' and due_at <= p_now_ms
      order by due_at limit {{stepMax}} for update skip locked)
    || array(select email_id from queue where state = 'deferred' and due_at > p_now_ms + 2 * {{waitMaxMs}}
      order by due_at desc limit {{stepMax}} for update skip locked);
  if cardinality(due) > 0 then
    update queue set state = 'queued' where email_id = any(due);
  end if;
end
$$
