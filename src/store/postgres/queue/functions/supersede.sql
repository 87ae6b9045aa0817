-- Cancels the older emails of requests that are queued. Those stay that a worker holds, that another transaction
-- changes, that have not waited for long, or that live longer. Returns the ids for each request, separated by
-- spaces. It locks the counters, as `finish` says.
create function supersede(p_slot int, p_now_ms bigint, p_kinds text[], p_expires_at bigint[], p_older text[], p_older_row int[])
returns text[] language plpgsql as $$
declare waiting text[]; count int;
begin
  waiting := array(select email_id from queue q
    where email_id = any(p_older) and state <> 'sending' and accepted_at <= p_now_ms - {{supersededAfterMs}}
      and exists (select from unnest(p_older, p_older_row) o(id, request)
        where o.id = q.email_id and p_kinds[request] = 'queued' and q.expires_at <= p_expires_at[request])
    order by email_id for update skip locked);
  count := cardinality(waiting);
  if count = 0 then return null; end if;
  perform {{finish}}(p_slot, p_now_ms, waiting, array_fill('cancelled'::text, array[count]),
    array_fill('superseded'::text, array[count]), array_fill(null::jsonb, array[count]));
  -- Of two requests with the same older email, the first supersedes it.
  return array(select (select string_agg(first.id, ' ') from (
      select id, min(request) as request from unnest(p_older, p_older_row) o(id, request)
      where id = any(waiting) and p_kinds[request] = 'queued' group by id) first where first.request = n)
    from generate_subscripts(p_kinds, 1) n order by n);
end
$$
