-- Nothing uses the table yet: no lock is waited for.
set local lock_timeout = '1s';
-- What the simulated relay accepted (domain/app/test-side.ts), for an hour.
create table inbox_email (
  seq bigint generated always as identity primary key,
  email_id text collate "C" not null unique,
  app_id text collate "C" not null,        -- the app itself, not its test side
  type text not null,
  recipient text collate "C" not null,     -- keyed hash of the address
  at bigint not null,
  sealed text not null                     -- the email, as base64url
);
create index inbox_email_app on inbox_email (app_id, seq);
create index inbox_email_at on inbox_email (at);
