-- The sessions that leases name and whose lock nobody holds: their workers are dead or cut off.
create function missing_sessions(p_own int)
returns int[] language plpgsql as $$
begin
  -- The locks are read only if there is such a lease: that takes as long as there are locks on the server.
  return array(
    select distinct session_id from queue where state = 'sending' and session_id not in (0, p_own)
      and session_id <> all(array(select objid::bigint::int from pg_locks
        where locktype = 'advisory' and classid = {{sessionLockClass}} and objsubid = 2 and granted
          and database = (select oid from pg_database where datname = current_database()))));
end
$$
