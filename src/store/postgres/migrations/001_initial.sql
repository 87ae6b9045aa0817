-- Times are milliseconds since 1970 UTC, except rate_bucket.arrival_us (microseconds). Days count from 1970-01-01.
-- Ids sort bytewise (collate "C"). Every key of a table that grows with the mail holds the app, so that it can
-- be partitioned or distributed by it. No foreign keys: they would lock an app's row for each of its emails.
create table app (
  app_id text collate "C" primary key,
  slug text not null unique,
  version bigint not null,
  status text not null,                    -- active, disabled, suspended, deleted (its mail is being cancelled)
  status_at bigint not null,
  created_at bigint not null,
  updated_at bigint not null,
  settings json not null,
  key_per_minute bigint not null generated always as ((settings #>> '{limits,keyPerMinute}')::bigint) stored,
  recipient_per_hour bigint not null generated always as ((settings #>> '{limits,recipientPerHour}')::bigint) stored,
  daily bigint not null generated always as ((settings #>> '{limits,daily}')::bigint) stored
);

-- The mutex of an app's limits and idempotency keys. A table of its own, because settings are read without it.
create table app_lock (app_id text collate "C" primary key);

create table delivery_key (
  key_id text collate "C" primary key,
  key_hash text collate "C" not null unique,
  app_id text collate "C" not null,
  name text,
  created_at bigint not null,
  created_by text not null,                -- the actor's name
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint,
  replaces text collate "C",               -- the key that this one replaces
  hook text,                               -- the auth server that posts with it; null for an app's own key
  sealed text                              -- the secret by which that server signs, sealed; null if it sends its key
) with (fillfactor = 70);
create index delivery_key_app on delivery_key (app_id, key_id);
create index delivery_key_ended on delivery_key (coalesce(revoked_at, expires_at));

-- Management tokens.
create table token (
  token_id text collate "C" primary key,
  token_hash text collate "C" not null unique,
  name text not null,
  role text not null,                      -- reader, operator, admin
  apps json,                               -- array of app ids; null: the whole service
  created_at bigint not null,
  created_by text not null,
  expires_at bigint not null,
  revoked_at bigint,
  last_used_at bigint
);
create index token_name on token (name);

-- People who may sign in to the console.
create table person (
  person_id text collate "C" primary key,
  name text not null unique,
  role text not null,                      -- reader, operator, admin
  apps json,                               -- array of app ids; null: the whole service
  oidc_issuer text,
  oidc_subject text,
  created_at bigint not null,
  created_by text not null,
  disabled_at bigint,
  last_seen_at bigint,
  local_times boolean not null default false,   -- whether pages show times of this person's zone, too
  unique (oidc_issuer, oidc_subject)
);

-- Codes that let a person sign in once; at most one of each person.
create table sign_in_code (
  code_hash text collate "C" primary key,
  person_id text collate "C" not null,
  created_at bigint not null,
  expires_at bigint not null
);
create unique index sign_in_code_person on sign_in_code (person_id);
create index sign_in_code_expiry on sign_in_code (expires_at);

create table passkey (
  passkey_id text collate "C" primary key, -- of the credential, base64url
  person_id text collate "C" not null,
  public_key text not null,                -- COSE, base64url
  counter bigint not null,
  name text not null,
  created_at bigint not null,
  last_used_at bigint
);
create index passkey_person on passkey (person_id);

-- Challenges that passkeys are about to sign, and forms that were sent, as hashes.
create table nonce (nonce_hash text collate "C" primary key, expires_at bigint not null);
create index nonce_expiry on nonce (expires_at);

create table session (
  session_id text collate "C" primary key,
  session_hash text collate "C" not null unique,
  person_id text collate "C" not null,
  method text not null,                    -- code, passkey, oidc
  agent text not null,
  begun_at bigint not null,
  seen_at bigint not null,
  expires_at bigint not null
);
create index session_person on session (person_id);
create index session_expiry on session (expires_at);

-- One entry for each change that an operator made, for 400 days.
create table audit (
  audit_id text collate "C" primary key,
  at bigint not null,
  actor_kind text not null,                -- local, token, person, service
  actor_id text,
  actor_name text not null,
  via text not null,                       -- cli, api, console, service
  action text not null,
  app_id text collate "C",
  target text not null,
  before json,                             -- the values that differ
  after json,
  request_id text
);
create index audit_app on audit (app_id, audit_id);

-- How many characters the entries of a day (UTC) have added, so that nobody fills the audit.
create table audit_day (
  owner text collate "C" primary key,                   -- an app, or an actor: a token or a person
  day bigint not null,
  characters bigint not null
);
create index audit_day_day on audit_day (day);

-- The counts behind charts (domain/operator/activity.ts), for 8 days: of the service (app_id empty) by the minute,
-- of each app by the hour, and for two hours by the minute.
create table activity (
  app_id text collate "C" not null,
  span smallint not null,                   -- minutes that it counts: 1 or 60
  minute bigint not null,                   -- since 1970
  event text not null,
  count bigint not null,
  primary key (app_id, span, minute, event)
);
create index activity_minute on activity (minute);
create index activity_recent on activity (minute) where span = 1 and app_id <> '';

-- The newest refusals of each app, for 30 days at most.
create table refusal (
  request_id text collate "C" not null,
  at bigint not null,
  app_id text collate "C" not null,
  key_id text collate "C" not null,
  code text not null,
  issues json not null,                    -- JSON array of `field code`
  origin text,                             -- of the link: never its path or query
  recipient text,                          -- keyed hash
  primary key (request_id, app_id)
);
create index refusal_app on refusal (app_id, request_id);

-- The last check of the domain of each app, and of the service.
create table last_check (
  subject text collate "C" primary key,    -- an app, `service`, `backup`, `alerts` or `outages`
  at bigint not null,
  result json not null
);
create index last_check_at on last_check (at);

-- One row for each process, which it writes every ten seconds.
create table node (
  node_id text collate "C" primary key,
  machine text not null,
  version text not null,
  roles json not null,                     -- JSON array
  started_at bigint not null,
  seen_at bigint not null,
  relays json not null,                    -- JSON array of RelayState
  faults json not null                     -- JSON array of NodeFault
);

-- GCRA state of keys, recipients and mailboxes. A bucket is a key's id or a keyed hash.
create table rate_bucket (
  app_id text collate "C" not null,
  bucket text collate "C" not null,
  arrival_us bigint not null,              -- theoretical arrival time of the next request
  primary key (app_id, bucket)
) with (fillfactor = 70);

create table idempotency (
  app_id text collate "C" not null,
  request_key text collate "C" not null,   -- keyed hash of the app and its Idempotency-Key
  body_hash text not null,
  email_id text collate "C" not null,
  created_at bigint not null,
  primary key (app_id, request_key)
);

-- Counted in several rows, so that connections seldom wait for one. Requests count in slot 0, under the app's lock.
create table usage_day (
  app_id text collate "C" not null,
  day bigint not null,
  event text not null,                     -- accepted, a refusal's code, or a final state
  slot integer not null,
  count bigint not null,
  primary key (app_id, day, event, slot)
) with (fillfactor = 50);

create index usage_day_day on usage_day (day);

create table queue_depth (slot integer primary key, count bigint not null) with (fillfactor = 10);
insert into queue_depth (slot, count) select slot, 0 from generate_series(0, 63) slot;

create table queue (
  email_id text collate "C" not null,
  app_id text collate "C" not null,
  key_id text collate "C",                 -- the delivery key that sent it; null: a test email
  type text not null,
  state text not null,                     -- queued, sending, deferred
  attempts integer not null,
  lost_leases integer not null,            -- times that a worker died or stood still with it; no attempts
  fence bigint not null,
  accepted_at bigint not null,
  expires_at bigint not null,
  due_at bigint not null,
  wanted_at bigint not null,               -- since when an attempt is wanted; unlike due_at, not moved while no relay is available
  lease_until bigint not null,
  session_id integer not null,             -- the session of the worker with the lease (worker-session.ts); 0: none
  recipient text collate "C" not null,     -- keyed hash of the address
  trail jsonb not null,                    -- array of attempts
  traceparent text,                        -- of the request (W3C Trace Context); null if it was not sampled
  missing_key text collate "C",            -- the id of the ring key that sealed it, if a worker lacked it
  sealed bytea not null,                   -- the encrypted content
  primary key (email_id, app_id)
);
-- Statistics taken while one app floods would say that there is only one.
alter table queue alter app_id set (n_distinct = 1000), alter sealed set storage external; -- ciphertext does not compress
-- An email with two lost leases is a suspect (domain/delivery/states.ts) and is claimed alone.
create index queue_ready on queue (app_id, email_id) where state = 'queued' and lost_leases < 2;
create index queue_suspect on queue (email_id) where state = 'queued' and lost_leases >= 2;
create index queue_suspect_app on queue (app_id, email_id) where state = 'queued' and lost_leases >= 2;
create index queue_deferred on queue (due_at, app_id) where state = 'deferred' and missing_key is null;
create index queue_deferred_app on queue (app_id, email_id) where state = 'deferred';
create index queue_wanted on queue (wanted_at, app_id) where state = 'deferred' and missing_key is null and wanted_at < due_at;
create index queue_leased on queue (lease_until) where state = 'sending';
create index queue_expiry on queue (expires_at);
create index queue_missing_key on queue (missing_key) where state = 'deferred' and missing_key is not null;

-- Finished emails, for 30 days, without their content.
create table history (
  email_id text collate "C" not null,
  app_id text collate "C" not null,
  key_id text collate "C",
  type text not null,
  state text not null,                     -- delivered, failed, expired, cancelled, suppressed, bounced, complained
  reason text,
  attempts integer not null,
  lost_leases integer not null,
  accepted_at bigint not null,
  expires_at bigint not null,
  finished_at bigint not null,
  recipient text collate "C" not null,
  trail jsonb not null,
  traceparent text,
  primary key (email_id, app_id)
);
create index history_recipient on history (recipient, email_id);
create index history_app on history (app_id, email_id);
create index history_trouble on history (state, email_id) where state <> 'delivered';
create index history_app_trouble on history (app_id, state, email_id) where state <> 'delivered';

-- Recipients that get no mail for a while (domain/delivery/suppression.ts): from one app, or (app_id empty) from any.
create table suppression (
  suppression_id text collate "C" not null,
  app_id text collate "C" not null,
  recipient text collate "C" not null,                 -- keyed hash of the address
  reason text not null,                    -- operator, complaint, no_mailbox
  strikes bigint not null,
  at bigint not null,                     -- of the last strike, or of an operator's change
  until bigint not null,
  invitations_until bigint not null,
  forget_at bigint not null,
  bounced_at bigint not null,             -- of the last bounce that counted; 0 for none
  destination text not null,               -- a large mail provider, or other
  email_id text collate "C",                           -- the email of the last strike
  reply text,
  primary key (recipient, app_id),
  unique (suppression_id, app_id)
);
create index suppression_forget on suppression (forget_at);
create index suppression_app on suppression (app_id, suppression_id);
create index suppression_operator on suppression (app_id) where reason = 'operator';

-- Strikes of the last minutes (domain/delivery/suppression.ts): of each app (destination empty), and (app_id empty)
-- of all apps at each destination.
create table strike_count (
  app_id text collate "C" not null,
  destination text collate "C" not null,
  since bigint not null,                     -- when the minutes began
  count bigint not null,
  capped bigint not null,                    -- of each app, a few at most
  primary key (app_id, destination)
);
create index strike_count_since on strike_count (since);

create table signing_key (
  domain text collate "C" not null,
  selector text collate "C" not null,
  algorithm text not null,                 -- rsa, ed25519
  state text not null,                     -- pending, active, retired
  public_key text not null,
  sealed text not null,                    -- the private key, as base64url
  created_at bigint not null,
  changed_at bigint not null,
  primary key (domain, selector)
);

create table report_source (
  source text collate "C" primary key,     -- mail, read, or a mail provider
  heard_at bigint not null                 -- when the last report came, to the minute
);

-- The apps that are sent webhooks: the secrets that sign them, and the state of the receiver.
create table webhook_receiver (
  app_id text collate "C" primary key,
  sealed text not null,                    -- the secret, as base64url
  old text not null,                       -- JSON array of those before, which sign as well: sealed, until
  failing_since bigint,                   -- null after a success
  result text                              -- of the last try: a status, or why there was none
);

create table webhook_message (
  message_id text collate "C" not null,
  app_id text collate "C" not null,
  event text not null,
  email_id text collate "C",                           -- null: a test
  facts text not null,                     -- JSON, without addresses
  sealed text,                             -- the recipient, as base64url; null if it is unknown or the message was received
  at bigint not null,
  due_at bigint,                          -- null: it has ended; 0: at once, also while the receiver is left alone
  tries bigint not null,
  result text,                             -- of the last try
  response text,                           -- the beginning of what the receiver answered, redacted; null if it accepted
  trail text not null default '[]',        -- JSON array of the last tries: at, result
  primary key (message_id, app_id)
);
create index webhook_message_due on webhook_message (app_id, due_at) where due_at is not null;
create index webhook_message_app on webhook_message (app_id, message_id);
create index webhook_message_kept on webhook_message (message_id) where due_at is not null or sealed is not null;

create table secret (name text primary key, sealed bytea not null);

-- Where the scans over big tables stand. One process at a time takes a step; all share the position.
create table scan (
  name text primary key,
  after_app text not null,
  after_key text not null,
  begun_at bigint not null,
  ended boolean not null
);
insert into scan (name, after_app, after_key, begun_at, ended)
  values ('rate_bucket', '', '', 0, true), ('idempotency', '', '', 0, true);

-- A queue's rows die as fast as they are inserted. Vacuum by count, not by a share of the table, without pauses,
-- and keep the file's size: giving pages back locks the table, and the next backlog needs them again.
alter table queue set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, vacuum_truncate = off);
alter table queue_depth set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table usage_day set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table rate_bucket set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
alter table idempotency set (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = off);

-- One row, which processes change to learn whether the database takes a write.
create table probe (probe_id integer primary key, nonce text not null);
