-- Cancels the older email of each one that is queued: the one before it in the group with the same name, or the one that
-- the process remembers under it. Emails that a worker holds, or that another transaction changes, stay. Returns the ids.
-- It locks the counters, as `finish` says.
create function supersede(
  p_slot int, p_now_ms bigint, p_kinds text[], p_email_id text[], p_names text[], p_recent text[])
returns text[] language plpgsql {{settings}} as $$
declare older text[]; waiting text[];
begin
  if cardinality(p_names) = 0 then return array_fill(null::text, array[cardinality(p_kinds)]); end if;
  older := array(
    select case when kind = 'queued' and name is not null
        then coalesce(lag(id) over (partition by name, kind order by n), recent) end
    from unnest(p_kinds, p_email_id, p_names, p_recent) with ordinality r(kind, id, name, recent, n) order by n);
  waiting := array(select email_id from queue
    where email_id = any(older) and state <> 'sending' order by email_id for update skip locked);
  perform {{finish}}(p_slot, p_now_ms, waiting, array_fill('cancelled'::text, array[cardinality(waiting)]),
    array_fill('superseded'::text, array[cardinality(waiting)]), array_fill(null::jsonb, array[cardinality(waiting)]));
  return array(select case when id = any(waiting) then id end from unnest(older) with ordinality o(id, n) order by n);
end
$$
