/**
 * The rows with which the tables that grow are stuffed, as expressions in SQL: they are inserted directly,
 * because through the service they would take hours. Row `n` counts from 0. Columns that a checkout does not
 * have are left out.
 */
import { idFloor } from '../../src/domain/id.ts'

const minuteMs = 60_000
const dayMs = 1440 * minuteMs

export type Sql = {
  readonly nowMs: number
  /** `n`, or another expression, with zeros in front. */
  readonly pad: (width: number, value?: string) => string
  readonly isSqlite: boolean
  /** The app whose rows they are. */
  readonly app: string
}

type Stuffing = {
  readonly table: string
  readonly row: (sql: Sql, ageMs: number) => Readonly<Record<string, string>>
  readonly ageMs: number
  /** Statements that go with the rows; `$rows` is their number. */
  readonly also?: (sql: Sql) => readonly string[]
}

const text = (value: string) => `'${value}'`
const id = (kind: Parameters<typeof idFloor>[0], { nowMs, pad }: Sql, ageMs: number) =>
  `${text(idFloor(kind, nowMs - ageMs))} || ${pad(16)}`
const at = ({ nowMs }: Sql, ageMs: number) => String(nowMs - ageMs)

/** The tenant has as many rows as it can; those that follow belong to apps that do not exist. */
const tenantUpTo = (most: number, { app, pad }: Sql) =>
  `case when n < ${most} then ${text(app)} else 'app_' || ${pad(26, `n / ${most}`)} end`

const audit = (sql: Sql, ageMs: number) => {
  const name = (word: string) => `'{"name":"${word.repeat(10)}' || ${sql.pad(40)} || '"}'`
  return {
    ...{ audit_id: id('au', sql, ageMs), at: at(sql, ageMs), actor_kind: `'token'`, actor_id: `'tok_acme'` },
    ...{ actor_name: `'acme team'`, via: `'api'`, action: `'key.update'`, app_id: text(sql.app) },
    ...{ target: id('key', sql, ageMs), before: name('first '), after: name('second'), request_id: 'null' },
  }
}

const suppression = (sql: Sql, ageMs: number) => ({
  ...{ suppression_id: id('sp', sql, ageMs), app_id: text(sql.app), recipient: sql.pad(43) },
  ...{ reason: `'operator'`, strikes: '0', at: at(sql, ageMs), until: at(sql, ageMs - 30 * dayMs) },
  ...{ invitations_until: at(sql, ageMs - 30 * dayMs), forget_at: at(sql, ageMs - 120 * dayMs) },
  ...{ bounced_at: '0', destination: `'other'`, email_id: 'null', reply: 'null' },
})

const email = (sql: Sql, ageMs: number) => ({
  ...{ email_id: id('em', sql, ageMs), app_id: text(sql.app), key_id: `'key_acme'`, type: `'magic_link'` },
  ...{ lost_leases: '0', accepted_at: at(sql, ageMs), recipient: sql.pad(43), traceparent: 'null' },
})

const history = (sql: Sql, ageMs: number) => ({
  ...email(sql, ageMs),
  ...{ state: `case when n % 50 = 0 then 'failed' else 'delivered' end`, reason: 'null', attempts: '1' },
  ...{ expires_at: at(sql, ageMs - 15 * minuteMs), finished_at: at(sql, ageMs) },
  trail: text(
    '[{"at":1760000000000,"outcome":"delivered","relay":"smtp.example.com:587","reply":{"code":250,"enhanced":"2.0.0","text":"250 2.0.0 Ok: queued"}}]',
  ),
})

const refusal = (sql: Sql, ageMs: number) => ({
  ...{ request_id: id('req', sql, ageMs), at: at(sql, ageMs), app_id: text(sql.app), key_id: `'key_acme'` },
  ...{ code: `'url_not_allowed'`, issues: `'["url origin_not_allowed"]'`, origin: `'https://other.test'` },
})

/** At most 1,000 of an app wait. */
const webhookMessage = (sql: Sql, ageMs: number, dueAt = `case when n < 1000 then ${at(sql, ageMs)} end`) => ({
  ...{ message_id: id('wh', sql, ageMs), app_id: text(sql.app), event: `'email.failed'` },
  ...{ email_id: id('em', sql, ageMs), facts: `'{}'`, sealed: 'null', at: at(sql, ageMs), due_at: dueAt },
  ...{ tries: '0', result: 'null' },
})

/** An app has 1,000 keys that have ended, and here 900 that work. */
const deliveryKey = (sql: Sql, ageMs: number, revokedAt = `case when n < 900 then null else ${sql.nowMs} end`) => ({
  ...{ key_id: id('key', sql, ageMs), key_hash: sql.pad(43), app_id: tenantUpTo(1900, sql) },
  ...{ name: sql.pad(20), created_at: at(sql, ageMs), created_by: `'acme team'`, revoked_at: revokedAt },
})

/** Counts of each app by the hour, for 8 days. */
const activity = (sql: Sql, ageMs: number) => ({
  ...{ app_id: tenantUpTo(7680, sql), span: '60', event: `'reply:' || ${sql.pad(3, 'n % 40')}` },
  ...{
    minute: `${Math.floor((sql.nowMs - ageMs) / (60 * minuteMs)) * 60} - 60 * (n % 7680 / 40)`,
    count: '1',
  },
})

/** Counts of each app by the day, for 30 days. */
const usageDay = (sql: Sql, ageMs: number) => ({
  ...{ app_id: tenantUpTo(1200, sql), event: `'event ' || ${sql.pad(3, 'n % 40')}`, slot: '0', count: '1' },
  day: `${Math.floor((sql.nowMs - ageMs) / dayMs)} - n % 1200 / 40`,
})

const idempotency = (sql: Sql, ageMs: number) => ({
  ...{ app_id: text(sql.app), request_key: sql.pad(43), body_hash: sql.pad(43) },
  ...{ email_id: id('em', sql, ageMs), created_at: at(sql, ageMs) },
})

const rateBucket = (sql: Sql, ageMs: number) => ({
  ...{ app_id: text(sql.app), bucket: sql.isSqlite ? 'n + 1000000' : sql.pad(43) },
  arrival_us: `${at(sql, ageMs)}000`,
})

const nonce = (sql: Sql, ageMs: number) => ({
  ...{ nonce_hash: sql.pad(43), expires_at: at(sql, ageMs - 5 * minuteMs) },
})

/** Mail of an app that is disabled: it waits, and nobody opens it. */
const queue = (sql: Sql, ageMs: number) => ({
  ...email(sql, ageMs),
  ...{ state: `'deferred'`, attempts: '1', fence: '1', lease_until: '0', session_id: '0', trail: `'[]'` },
  ...{
    expires_at: at(sql, ageMs - 2 * dayMs),
    due_at: at(sql, ageMs - dayMs),
    wanted_at: at(sql, ageMs - dayMs),
  },
  sealed: sql.isSqlite ? `x'00'` : `'\\x00'`,
})

const queueAlso = ({ app, isSqlite, nowMs }: Sql) => [
  `update ${isSqlite ? '' : 'postern.'}app set status = 'disabled', status_at = ${nowMs} where app_id = '${app}'`,
  `update ${isSqlite ? '' : 'postern.'}queue_depth set count = count + $rows where ${isSqlite ? 'only_row = 1' : 'slot = 0'}`,
]

const hourMs = 60 * minuteMs

/**
 * Each growing table; and those with rows that are to be deleted, all at once. Without sessions and sign-in
 * codes: a person has 20 and one, so these grow only with the people that admins of the whole service make.
 */
export const stuffings = {
  audit: { table: 'audit', ageMs: hourMs, row: audit },
  suppression: { table: 'suppression', ageMs: hourMs, row: suppression },
  history: { table: 'history', ageMs: dayMs, row: history },
  refusal: { table: 'refusal', ageMs: dayMs, row: refusal },
  webhook_message: { table: 'webhook_message', ageMs: minuteMs, row: webhookMessage },
  delivery_key: { table: 'delivery_key', ageMs: dayMs, row: deliveryKey },
  activity: { table: 'activity', ageMs: 0, row: activity },
  usage_day: { table: 'usage_day', ageMs: 0, row: usageDay },
  idempotency: { table: 'idempotency', ageMs: hourMs, row: idempotency },
  rate_bucket: { table: 'rate_bucket', ageMs: -hourMs, row: rateBucket },
  nonce: { table: 'nonce', ageMs: 0, row: nonce },
  queue: { table: 'queue', ageMs: hourMs, row: queue, also: queueAlso },
  'old audit': { table: 'audit', ageMs: 401 * dayMs, row: audit },
  'old refusal': { table: 'refusal', ageMs: 31 * dayMs, row: refusal },
  'old usage_day': { table: 'usage_day', ageMs: 31 * dayMs, row: usageDay },
  'old history': { table: 'history', ageMs: 31 * dayMs, row: history },
  'old webhook_message': {
    ...{ table: 'webhook_message', ageMs: 31 * dayMs },
    row: (sql, ageMs) => webhookMessage(sql, ageMs, 'null'),
  },
  'old delivery_key': {
    ...{ table: 'delivery_key', ageMs: 40 * dayMs },
    row: (sql, ageMs) => deliveryKey(sql, ageMs, at(sql, 31 * dayMs)),
  },
} satisfies Record<string, Stuffing>

export type StuffingName = keyof typeof stuffings
export const findStuffing = (name: StuffingName): Stuffing => stuffings[name]
