-- Requests wait while this waits for a transaction that reads the table of apps.
set local lock_timeout = '1s';
-- The lists of relays that apps may use in the place of those of the service.
create table transport (
  name text collate "C" primary key,
  sealed text not null,                    -- the URLs of its relays, as base64url
  created_at bigint not null,
  changed_at bigint not null
);
alter table app add column transport text collate "C"; -- as in its settings, for claims; null: the relays of the service
