-- Active apps with ready mail of which the worker may hold more, from the one after p_after: a loose index scan.
-- With `exists` in the place of the status, PostgreSQL 18 would read all apps for each turn.
create function app_turns(p_after text, p_max int, p_per_app int, p_leased_apps text[])
returns text[] language plpgsql as $$
declare
  turns text[] := '{}'; wrapped boolean := p_after = ''; after_app text := p_after; next_app text; active boolean;
begin
  turns := '{}'; elsewhere := '{}';
  while cardinality(turns) < p_max loop
    select q.app_id, (select a.status = 'active' from app a where a.app_id = q.app_id) into next_app, active
      from queue q where {{isReady}} and q.app_id > after_app order by q.app_id limit 1;
    if next_app is null then
      exit when wrapped;
      wrapped := true;
      after_app := '';
      continue;
    end if;
    exit when wrapped and p_after <> '' and next_app collate "C" > p_after;
    if active and cardinality(array_positions(p_leased_apps, next_app)) < p_per_app then
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
