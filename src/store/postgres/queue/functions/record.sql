-- Records the outcomes of a group of attempts. Only the current fence of an email counts: the result has the
-- positions of the outcomes that were recorded.
create function record({{parameters}})
returns int[] language plpgsql {{settings}} as $$
#variable_conflict use_column
declare
  {{commitDurably}}
  now_ms bigint := {{clockMs}};
  recorded int[];
begin
  perform pg_advisory_xact_lock(p_self, 2); -- one at a time for a process: see outcome.ts
  recorded := array(select n::int from unnest(p_ids, p_fences) with ordinality o(id, fence, n)
    join queue q on q.email_id = o.id
    where q.email_id = any(p_ids) and q.fence = o.fence and {{isSending}}
    order by q.email_id for update of q);
  if array_position(p_finals, null) is not null then
    update queue q
      set state = case when o.given_back and o.wait_ms = 0 then 'queued' else 'deferred' end,
        due_at = least(now_ms + o.wait_ms, q.expires_at),
        wanted_at = case when o.given_back then q.wanted_at else least(now_ms + o.wait_ms, q.expires_at) end,
        attempts = q.attempts - o.given_back::int, fence = q.fence + 1,
        missing_key = o.missing_key, trail = {{append_trail}}(q.trail, now_ms, o.attempt)
      from unnest(p_ids, p_finals, p_waits_ms, p_given_back, p_missing_keys, p_attempts) with ordinality
        o(id, final_state, wait_ms, given_back, missing_key, attempt, n)
      where q.email_id = o.id and q.email_id = any(p_ids) and o.n = any(recorded) and o.final_state is null;
  end if;
  perform {{finish}}(p_slot, now_ms, array_agg(id), array_agg(final_state), array_agg(reason), array_agg(attempt))
    from unnest(p_ids, p_finals, p_reasons, p_attempts) with ordinality o(id, final_state, reason, attempt, n)
    where n = any(recorded) and final_state is not null having count(*) > 0;
  return recorded;
end
$$
