-- The session locks that leases name and that nobody holds: their workers are dead, or lost their sessions.
create function gone_holders(p_holder int)
returns int[] language sql stable {{settings}} as $$
  select array(
    select distinct holder from queue where state = 'sending' and holder not in (0, p_holder)
    except
    select objid::bigint::int from pg_locks
      where locktype = 'advisory' and classid = {{workerLockClass}} and objsubid = 2 and granted
        and database = (select oid from pg_database where datname = current_database()))
$$
