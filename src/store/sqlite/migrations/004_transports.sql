-- The lists of relays that apps may use in the place of those of the service.
create table transport (
  name text primary key,
  sealed text not null,                    -- the URLs of its relays, as base64url
  created_at integer not null,
  changed_at integer not null
) strict, without rowid;
alter table app add column transport text; -- as in its settings, for claims; null: the relays of the service
