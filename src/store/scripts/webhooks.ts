/** Webhooks: the secrets that sign them; the messages that wait, are leased to a sender, or have ended. */
import { waitingWebhooksMax, webhookLeaseMs, webhookTrailMax } from '../../domain/bounds.ts'
import { dayMs } from '../../domain/duration.ts'
import { type AppId, type EmailId, newId, type WebhookMessageId } from '../../domain/id.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import type { WebhookEvent, WebhookFacts } from '../../domain/webhooks/webhook.ts'
import { type Row, toApp } from '../shared/rows.ts'
import type {
  ClaimedWebhook,
  DueWebhooks,
  NewWebhookMessage,
  ReceiverRecord,
  WebhookMessageRecord,
  WebhookSecrets,
  WebhookStore,
  WebhookTry,
} from '../webhook-store.ts'
import { lockApp } from './apps.ts'
import { recordAction } from './audit.ts'
import { lock, readAll, readOne, type Script, type ScriptContext } from './script.ts'

export type Added = Awaited<ReturnType<WebhookStore['addWebhookMessage']>>

export function* addWebhookMessage(
  context: ScriptContext,
  { app, email, event, facts, sealed }: NewWebhookMessage,
): Script<Added> {
  const { nowMs, prefix } = context
  const text = `select a.* from ${prefix}webhook_receiver w join ${prefix}app a on a.app_id = w.app_id
    where w.app_id = $1 and a.status <> 'deleted'`
  const found = yield* readOne({ text, values: [app] }, toApp)
  if (found?.settings.webhookUrl === undefined) return 'unwanted'
  if (yield* isFull(context, app, facts.test ? waitingTestsMax : waitingWebhooksMax)) return 'full'
  const id = newId('wh', nowMs)
  const more = event === 'email.suppressed' ? yield* findSuppressedFacts(context, app, email) : {}
  yield {
    text: `insert into ${prefix}webhook_message (message_id, app_id, event, email_id, facts, sealed, at, due_at, tries)
      values ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
    values: [
      ...[id, app, event, email, JSON.stringify({ ...facts, ...more }), sealed, nowMs],
      event === 'webhook.test' ? atOnce : nowMs,
    ],
  }
  return id
}

/** The `due_at` of a message for which an operator waits: it is tried although the receiver is left alone. */
const atOnce = 0

/** Messages about test mail leave room for the others. */
const waitingTestsMax = waitingWebhooksMax / 10

function* isFull({ prefix }: ScriptContext, app: AppId, max: number): Script<boolean> {
  const waiting = yield {
    text: `select 1 from ${prefix}webhook_message where app_id = $1 and due_at is not null limit ${max}`,
    values: [app],
  }
  return waiting.length === max
}

function* sendWebhookAgain(
  context: ScriptContext,
  app: AppId,
  id: WebhookMessageId,
): Script<'done' | 'not_found' | 'full'> {
  const { prefix } = context
  const known = yield* findWebhookMessage(context, app, id)
  if (known === null) return 'not_found'
  if (known.dueAt === null && (yield* isFull(context, app, waitingWebhooksMax))) return 'full'
  const changed = yield {
    text: `update ${prefix}webhook_message set due_at = ${atOnce}, result = null, response = null
      where app_id = $1 and message_id = $2 returning 1`,
    values: [app, id],
  }
  return changed.length === 0 ? 'not_found' : 'done'
}

/** Why the recipient of an email gets none, and until when. */
function* findSuppressedFacts(
  { nowMs, prefix }: ScriptContext,
  app: AppId,
  email: EmailId | null,
): Script<WebhookFacts> {
  const rows = yield {
    text: `select h.reason, case when h.type = 'organisation_invite' then s.invitations_until else s.until end as until
      from ${prefix}history h left join ${prefix}suppression s on s.recipient = h.recipient and s.app_id in (h.app_id, '')
      where h.email_id = $1 and h.app_id = $2`,
    values: [email, app],
  }
  const until = Math.max(...rows.map((row) => Number(row.until ?? 0)))
  return {
    ...(typeof rows[0]?.reason === 'string' && { cause: rows[0].reason }),
    ...(until > nowMs && { suppressedUntil: new Date(until).toISOString() }),
  }
}

/** A message that is due later than any wait ends was stored before the clock was set back. */
const aheadMs = 2 * dayMs

function* listDueWebhooks({ nowMs, prefix }: ScriptContext): Script<DueWebhooks[]> {
  const due = `select 1 from ${prefix}webhook_message m where m.app_id = w.app_id
    and (m.due_at <= $1 or m.due_at > $2)`
  const text = `select a.*, w.sealed, w.old,
      exists (${due} and m.due_at = ${atOnce}) as is_urgent from ${prefix}webhook_receiver w
    join ${prefix}app a on a.app_id = w.app_id
    where exists (${due}) order by w.app_id`
  return yield* readAll({ text, values: [nowMs, nowMs + aheadMs] }, (row) => ({
    ...toSecrets(row),
    url: toApp(row).settings.webhookUrl ?? null,
    isUrgent: Boolean(row.is_urgent),
  }))
}

function* claimWebhooks(context: ScriptContext, app: AppId, max: number): Script<ClaimedWebhook[]> {
  const { dialect, nowMs, prefix } = context
  const due = yield {
    text: `select message_id from ${prefix}webhook_message where app_id = $1 and (due_at <= $2 or due_at > $3)
      order by due_at, message_id limit ${Math.floor(max)} ${lock(context, 'for update skip locked')}`,
    values: [app, nowMs, nowMs + aheadMs],
  }
  if (due.length === 0) return []
  const claim = {
    text: `update ${prefix}webhook_message set due_at = $2, tries = tries + 1
      where app_id = $3 and message_id ${dialect.isIn(dialect.elements('$1'))} returning *`,
    values: [JSON.stringify(due.map((row) => row.message_id)), nowMs + webhookLeaseMs, app],
  }
  return yield* readAll(claim, (row) => ({
    ...toMessage(row),
    app: row.app_id as AppId,
    sealed: row.sealed as string | null,
    tries: row.tries as number,
  }))
}

function* endWebhookTry(
  context: ScriptContext,
  { app, id, receiver, response = null, result, tries, waitMs }: WebhookTry,
): Script<void> {
  const { nowMs, prefix } = context
  const ended = waitMs === null
  // One that the receiver did not accept may be sent again, until retention removes the recipient.
  const forgets = ended && receiver !== 'fails'
  const [row] = yield {
    text: `select trail from ${prefix}webhook_message where app_id = $1 and message_id = $2 and tries = $3
      and due_at is not null ${lock(context, 'for update')}`,
    values: [app, id, tries],
  }
  if (row === undefined) return
  const trail = [...toTrail(row), { at: nowMs, result }].slice(-webhookTrailMax)
  yield {
    text: `update ${prefix}webhook_message set result = $3, due_at = $4, response = $5, trail = $6${forgets ? ', sealed = null' : ''}
      where app_id = $1 and message_id = $2`,
    values: [app, id, result, ended ? null : nowMs + waitMs, response, JSON.stringify(trail)],
  }
  if (receiver === null) return
  if (receiver === 'accepts' && (yield* isFailing(context, app))) yield* makeDue(context, app)
  const since = receiver === 'accepts' ? 'null' : 'coalesce(failing_since, $3)'
  yield {
    text: `update ${prefix}webhook_receiver set result = $2, failing_since = ${since} where app_id = $1`,
    values: [app, result, ...(receiver === 'accepts' ? [] : [nowMs])],
  }
}

function* isFailing({ prefix }: ScriptContext, app: AppId): Script<boolean> {
  const text = `select 1 from ${prefix}webhook_receiver where app_id = $1 and failing_since is not null`
  return (yield { text, values: [app] }).length > 0
}

/** The receiver is back: what waits is sent now. A message that is under way is due within its lease. */
function* makeDue({ nowMs, prefix }: ScriptContext, app: AppId): Script<void> {
  yield {
    text: `update ${prefix}webhook_message set due_at = $2 where app_id = $1 and due_at > $3`,
    values: [app, nowMs, nowMs + webhookLeaseMs],
  }
}

/** More would only lengthen the header of signatures. */
const oldSecretsMax = 4

function* setWebhookSecret(
  context: ScriptContext,
  { app, oldUntil, sealed }: Parameters<WebhookStore['setWebhookSecret']>[0],
  actor: Actor,
): Script<ReceiverRecord | null> {
  const { nowMs, prefix } = context
  const known = yield* lockApp(context, app)
  if (known === null) return null
  const before = yield* findReceiver(context, app)
  const isKept = before !== null && oldUntil > nowMs
  const old = isKept ? [{ sealed: before.sealed, until: oldUntil }, ...before.old] : []
  const set = {
    text: `insert into ${prefix}webhook_receiver (app_id, sealed, old) values ($1, $2, $3)
      on conflict (app_id) do update set sealed = excluded.sealed, old = excluded.old returning *`,
    values: [app, sealed, JSON.stringify(old.filter(({ until }) => until > nowMs).slice(0, oldSecretsMax))],
  }
  const record = yield* readOne(set, toRecord)
  if (record === null) throw new Error('the secret of a webhook was neither made nor replaced')
  const after = before === null ? {} : { oldUntil: new Date(oldUntil).toISOString() }
  const action = { action: 'webhook.secret', app, target: known.slug, before: null, after } as const
  yield* recordAction(context, action, actor)
  return record
}

function* resealReceiver(
  { prefix }: ScriptContext,
  { app, sealed }: WebhookSecrets,
  resealed: Pick<WebhookSecrets, 'sealed' | 'old'>,
): Script<void> {
  yield {
    text: `update ${prefix}webhook_receiver set sealed = $3, old = $4 where app_id = $1 and sealed = $2`,
    values: [app, sealed, resealed.sealed, JSON.stringify(resealed.old)],
  }
}

function* findReceiver({ prefix }: ScriptContext, app: AppId): Script<ReceiverRecord | null> {
  return yield* readOne({ text: `select * from ${prefix}webhook_receiver where app_id = $1`, values: [app] }, toRecord)
}

function* listReceivers({ prefix }: ScriptContext): Script<ReceiverRecord[]> {
  return yield* readAll({ text: `select * from ${prefix}webhook_receiver order by app_id`, values: [] }, toRecord)
}

function* listWebhookMessages({ prefix }: ScriptContext, app: AppId, limit: number): Script<WebhookMessageRecord[]> {
  const text = `select * from ${prefix}webhook_message where app_id = $1 order by message_id desc limit ${Math.floor(limit)}`
  return yield* readAll({ text, values: [app] }, toMessageRecord)
}

function* findWebhookMessage(
  { prefix }: ScriptContext,
  app: AppId,
  id: WebhookMessageId,
): Script<WebhookMessageRecord | null> {
  const text = `select * from ${prefix}webhook_message where app_id = $1 and message_id = $2`
  return yield* readOne({ text, values: [app, id] }, toMessageRecord)
}

const toMessage = (row: Row) => ({
  id: row.message_id as WebhookMessageId,
  event: row.event as WebhookEvent,
  email: row.email_id as EmailId | null,
  facts: JSON.parse(row.facts as string) as WebhookFacts,
  at: row.at as number,
})

const toTrail = (row: Row): WebhookMessageRecord['trail'] =>
  JSON.parse(row.trail as string) as WebhookMessageRecord['trail']

const toMessageRecord = (row: Row): WebhookMessageRecord => ({
  ...toMessage(row),
  dueAt: row.due_at as number | null,
  tries: row.tries as number,
  result: row.result as string | null,
  response: row.response as string | null,
  trail: toTrail(row),
  keepsRecipient: row.sealed !== null,
})

const toSecrets = (row: Row): WebhookSecrets => ({
  app: row.app_id as AppId,
  sealed: row.sealed as string,
  old: JSON.parse(row.old as string) as WebhookSecrets['old'],
})

const toRecord = (row: Row): ReceiverRecord => ({
  ...toSecrets(row),
  failingSince: row.failing_since as number | null,
  result: row.result as string | null,
})

/** The work of senders and reporters; operators wait for none of it, and delay none of it. */
export const webhookDeliveries = { addWebhookMessage, sendWebhookAgain, claimWebhooks, endWebhookTry }
export const webhookChanges = { setWebhookSecret, resealReceiver }
export const webhookReads = { listDueWebhooks, findReceiver, listReceivers, listWebhookMessages, findWebhookMessage }
