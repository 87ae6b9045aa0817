-- Times are milliseconds since 1970 UTC, except those of buckets (microseconds, _us). Days count from 1970-01-01.
create table app (
  app_id text primary key,
  slug text not null unique,
  version integer not null,
  status text not null,                    -- active, disabled, suspended, deleted (its mail is being cancelled)
  status_at integer not null,
  created_at integer not null,
  updated_at integer not null,
  settings text not null                   -- JSON
) strict;
create index app_inactive on app (status, status_at) where status <> 'active';

create table delivery_key (
  key_id text primary key,
  key_hash text not null unique,
  app_id text not null,
  name text,
  created_at integer not null,
  created_by text not null,                -- the actor's name
  expires_at integer,
  revoked_at integer,
  last_used_at integer,
  replaces text,                           -- the key that this one replaces
  hook text,                               -- the auth server that posts with it; null for an app's own key
  sealed text                              -- the secret by which that server signs, sealed; null if it sends its key
) strict;
create index delivery_key_app on delivery_key (app_id, key_id);
create index delivery_key_ended on delivery_key (coalesce(revoked_at, expires_at));

-- Management tokens.
create table token (
  token_id text primary key,
  token_hash text not null unique,
  name text not null,
  role text not null,                      -- reader, operator, admin
  apps text,                               -- JSON array of app ids; null: the whole service
  created_at integer not null,
  created_by text not null,
  expires_at integer not null,
  revoked_at integer,
  last_used_at integer
) strict;
create index token_name on token (name);

-- People who may sign in to the console.
create table person (
  person_id text primary key,
  name text not null unique,
  role text not null,                      -- reader, operator, admin
  apps text,                               -- JSON array of app ids; null: the whole service
  oidc_issuer text,
  oidc_subject text,
  created_at integer not null,
  created_by text not null,
  disabled_at integer,
  last_seen_at integer,
  local_times integer not null default 0,  -- whether pages show times of this person's zone, too
  unique (oidc_issuer, oidc_subject)
) strict;

-- Codes that let a person sign in once; at most one of each person.
create table sign_in_code (
  code_hash text primary key,
  person_id text not null,
  created_at integer not null,
  expires_at integer not null
) strict, without rowid;
create unique index sign_in_code_person on sign_in_code (person_id);
create index sign_in_code_expiry on sign_in_code (expires_at);

create table passkey (
  passkey_id text primary key,             -- of the credential, base64url
  person_id text not null,
  public_key text not null,                -- COSE, base64url
  counter integer not null,
  name text not null,
  created_at integer not null,
  last_used_at integer
) strict, without rowid;
create index passkey_person on passkey (person_id);

-- Challenges that passkeys are about to sign, and forms that were sent, as hashes.
create table nonce (nonce_hash text primary key, expires_at integer not null) strict, without rowid;
create index nonce_expiry on nonce (expires_at);

create table session (
  session_id text primary key,
  session_hash text not null unique,
  person_id text not null,
  method text not null,                    -- code, passkey, oidc
  agent text not null,
  begun_at integer not null,
  seen_at integer not null,
  expires_at integer not null
) strict;
create index session_person on session (person_id);
create index session_expiry on session (expires_at);

-- One entry for each change that an operator made, for 400 days.
create table audit (
  audit_id text primary key,
  at integer not null,
  actor_kind text not null,                -- local, token, person, service
  actor_id text,
  actor_name text not null,
  via text not null,                       -- cli, api, console, service
  action text not null,
  app_id text,
  target text not null,
  before text,                             -- JSON: the values that differ
  after text,
  request_id text
) strict, without rowid;
create index audit_app on audit (app_id, audit_id);

-- How many characters the entries of a day (UTC) have added, so that nobody fills the audit.
create table audit_day (
  owner text primary key,                   -- an app, or an actor: a token or a person
  day integer not null,
  characters integer not null
) strict, without rowid;
create index audit_day_day on audit_day (day);

-- The counts behind charts (domain/operator/activity.ts), for 8 days: of the service (app_id empty) by the minute,
-- of each app by the hour, and for two hours by the minute.
create table activity (
  app_id text not null,
  span integer not null,                     -- minutes that it counts: 1 or 60
  minute integer not null,                   -- since 1970
  event text not null,
  count integer not null,
  primary key (app_id, span, minute, event)
) strict, without rowid;
create index activity_minute on activity (minute);
create index activity_recent on activity (minute) where span = 1 and app_id <> '';

-- The newest refusals of each app, for 30 days at most.
create table refusal (
  request_id text not null,
  at integer not null,
  app_id text not null,
  key_id text not null,
  code text not null,
  issues text not null,                    -- JSON array of `field code`
  origin text,                             -- of the link: never its path or query
  recipient text,                          -- keyed hash
  primary key (request_id, app_id)
) strict, without rowid;
create index refusal_app on refusal (app_id, request_id);

-- The last check of the domain of each app, and of the service.
create table last_check (
  subject text primary key,                -- an app, `service`, `backup`, `alerts` or `outages`
  at integer not null,
  result text not null                     -- JSON
) strict, without rowid;
create index last_check_at on last_check (at);

-- One row for each process, which it writes every ten seconds.
create table node (
  node_id text primary key,
  machine text not null,
  version text not null,
  roles text not null,                     -- JSON array
  started_at integer not null,
  seen_at integer not null,
  relays text not null,                    -- JSON array of RelayState
  faults text not null                     -- JSON array of NodeFault
) strict, without rowid;

-- GCRA state of keys, recipients and mailboxes: one row for each transaction that charged any (buckets.ts).
create table bucket_journal (
  id integer primary key autoincrement,    -- never given twice: processes read on after the last one
  until_us integer not null,               -- the latest of the arrival times
  charged blob not null                    -- pairs of 64-bit numbers: bucket, arrival time of its next request
) strict;

-- Buckets that found no place in memory.
create table rate_bucket (
  bucket integer primary key,
  arrival_us integer not null
) strict;

create table idempotency (
  request_key text primary key,            -- keyed hash of the app and its Idempotency-Key
  body_hash text not null,
  email_id text not null,
  created_at integer not null
) strict, without rowid;

create table usage_day (
  app_id text not null,
  day integer not null,
  event text not null,                     -- accepted, a refusal's code, or a final state
  count integer not null,
  primary key (app_id, day, event)
) strict, without rowid;
create index usage_day_day on usage_day (day);

create table queue_depth (
  only_row integer primary key check (only_row = 1),
  count integer not null
) strict;
insert into queue_depth (only_row, count) values (1, 0);

create table queue (
  email_id text primary key,
  app_id text not null,
  key_id text,                             -- the delivery key that sent it; null: a test email
  type text not null,
  state text not null,                     -- queued, sending, deferred
  attempts integer not null,
  lost_leases integer not null,            -- times that a worker died or stood still with it; no attempts
  fence integer not null,
  accepted_at integer not null,
  expires_at integer not null,
  due_at integer not null,
  wanted_at integer not null,              -- since when an attempt is wanted; unlike due_at, not moved while no relay is available
  lease_until integer not null,
  recipient text not null,                 -- keyed hash of the address
  trail text not null,                     -- JSON array of attempts
  traceparent text,                        -- of the request (W3C Trace Context); null if it was not sampled
  missing_key text,                        -- the id of the ring key that sealed it, if a worker lacked it
  sealed blob not null                     -- the encrypted content
) strict, without rowid;
-- An email with two lost leases is a suspect (domain/delivery/states.ts) and is claimed alone.
create index queue_ready on queue (app_id, email_id, lost_leases) where state = 'queued' and lost_leases < 2;
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
  email_id text primary key,
  app_id text not null,
  key_id text,
  type text not null,
  state text not null,                     -- delivered, failed, expired, cancelled, suppressed, bounced, complained
  reason text,
  attempts integer not null,
  lost_leases integer not null,
  accepted_at integer not null,
  expires_at integer not null,
  finished_at integer not null,
  recipient text not null,
  trail text not null,
  traceparent text
) strict, without rowid;
create index history_recipient on history (recipient, email_id);
create index history_app on history (app_id, email_id);
create index history_trouble on history (state, email_id) where state <> 'delivered';
create index history_app_trouble on history (app_id, state, email_id) where state <> 'delivered';

-- Recipients that get no mail for a while (domain/delivery/suppression.ts): from one app, or (app_id empty) from any.
create table suppression (
  suppression_id text not null,
  app_id text not null,
  recipient text not null,                 -- keyed hash of the address
  reason text not null,                    -- operator, complaint, no_mailbox
  strikes integer not null,
  at integer not null,                     -- of the last strike, or of an operator's change
  until integer not null,
  invitations_until integer not null,
  forget_at integer not null,
  bounced_at integer not null,             -- of the last bounce that counted; 0 for none
  destination text not null,               -- a large mail provider, or other
  email_id text,                           -- the email of the last strike
  reply text,
  primary key (recipient, app_id),
  unique (suppression_id, app_id)
) strict, without rowid;
create index suppression_forget on suppression (forget_at);
create index suppression_app on suppression (app_id, suppression_id);
create index suppression_operator on suppression (app_id) where reason = 'operator';

-- Strikes of the last minutes (domain/delivery/suppression.ts): of each app (destination empty), and (app_id empty)
-- of all apps at each destination.
create table strike_count (
  app_id text not null,
  destination text not null,
  since integer not null,                     -- when the minutes began
  count integer not null,
  capped integer not null,                    -- of each app, a few at most
  primary key (app_id, destination)
) strict, without rowid;
create index strike_count_since on strike_count (since);

create table signing_key (
  domain text not null,
  selector text not null,
  algorithm text not null,                 -- rsa, ed25519
  state text not null,                     -- pending, active, retired
  public_key text not null,
  sealed text not null,                    -- the private key, as base64url
  created_at integer not null,
  changed_at integer not null,
  primary key (domain, selector)
) strict, without rowid;

create table report_source (
  source text primary key,                 -- mail, read, or a mail provider
  heard_at integer not null                -- when the last report came, to the minute
) strict, without rowid;

-- The apps that are sent webhooks: the secrets that sign them, and the state of the receiver.
create table webhook_receiver (
  app_id text primary key,
  sealed text not null,                    -- the secret, as base64url
  old text not null,                       -- JSON array of those before, which sign as well: sealed, until
  failing_since integer,                   -- null after a success
  result text                              -- of the last try: a status, or why there was none
) strict, without rowid;

create table webhook_message (
  message_id text not null,
  app_id text not null,
  event text not null,
  email_id text,                           -- null: a test
  facts text not null,                     -- JSON, without addresses
  sealed text,                             -- the recipient, as base64url; null if it is unknown or the message was received
  at integer not null,
  due_at integer,                          -- null: it has ended; 0: at once, also while the receiver is left alone
  tries integer not null,
  result text,                             -- of the last try
  response text,                           -- the beginning of what the receiver answered, redacted; null if it accepted
  trail text not null default '[]',        -- JSON array of the last tries: at, result
  primary key (message_id, app_id)
) strict, without rowid;
create index webhook_message_due on webhook_message (app_id, due_at) where due_at is not null;
create index webhook_message_app on webhook_message (app_id, message_id);
create index webhook_message_kept on webhook_message (message_id) where due_at is not null or sealed is not null;

create table secret (name text primary key, sealed blob not null) strict;

-- One row, which processes change to learn whether the database takes a write.
create table probe (probe_id integer primary key, nonce text not null) strict;
