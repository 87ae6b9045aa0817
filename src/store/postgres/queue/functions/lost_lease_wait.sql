-- How long an email waits after its nth lost lease, in milliseconds.
create function lost_lease_wait(lost int)
returns bigint language sql immutable as $$
  select (array[{{lostLeaseWaitsMs}}]::bigint[])[least(lost, {{lostLeaseWaits}})]
$$
