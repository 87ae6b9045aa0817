-- `chargeLimit` of domain/limit.ts: the arrival time that a charge stores. A stored time more than two
-- windows ahead dates from before the clock was set back. Plain SQL without settings, so that it is inlined.
create function next_arrival(arrival_us bigint, interval_us bigint, quota bigint, now_us bigint)
returns bigint language sql immutable as $$
  select greatest(case when arrival_us > now_us + 2 * interval_us * quota then 0 else arrival_us end, now_us) + interval_us
$$
