-- Times are milliseconds since 1970 UTC, except rate.tat (microseconds). Days count from 1970-01-01.
create table app (
  app_id text primary key,
  slug text not null unique,
  version integer not null,
  status text not null,                    -- active, disabled, deleted (its mail is being cancelled)
  status_at integer not null,
  created_at integer not null,
  settings text not null
) strict;

create table delivery_key (
  key_id text primary key,
  key_hash text not null unique,
  app_id text not null,
  name text,
  created_at integer not null,
  expires_at integer,
  revoked_at integer,
  last_used_at integer
) strict;
create index delivery_key_app on delivery_key (app_id);

-- GCRA state of keys, recipients and mailboxes; k is a key's id, or a keyed hash that includes the app.
create table rate (k text primary key, tat integer not null) strict, without rowid;

create table idempotency (
  k text primary key,
  body text not null,
  email_id text not null,
  at integer not null
) strict, without rowid;

create table usage_day (
  app_id text not null,
  day integer not null,
  what text not null,
  n integer not null,
  primary key (app_id, day, what)
) strict, without rowid;

create table queue_depth (one integer primary key check (one = 1), n integer not null) strict;
insert into queue_depth values (1, 0);

create table queue (
  email_id text primary key,
  app_id text not null,
  type text not null,
  state integer not null,                  -- 0 queued, 1 deferred, 2 sending
  attempts integer not null,
  lost integer not null,                   -- leases that lapsed; counted apart from attempts
  fence integer not null,
  accepted_at integer not null,
  expires_at integer not null,
  due_at integer not null,
  lease_until integer not null,
  recipient text not null,                 -- keyed hash of the address
  trail text not null                      -- JSON array of attempts
) strict, without rowid;
create index queue_ready on queue (app_id, email_id) where state = 0 and lost < 2;
create index queue_suspect on queue (email_id) where state = 0 and lost >= 2;
create index queue_deferred on queue (due_at) where state = 1;
create index queue_leased on queue (lease_until) where state = 2;
create index queue_expiry on queue (expires_at);

create table sealed (email_id text primary key, body blob not null) strict, without rowid;

-- Finished emails, for 30 days; nothing of their content.
create table history (
  email_id text primary key,
  app_id text not null,
  type text not null,
  state text not null,
  reason text,
  attempts integer not null,
  accepted_at integer not null,
  expires_at integer not null,
  finished_at integer not null,
  recipient text not null,
  trail text not null
) strict, without rowid;
create index history_recipient on history (recipient);

create table secret (name text primary key, sealed blob not null) strict;
