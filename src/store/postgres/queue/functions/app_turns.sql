-- Active apps with ready mail, from the one after p_after: a loose index scan.
create function app_turns(p_after text)
returns text[] language plpgsql {{settings}} as $$
declare
  turns text[] := '{}'; wrapped boolean := p_after = ''; after_app text := p_after; next_app text;
begin
  while cardinality(turns) < {{appsPerClaim}} loop
    select q.app_id into next_app from queue q
      where {{isReady}} and q.app_id > after_app order by q.app_id limit 1;
    if next_app is null then
      exit when wrapped;
      wrapped := true;
      after_app := '';
      continue;
    end if;
    exit when wrapped and p_after <> '' and next_app collate "C" > p_after;
    if exists (select from app a where a.app_id = next_app and a.status = 'active') then
      turns := turns || next_app;
    end if;
    after_app := next_app;
  end loop;
  return turns;
end
$$
