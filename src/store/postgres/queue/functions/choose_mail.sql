-- Chooses ready mail of a transport for a claim: that of apps in turns, or a suspect alone, which is out of turn.
-- Returns also which of it has expired, the app where the turns continue, whether there may be more, whether a suspect
-- waits, the other transports with ready mail that it passed, and whether it passed too many apps to see all.
create function choose_mail(p_now_ms bigint, p_transport text, p_max int, p_per_app int, p_after text, p_sought_from text, p_suspect_last boolean,
  p_take_suspect boolean, p_leased_apps text[],
  out picked text[], out expired text[], out last_app text, out more boolean, out suspects boolean, out elsewhere text[],
  out is_cut boolean)
language plpgsql as $$
declare
  turns_max int := least(greatest(p_max, 8), {{appsPerClaim}}); -- of some apps, other workers may be taking the mail
  seen record; turns text[]; suspect record; ready record;
begin
  select q.email_id as id, q.expires_at <= p_now_ms as is_expired into suspect from queue q
    where {{isSuspect}}
      and exists (select from app a where a.app_id = q.app_id and a.status = 'active' and coalesce(a.transport, '') = p_transport)
    order by q.email_id limit 1 for update of q skip locked;
  seen := {{app_turns}}(p_after, p_sought_from, p_transport, turns_max, p_per_app, p_leased_apps);
  turns := seen.turns; elsewhere := seen.elsewhere; is_cut := seen.cut_at is not null;
  suspects := suspect.id is not null and not p_take_suspect;
  more := suspect.id is not null and p_take_suspect;
  if more and not (p_suspect_last and cardinality(turns) > 0) then
    -- A suspect is out of turn: the apps that were seen keep theirs.
    picked := array[suspect.id]; last_app := case when cardinality(turns) > 0 then p_after else coalesce(seen.cut_at, p_after) end;
    expired := case when suspect.is_expired then picked else '{}' end;
    return;
  end if;
  ready := {{pick_in_turns}}(p_now_ms, turns, p_max, p_per_app, p_leased_apps);
  picked := ready.picked; expired := ready.expired;
  -- Without any of theirs, because other workers are changing it, the turns of these apps are over all the same.
  last_app := coalesce(ready.last_app, turns[cardinality(turns)], seen.cut_at, p_after);
  more := cardinality(picked) > 0
    and (more or cardinality(picked) >= p_max or cardinality(turns) >= turns_max or is_cut or cardinality(expired) > 0);
end
$$
