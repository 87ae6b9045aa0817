-- Records the outcomes of a group of attempts. Only the current fence of an email counts: the result says
-- for each outcome whether it was recorded.
create function record({{parameters}})
returns boolean[] language plpgsql {{settings}} as $$
#variable_conflict use_column
declare
  now_ms bigint := {{clockMs}};
  recorded bigint[]; records jsonb[];
begin
  {{commitDurably}}
  perform pg_advisory_xact_lock(p_self, 2); -- one at a time for a process: see outcome.ts
  recorded := array(select n from unnest(p_ids, p_fences) with ordinality o(id, fence, n)
    join queue q on q.email_id = o.id
    where q.email_id = any(p_ids) and q.fence = o.fence and {{isSending}}
    order by q.email_id for update of q);
  records := array(select case when line is null then null else jsonb_build_object('at', now_ms) || line end
    from unnest(p_records) with ordinality r(line, n) order by n);
  update queue q
    set state = case when o.given_back and o.wait_ms = 0 then 'queued' else 'deferred' end,
      due_at = least(now_ms + o.wait_ms, q.expires_at),
      wanted_at = case when o.given_back then q.wanted_at else least(now_ms + o.wait_ms, q.expires_at) end,
      attempts = q.attempts - o.given_back::int, fence = q.fence + 1,
      missing_key = o.missing_key, trail = {{append_trail}}(q.trail, o.record)
    from unnest(p_ids, p_finals, p_waits_ms, p_given_back, p_missing_keys, records) with ordinality
      o(id, final_state, wait_ms, given_back, missing_key, record, n)
    where q.email_id = o.id and q.email_id = any(p_ids) and o.n = any(recorded) and o.final_state is null;
  perform {{finish}}(p_slot, now_ms, array_agg(id), array_agg(final_state), array_agg(reason), array_agg(record))
    from unnest(p_ids, p_finals, p_reasons, records) with ordinality o(id, final_state, reason, record, n)
    where n = any(recorded) and final_state is not null;
  return array(select n = any(recorded) from generate_subscripts(p_ids, 1) n order by n);
end
$$
