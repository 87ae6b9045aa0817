-- Ids of ready mail: a share for each app in the first round, then the places that others left over. Returns
-- also which of them have expired, and the app of the last one.
create function pick_in_turns(p_now_ms bigint, p_turns text[], p_max int, p_per_app int, p_leased_apps text[],
  out picked text[], out expired text[], out last_app text)
language plpgsql as $$
declare
  ids text[]; ids_expired text[]; places int[]; starts text[]; share int; take int;
begin
  picked := '{}'; expired := '{}';
  for i in 1 .. cardinality(p_turns) loop
    places[i] := p_per_app - cardinality(array_positions(p_leased_apps, p_turns[i]));
    starts[i] := '';
  end loop;
  share := greatest(1, p_max / greatest(1, cardinality(p_turns)));
  for round in 1 .. 2 loop
    for i in 1 .. cardinality(p_turns) loop
      take := least(case round when 1 then share else p_max end, places[i], p_max - cardinality(picked));
      continue when take <= 0 or starts[i] is null;
      select array_agg(email_id order by email_id), array_agg(email_id) filter (where expires_at <= p_now_ms)
        into ids, ids_expired from (select email_id, expires_at from queue
          where {{isReady}} and app_id = p_turns[i] and email_id > starts[i]
          order by email_id limit take for update skip locked) ready;
      starts[i] := null;
      continue when ids is null;
      picked := picked || ids; expired := expired || ids_expired; last_app := p_turns[i];
      places[i] := places[i] - cardinality(ids);
      if cardinality(ids) = take then starts[i] := ids[take]; end if; -- otherwise there is no more
    end loop;
  end loop;
end
$$
