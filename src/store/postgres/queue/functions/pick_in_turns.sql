-- Ids of ready mail: a share for each app in the first round, then the places that others left over.
create function pick_in_turns(p_turns text[], p_max int, p_per_app int, p_leased_apps text[])
returns text[] language plpgsql as $$
declare
  picked text[] := '{}'; ids text[]; places int[]; starts text[]; share int; take int;
begin
  for i in 1 .. cardinality(p_turns) loop
    places[i] := p_per_app - (select count(*) from unnest(p_leased_apps) leased where leased = p_turns[i]);
    starts[i] := '';
  end loop;
  share := greatest(1, p_max / greatest(1, cardinality(p_turns)));
  for round in 1 .. 2 loop
    for i in 1 .. cardinality(p_turns) loop
      take := least(case round when 1 then share else p_max end, places[i], p_max - cardinality(picked));
      continue when take <= 0 or starts[i] is null;
      ids := array(select email_id from queue
        where {{isReady}} and app_id = p_turns[i] and email_id > starts[i]
        order by email_id limit take for update skip locked);
      places[i] := places[i] - cardinality(ids);
      picked := picked || ids;
      starts[i] := ids[cardinality(ids)];
    end loop;
  end loop;
  return picked;
end
$$
