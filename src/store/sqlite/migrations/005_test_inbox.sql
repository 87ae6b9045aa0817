-- What the simulated relay accepted (domain/app/test-side.ts), for an hour.
create table inbox_email (
  seq integer primary key autoincrement,
  email_id text not null unique,
  app_id text not null,                    -- the app itself, not its test side
  type text not null,
  recipient text not null,                 -- keyed hash of the address
  at integer not null,
  sealed text not null                     -- the email, as base64url
) strict;
create index inbox_email_app on inbox_email (app_id, seq);
create index inbox_email_at on inbox_email (at);
