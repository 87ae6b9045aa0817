-- Adds one attempt to a record, with its time in milliseconds, without the oldest if it is full. A null attempt
-- adds nothing.
create function append_trail(trail jsonb, at_ms bigint, attempt jsonb)
returns jsonb language sql stable as $$
  select case when attempt is null then trail
    else (case when jsonb_array_length(trail) >= {{trailMax}} then trail - 0 else trail end)
      || (jsonb_build_object('at', at_ms) || attempt) end
$$
