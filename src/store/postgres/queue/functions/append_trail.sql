-- Adds one attempt to a record, without the oldest if it is full. A null record adds nothing.
create function append_trail(trail jsonb, record jsonb)
returns jsonb language sql immutable as $$
  select case when record is null then trail
    else (case when jsonb_array_length(trail) >= {{trailMax}} then trail - 0 else trail end) || record end
$$
