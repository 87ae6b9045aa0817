-- Every name is written with the schema "postern", which stands for the configured one.
-- Times are milliseconds since 1970 UTC, except rate.tat (microseconds). Days count from 1970-01-01.
-- Ids sort bytewise (collate "C"). Every key of a table that grows with the mail holds the app, so that
-- it can be partitioned or distributed by it. No foreign keys: they would lock an app's row for each of its emails.
create table postern.app (
  app_id text collate "C" primary key,
  slug text not null unique,
  version bigint not null,
  status text not null,                    -- active, disabled, deleted (its mail is being cancelled)
  status_at bigint not null,
  created_at bigint not null,
  settings json not null,
  key_per_minute bigint not null generated always as ((settings #>> '{limits,keyPerMinute}')::bigint) stored,
  recipient_per_hour bigint not null generated always as ((settings #>> '{limits,recipientPerHour}')::bigint) stored,
  daily bigint not null generated always as ((settings #>> '{limits,daily}')::bigint) stored
);

-- The mutex of an app's limits and idempotency keys; apart from its settings, which others read.
create table postern.app_lock (app_id text collate "C" primary key);

create table postern.delivery_key (
  key_id text collate "C" primary key,
  key_hash text collate "C" not null unique,
  app_id text collate "C" not null,
  name text,
  created_at bigint not null,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint
) with (fillfactor = 70);
create index delivery_key_app on postern.delivery_key (app_id);

-- GCRA state of keys, recipients and mailboxes; k is a key's id or a keyed hash.
create table postern.rate (
  app_id text collate "C" not null,
  k text collate "C" not null,
  tat bigint not null,
  primary key (app_id, k)
) with (fillfactor = 70);

create table postern.idempotency (
  app_id text collate "C" not null,
  k text collate "C" not null,
  body text not null,
  email_id text collate "C" not null,
  at bigint not null,
  primary key (app_id, k)
);

-- Counted in several rows, so that connections seldom wait for one. What requests count stands in slot 0,
-- written under the app's lock.
create table postern.usage_day (
  app_id text collate "C" not null,
  day bigint not null,
  what text not null,
  slot integer not null,
  n bigint not null,
  primary key (app_id, day, what, slot)
) with (fillfactor = 50);

create table postern.queue_depth (slot integer primary key, n bigint not null) with (fillfactor = 10);
insert into postern.queue_depth select slot, 0 from generate_series(0, 63) slot;

create table postern.queue (
  email_id text collate "C" not null,
  app_id text collate "C" not null,
  type text not null,
  state smallint not null,                 -- 0 queued, 1 deferred, 2 sending
  attempts integer not null,
  lost integer not null,                   -- leases that lapsed; counted apart from attempts
  fence bigint not null,
  accepted_at bigint not null,
  expires_at bigint not null,
  due_at bigint not null,
  lease_until bigint not null,
  recipient text collate "C" not null,     -- keyed hash of the address
  trail jsonb not null,                    -- array of attempts
  primary key (email_id, app_id)
);
-- Statistics taken while one app floods would say that there is only one.
alter table postern.queue alter app_id set (n_distinct = 1000);
create index queue_ready on postern.queue (app_id, email_id) where state = 0 and lost < 2;
create index queue_suspect on postern.queue (email_id) where state = 0 and lost >= 2;
create index queue_deferred on postern.queue (due_at) where state = 1;
create index queue_leased on postern.queue (lease_until) where state = 2;
create index queue_expiry on postern.queue (expires_at);

-- Apart from the queue, whose rows are rewritten with each attempt.
create table postern.sealed (
  email_id text collate "C" not null,
  app_id text collate "C" not null,
  body bytea not null,
  primary key (email_id, app_id)
);
alter table postern.sealed alter column body set storage external; -- ciphertext does not compress

-- Finished emails, for 30 days; nothing of their content.
create table postern.history (
  email_id text collate "C" not null,
  app_id text collate "C" not null,
  type text not null,
  state text not null,
  reason text,
  attempts integer not null,
  accepted_at bigint not null,
  expires_at bigint not null,
  finished_at bigint not null,
  recipient text collate "C" not null,
  trail jsonb not null,
  primary key (email_id, app_id)
);
create index history_recipient on postern.history (recipient);

create table postern.secret (name text primary key, sealed bytea not null);

-- The slow passes over big tables: one process at a time takes a step, and all share where it stands.
create table postern.pass (
  name text primary key,
  after_app text not null,
  after_k text not null,
  begun_at bigint not null,
  ended boolean not null
);
insert into postern.pass values ('rate', '', '', 0, true), ('idempotency', '', '', 0, true);

-- A queue's rows die as fast as they are born. Vacuum by count, not by a share of the table, without
-- pauses, and keep the file: giving pages back locks the table, and the next backlog needs them.
alter table postern.queue set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, vacuum_truncate = off);
alter table postern.sealed set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table postern.queue_depth set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table postern.usage_day set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table postern.rate set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table postern.idempotency set (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = off);
