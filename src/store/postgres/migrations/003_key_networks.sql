-- Requests wait while this waits for a transaction that reads the table.
set local lock_timeout = '1s';
alter table delivery_key add column networks text; -- JSON array of CIDR; null: any address may use the key
