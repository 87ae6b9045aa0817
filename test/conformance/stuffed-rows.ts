/**
 * A database in which one tenant has added as much as it can, as expressions of SQL: each table that grows
 * with what somebody adds has `stuffedRows` rows at least, most of them of the tenant where a bound does not
 * forbid it. Row `n` counts from 0.
 */
import {
  authHookSecretsMax,
  inboxMax,
  keysMax,
  passkeysMax,
  sessionsMax,
  suppressionsMax,
  waitingWebhooksMax,
} from '../../src/domain/bounds.ts'
import { signingKeysMax } from '../../src/domain/delivery/signing-key.ts'
import { transportsMax } from '../../src/domain/delivery/transport.ts'
import { dayMs, hourMs, minuteMs } from '../../src/domain/duration.ts'
import { type AppId, idFloor, type PersonId } from '../../src/domain/id.ts'
import { refusalsMax } from '../../src/domain/request/refused-request.ts'
import type { Connection } from '../../src/store/sqlite/engine/connection.ts'
import { testSettings } from '../support/service.ts'

/** A walk of so many takes several times the steps that a statement may take (`stuffed-writer.ts`). */
export const stuffedRows = 30_000

export const nowMs = Date.UTC(2030, 0, 1, 12, 30)

const pad = (n: number) => String(n).padStart(16, '0')

/** The id of row `n`. Rows of one kind have one time: the one at which the ids of their table are made. */
export const idOf = (kind: keyof typeof agesMs, n: number): string => `${idFloor(kind, nowMs - agesMs[kind])}${pad(n)}`

const agesMs = {
  ...{ app: 40 * dayMs, key: 20 * dayMs, tok: dayMs, pe: 40 * dayMs, ses: hourMs, au: dayMs, sp: dayMs },
  ...{ wh: dayMs, em: hourMs, req: hourMs, node: 0 },
}

export const acme = idOf('app', 0) as AppId
export const person = idOf('pe', 0) as PersonId
/** The settings that all apps have. */
export const settings = { ...testSettings, webhookUrl: 'https://hooks.acme.test/postern' }

/** The id of row `n`, as SQL; `n` may be another expression. */
const id = (kind: keyof typeof agesMs, n = 'n') => `'${idFloor(kind, nowMs - agesMs[kind])}' || printf('%016d', ${n})`

const hashOf = (kind: string, n = 'n') => `'${kind}' || printf('%040d', ${n})`
export const hash = (kind: string, n: number) => `${kind}${String(n).padStart(40, '0')}`

/** The first `most` rows are of the tenant, and as many of each other app. */
const boundedBy = (most: number) => id('app', `n / ${most}`)

const ofPerson = (most: number) => id('pe', `n / ${most}`)

/** Emails of the queue: their first numbers; the last is that of finished ones. */
export const parts = { ready: 0, deferred: 1e5, sending: 2e5, suspect: 3e5, finished: 5e5 } as const

type Row = Readonly<Record<string, string | number | null>>

const email = (first: number): Row => ({
  ...{
    email_id: id('em', `n + ${first}`),
    app_id: `'${acme}'`,
    key_id: id('key', '0'),
    type: `'magic_link'`,
  },
  ...{ attempts: 1, accepted_at: nowMs - hourMs, expires_at: nowMs + dayMs, trail: `'[]'` },
  ...{ recipient: hashOf('rcp'), traceparent: null },
})

const queued = (first: number, state: string, more: Row = {}): Row => ({
  ...email(first),
  ...{ state: `'${state}'`, lost_leases: 0, fence: 1, due_at: nowMs, wanted_at: nowMs, lease_until: 0 },
  ...{ sealed: `x'0161'`, ...more },
})

const app: Row = {
  ...{
    app_id: id('app'),
    slug: `'app-' || n`,
    version: 1,
    status: `'active'`,
    status_at: nowMs - 40 * dayMs,
  },
  ...{ created_at: nowMs - 40 * dayMs, updated_at: nowMs, settings: `'${JSON.stringify(settings)}'` },
}

/** Each app has as many keys as it may have: half of them have ended, and the first are of auth servers. */
const deliveryKey: Row = {
  ...{ key_id: id('key'), key_hash: hashOf('key'), app_id: boundedBy(2 * keysMax) },
  ...{ name: `'key ' || n`, created_at: nowMs, created_by: `'cli:root'`, expires_at: null, replaces: null },
  hook: `case when n % ${2 * keysMax} between 1 and ${authHookSecretsMax} then 'supabase' end`,
  ...{ sealed: `'sealed'`, revoked_at: `case when n % ${2 * keysMax} >= ${keysMax} then ${nowMs} end` },
}

const suppression: Row = {
  ...{
    suppression_id: id('sp'),
    app_id: `'${acme}'`,
    recipient: hashOf('rcp'),
    strikes: 1,
    at: nowMs - dayMs,
  },
  reason: `case when n < ${suppressionsMax} then 'operator' when n % 2 then 'complaint' else 'no_mailbox' end`,
  ...{ until: nowMs + dayMs, invitations_until: nowMs + dayMs, forget_at: nowMs + 90 * dayMs, bounced_at: 0 },
  ...{ destination: `'other'`, email_id: null, reply: null },
}

const webhookMessage: Row = {
  ...{ message_id: id('wh'), app_id: `'${acme}'`, event: `'email.bounced'`, facts: `'{}'`, tries: 1 },
  ...{ email_id: id('em', `n + ${parts.finished}`), sealed: `'sealed'`, at: nowMs - dayMs, result: null },
  due_at: `case when n < ${waitingWebhooksMax} then ${nowMs - 1000} end`,
}

const people: Row = {
  ...{ person_id: id('pe'), name: `'person ' || n`, role: `'operator'`, apps: `'["${acme}"]'` },
  ...{
    oidc_issuer: `case when n % 2 then 'https://id.test' end`,
    oidc_subject: `case when n % 2 then n end`,
  },
  ...{ created_at: nowMs, created_by: `'cli:root'` },
}

const session: Row = {
  ...{ session_id: id('ses'), session_hash: hashOf('ses'), person_id: ofPerson(sessionsMax) },
  ...{ method: `'code'`, agent: `'Firefox'`, begun_at: nowMs, seen_at: nowMs, expires_at: nowMs + hourMs },
}

const audit: Row = {
  ...{ audit_id: id('au'), at: nowMs - dayMs, actor_kind: `'person'`, actor_id: `'${person}'` },
  ...{
    actor_name: `'person 0'`,
    via: `'console'`,
    action: `'key.update'`,
    app_id: `'${acme}'`,
    target: `'x'`,
  },
}

const refusal: Row = {
  ...{ request_id: id('req'), at: nowMs, app_id: boundedBy(2 * refusalsMax), key_id: id('key', '0') },
  ...{ code: `case when n % 2 then 'key_rate_limited' else 'invalid_url' end`, issues: `'[]'`, origin: null },
}

const signingKey: Row = {
  ...{ domain: `'d' || (n / ${signingKeysMax}) || '.test'`, selector: `'s' || n`, algorithm: `'ed25519'` },
  state: `case n % ${signingKeysMax} when 0 then 'active' when 1 then 'pending' else 'retired' end`,
  ...{ public_key: `'public'`, sealed: `'sealed'`, created_at: nowMs, changed_at: nowMs },
}

const token: Row = {
  ...{ token_id: id('tok'), token_hash: hashOf('tok'), name: `'token ' || n`, role: `'operator'` },
  ...{ apps: `'["${acme}"]'`, created_at: nowMs, created_by: `'cli:root'`, expires_at: nowMs + 90 * dayMs },
}

/** Counts of the last ten minutes of the tenant and of the service, and of other apps. */
const activity: Row = {
  app_id: `case n % 2 when 0 then '${acme}' else '' end`,
  ...{
    span: 1,
    event: `'reply:' || (n % 100)`,
    count: 1,
    minute: `${Math.floor(nowMs / minuteMs)} - n / 100`,
  },
}

const code: Row = {
  ...{ code_hash: hashOf('code'), person_id: id('pe'), created_at: nowMs, expires_at: nowMs + hourMs },
}

const passkey: Row = {
  ...{ passkey_id: hashOf('pk'), person_id: ofPerson(passkeysMax), public_key: `'public'`, counter: 0 },
  ...{ name: `'key'`, created_at: nowMs },
}

const journal: Row = { until_us: (nowMs + hourMs) * 1000, charged: `x'${'00'.repeat(16)}'` }

const node: Row = {
  ...{ node_id: id('node'), machine: `'m' || n`, version: `'1'`, roles: `'["web"]'`, started_at: nowMs },
  ...{ seen_at: nowMs, relays: `'[]'`, faults: `'[]'` },
}

const history = { ...email(parts.finished), lost_leases: 0, reason: null, finished_at: nowMs - hourMs }

/** Workers hold a few hundred emails at most. */
const leasedRows = 500
/** One for each process of the operator. */
const nodeRows = 100

const stuffings: readonly (readonly [table: string, row: Row, rows?: number])[] = [
  ['app', app],
  ['delivery_key', deliveryKey],
  ['token', token],
  ['person', people],
  ['sign_in_code', code],
  ['passkey', passkey],
  ['nonce', { nonce_hash: hashOf('non'), expires_at: `${nowMs} + case when n % 2 then 1 else -1 end` }],
  ['session', session],
  ['audit', audit],
  ['audit_day', { owner: id('pe'), day: Math.floor(nowMs / dayMs), characters: 1 }],
  ['activity', activity],
  ['refusal', refusal],
  ['last_check', { subject: id('app'), at: nowMs - hourMs, result: `'[]'` }],
  ['node', node, nodeRows],
  ['bucket_journal', journal],
  ['rate_bucket', { bucket: 'n + 1', arrival_us: (nowMs + hourMs) * 1000 }],
  ['idempotency', { request_key: hashOf('idem'), body_hash: `'b'`, email_id: id('em'), created_at: nowMs - hourMs }],
  ['usage_day', { app_id: `'${acme}'`, day: Math.floor(nowMs / dayMs), event: `'accepted ' || n`, count: 1 }],
  ['queue', queued(parts.ready, 'queued')],
  ['queue', queued(parts.deferred, 'deferred', { due_at: nowMs + hourMs, wanted_at: nowMs })],
  ['queue', queued(parts.sending, 'sending', { lease_until: nowMs + minuteMs }), leasedRows],
  ['queue', queued(parts.suspect, 'queued', { lost_leases: 2 })],
  ['history', { ...history, state: `case when n % 2 then 'failed' else 'delivered' end` }],
  ['suppression', suppression],
  ['strike_count', { app_id: id('app'), destination: `''`, since: nowMs - minuteMs, count: 1, capped: 1 }],
  ['signing_key', signingKey],
  ['transport', { name: `'t' || n`, sealed: `'sealed'`, created_at: nowMs, changed_at: nowMs }, transportsMax],
  [
    'inbox_email',
    {
      ...{ email_id: id('em'), app_id: `case when n < ${inboxMax} then '${acme}' else ${id('app')} end` },
      ...{ type: `'magic_link'`, recipient: hashOf('rcp'), at: nowMs - minuteMs, sealed: `'sealed'` },
    },
  ],
  ['webhook_receiver', { app_id: id('app'), sealed: `'sealed'`, old: `'[]'` }],
  ['webhook_message', webhookMessage],
]

/** Inserts all rows in one transaction, whose commit need not be durable. */
export function stuff({ connection }: Connection, rowsMax = stuffedRows): void {
  connection.exec('pragma synchronous = off; create temp table numbers (n integer primary key); begin')
  connection
    .prepare(
      `insert into numbers with recursive up(n) as (select 0 union all select n + 1 from up where n + 1 < ?)
       select n from up`,
    )
    .run(rowsMax)
  for (const [table, row, rows = stuffedRows] of stuffings) {
    const columns = Object.keys(row).join(', ')
    const values = Object.values(row).map((value) => value ?? 'null')
    connection.exec(`insert into ${table} (${columns}) select ${values.join(', ')} from numbers where n < ${rows}`)
  }
  connection.exec('update queue_depth set count = (select count(*) from queue); commit')
  connection.exec('drop table numbers; pragma wal_checkpoint(truncate)')
}

/** Tables whose rows nobody but the operator of the service adds, a few. */
export const smallTables: Readonly<Record<string, string>> = {
  migration: 'one row for each migration',
  node: 'one row for each process of the last day',
  queue_depth: 'one row',
  report_source: 'one row for each kind of source',
  secret: 'one row for each secret of the service',
  transport: 'at most `transportsMax` rows',
  probe: 'one row',
  sqlite_sequence: 'one row for each table with autoincrement',
}
