-- Active apps of a transport with ready mail of which the worker may hold more, from the one after p_after to p_sought_from
-- (p_after without one): a loose index scan. Returns also the other transports whose apps it passed, and where it ended if it passed too many apps.
-- With `exists` in the place of the status, PostgreSQL 18 would read all apps for each turn.
create function app_turns(p_after text, p_sought_from text, p_transport text, p_max int, p_per_app int, p_leased_apps text[],
  out turns text[], out elsewhere text[], out cut_at text)
language plpgsql as $$
declare
  last_app text := coalesce(p_sought_from, p_after) collate "C"; after_app text := p_after;
  wrapped boolean := last_app = '' or p_after collate "C" < last_app; next_app text; transport text; passed int := 0;
begin
  turns := '{}'; elsewhere := '{}';
  while cardinality(turns) < p_max loop
    select q.app_id, (select case when a.status = 'active' then coalesce(a.transport, '') end from app a where a.app_id = q.app_id)
      into next_app, transport
      from queue q where {{isReady}} and q.app_id > after_app order by q.app_id limit 1;
    if next_app is null then
      exit when wrapped;
      wrapped := true;
      after_app := '';
      continue;
    end if;
    exit when wrapped and last_app <> '' and next_app collate "C" > last_app;
    if transport <> p_transport then
      if array_position(elsewhere, transport) is null then elsewhere := elsewhere || transport; end if;
    elsif transport is not null and cardinality(array_positions(p_leased_apps, next_app)) < p_per_app then
      turns := turns || next_app;
    end if;
    exit when wrapped and next_app = last_app;
    after_app := next_app;
    passed := passed + 1;
    if passed = {{appsSeenPerClaim}} then
      cut_at := after_app;
      exit;
    end if;
  end loop;
end
$$
