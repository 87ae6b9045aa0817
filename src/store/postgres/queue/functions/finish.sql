-- Ends emails, whatever their state: deletes their content, moves their records to the history, and counts
-- them. Call it last in a transaction, and once: it locks the counters.
create function finish(p_slot int, p_now_ms bigint, p_ids text[], p_states text[], p_reasons text[], p_attempts jsonb[])
returns void language plpgsql {{settings}} as $$
#variable_conflict use_column
begin
  with ending as (
    select * from unnest(p_ids, p_states, p_reasons, p_attempts) e(id, final_state, end_reason, attempt)
  ), ended as (
    delete from queue q using ending e where q.email_id = e.id and q.email_id = any(p_ids)
    returning q.*, e.final_state, e.end_reason, e.attempt
  ), kept as (
    insert into history (email_id, app_id, key_id, type, state, reason, attempts, lost_leases, accepted_at, expires_at,
        finished_at, recipient, trail, traceparent)
      select email_id, app_id, key_id, type, final_state, end_reason, attempts, lost_leases, accepted_at, expires_at,
        p_now_ms, recipient, {{append_trail}}(trail, p_now_ms, attempt), traceparent
      from ended
  ), counted as (
    insert into usage_day (app_id, day, event, slot, count)
      select app_id, p_now_ms / {{dayMs}}, final_state, p_slot, count(*) from ended
      group by app_id, final_state order by app_id, final_state
      on conflict (app_id, day, event, slot) do update set count = usage_day.count + excluded.count
  )
  update queue_depth set count = count - (select count(*) from ended) where slot = p_slot;
end
$$
