-- The reasons for which recipients of a group get no mail now: null for each other one, or for all of them.
-- The kinds of these requests are `suppressed` in the place of `queued`. A suppression for all apps goes first.
create function suppress(
  p_now_ms bigint, p_apps text[], p_key_app int[], p_key int[], p_type text[], p_recipient text[],
  inout kinds text[], out reasons text[])
language plpgsql as $$
begin
  reasons := array(
    select case when r.kind = 'queued' then (select s.reason from suppression s
        where s.app_id in (p_apps[p_key_app[r.key]], '') and s.recipient = r.recipient
          and case when r.type in ({{unaskedTypes}}) then s.invitations_until else s.until end > p_now_ms
        order by s.app_id limit 1) end
    from unnest(kinds, p_key, p_type, p_recipient) with ordinality r(kind, key, type, recipient, n) order by n);
  kinds := array(select case when r.reason is null then r.kind else 'suppressed' end
    from unnest(kinds, reasons) with ordinality r(kind, reason, n) order by n);
end
$$
