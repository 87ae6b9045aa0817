-- The kinds of a group's requests, with `suppressed` in the place of `queued` where the recipient gets no mail now.
create function suppress(
  p_now_ms bigint, p_apps text[], p_key_app int[], p_key int[], p_kinds text[], p_type text[], p_recipient text[])
returns text[] language plpgsql {{settings}} as $$
begin
  if not exists (select from suppression) then return p_kinds; end if;
  return array(
    select case when r.kind = 'queued' and exists (select from suppression s
        where s.app_id in (p_apps[p_key_app[r.key]], '') and s.recipient = r.recipient
          and case when r.type = 'organisation_invite' then s.invitations_until else s.until end > p_now_ms)
      then 'suppressed' else r.kind end
    from unnest(p_kinds, p_key, p_type, p_recipient) with ordinality r(kind, key, type, recipient, n) order by n);
end
$$
