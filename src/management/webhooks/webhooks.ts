/** The webhooks of an app: its receiver and the last messages, the secret that signs them, a test. */
import { Type } from 'typebox'
import type { AppSettings } from '../../domain/app/settings.ts'
import { keepDays, webhookDays, webhooksListed, webhookTrailMax } from '../../domain/bounds.ts'
import type { WebhookMessageId } from '../../domain/id.ts'
import { webhookEvents, writeWebhook } from '../../domain/webhooks/webhook.ts'
import type { WebhookMessageRecord } from '../../store/webhook-store.ts'
import { appNotFound } from '../operation/find-target.ts'
import { daySeconds, graceField } from '../operation/name-fields.ts'
import { always, operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { iso, isoOrNull } from '../resources.ts'

const WebhookMessageResource = closed({
  id: Type.String({ description: 'The header `webhook-id` of each try.' }),
  event: Type.Enum([...webhookEvents]),
  email: orNull(Type.String()),
  at: time(),
  state: Type.Enum(['waiting', 'sent', 'given_up']),
  tries: Type.Integer(),
  lastTryAt: orNull(time()),
  nextTryAt: orNull(time()),
  result: orNull(Type.String({ description: 'The last try: the status of the answer, or why there was none.' })),
  response: orNull(
    Type.String({ description: 'The beginning of the answer, without addresses and secrets; null if it accepted.' }),
  ),
})

const WebhookMessageDetail = closed({
  ...WebhookMessageResource.properties,
  payload: Type.String({ description: 'The JSON that is sent, without the recipient.' }),
  trail: Type.Array(closed({ at: time(), result: Type.String() }), {
    description: `The last tries, at most ${webhookTrailMax}.`,
  }),
  failingSince: orNull(time('Since when the receiver has accepted nothing.')),
  keepsRecipient: Type.Boolean({ description: 'Whether it would be sent with the recipient (`to`).' }),
})

const presentMessage = ({ at, dueAt, email, event, id, response, result, trail, tries }: WebhookMessageRecord) =>
  ({
    ...{ id, event, email, at: iso(at), tries, result, response },
    lastTryAt: isoOrNull(trail.at(-1)?.at ?? null),
    state: dueAt !== null ? 'waiting' : isTaken(result) ? 'sent' : 'given_up',
    nextTryAt: isoOrNull(dueAt === null ? null : Math.max(dueAt, at)),
  }) as const

const isTaken = (result: string | null): boolean => /^2\d\d$/.test(result ?? '')

export const listWebhooks = operation({
  method: 'GET',
  path: '/v1/apps/{app}/webhooks',
  role: 'reader',
  summary: `Shows the webhook address of the app, the state of its receiver, and the last ${webhooksListed} messages.`,
  answer: closed({
    url: orNull(Type.String()),
    hasSecret: Type.Boolean({ description: 'Without a secret, nothing is sent.' }),
    oldSecretUntil: orNull(time()),
    failingSince: orNull(time()),
    items: Type.Array(WebhookMessageResource, { description: 'Newest first.' }),
  }),
  async run({ store }, _input, { id, settings }) {
    const [webhook, messages] = await Promise.all([
      store.findReceiver(id),
      store.listWebhookMessages(id, webhooksListed),
    ])
    const oldUntil = Math.max(0, ...(webhook?.old ?? []).map(({ until }) => until))
    return done({
      url: settings.webhookUrl ?? null,
      hasSecret: webhook !== null,
      oldSecretUntil: oldUntil > store.now() ? isoOrNull(oldUntil) : null,
      failingSince: isoOrNull(webhook?.failingSince ?? null),
      items: messages.map(presentMessage),
    })
  },
})

export const makeWebhookSecret = operation({
  method: 'POST',
  path: '/v1/apps/{app}/webhooks/secret',
  role: 'admin',
  summary:
    'Makes the secret that signs the webhooks of the app, or replaces it. The old secret also signs for `graceSeconds`, and those before it for the rest of theirs; with 0, none does.',
  body: closed({
    graceSeconds: graceField(30),
  }),
  answer: closed({
    secret: Type.String({ description: 'Only this answer contains it.' }),
    oldSecretUntil: orNull(time()),
  }),
  outlives: always,
  creates: true,
  errors: ['not_found'],
  async run({ access, makeWebhookSecret: make, store }, { body: { graceSeconds = daySeconds }, params }, { id }) {
    const { sealed, secret } = make(id)
    const oldUntil = store.now() + graceSeconds * 1000
    const set = await store.setWebhookSecret({ app: id, sealed, oldUntil }, access.actor)
    if (set === null) return appNotFound(params.app)
    return done({ secret, oldSecretUntil: isoOrNull(set.old[0]?.until ?? null) }, { created: true })
  },
})

export const testWebhook = operation({
  method: 'POST',
  path: '/v1/apps/{app}/webhooks/test',
  role: 'operator',
  summary: 'Queues the message `webhook.test` for the receiver of the app.',
  body: closed({}),
  answer: closed({ id: Type.String({ description: 'Its message shows the outcome.' }) }),
  errors: ['webhook_refused'],
  async run({ access, store }, _input, { id, settings, slug }) {
    const message = { app: id, event: 'webhook.test', email: null, facts: {}, sealed: null } as const
    const added = await store.addWebhookMessage(message)
    if (added === 'full') return full(slug)
    if (added === 'unwanted') return refuseUnwanted(slug, settings)
    const action = { action: 'webhook.test', app: id, target: added, before: null, after: null } as const
    await store.recordAction(action, access.actor)
    return done({ id: added })
  },
})

const full = (slug: string) =>
  fail(
    'webhook_refused',
    `Too many webhooks wait for the receiver of ${slug}: find out first why it does not accept them.`,
  )

function refuseUnwanted(slug: string, { webhookUrl }: AppSettings) {
  const missing =
    webhookUrl === undefined
      ? 'address: an admin of the whole service sets it (webhookUrl)'
      : 'secret: an admin makes it'
  return fail('webhook_refused', `${slug} has no webhook ${missing}.`)
}

const messageNotFound = () =>
  fail('not_found', `This app has no such webhook message; they are kept for ${keepDays} days.`)

export const showWebhook = operation({
  method: 'GET',
  path: '/v1/apps/{app}/webhooks/{message}',
  role: 'reader',
  summary:
    'Shows one message, with its JSON but without the recipient, its tries, and the last answer of the receiver.',
  answer: WebhookMessageDetail,
  errors: ['not_found'],
  async run({ store }, { params }, { id }) {
    const [found, receiver] = await Promise.all([
      store.findWebhookMessage(id, params.message as WebhookMessageId),
      store.findReceiver(id),
    ])
    if (found === null) return messageNotFound()
    const { keepsRecipient, trail } = found
    return done({
      ...{ ...presentMessage(found), payload: writeWebhook(found, null), keepsRecipient },
      trail: trail.map(({ at, result }) => ({ at: iso(at), result })),
      failingSince: isoOrNull(receiver?.failingSince ?? null),
    })
  },
})

export const sendWebhookAgain = operation({
  method: 'POST',
  path: '/v1/apps/{app}/webhooks/{message}/send',
  role: 'operator',
  summary: `Sends a message again, or a waiting one now. Once the receiver has accepted it, or after ${webhookDays} days, it is sent without the recipient.`,
  body: closed({}),
  answer: WebhookMessageResource,
  errors: ['not_found', 'webhook_refused'],
  async run({ access, store }, { params }, { id, settings, slug }) {
    const message = params.message as WebhookMessageId
    if (settings.webhookUrl === undefined || (await store.findReceiver(id)) === null)
      return refuseUnwanted(slug, settings)
    const sent = await store.sendWebhookAgain(id, message)
    if (sent === 'full') return full(slug)
    const found = sent === 'done' ? await store.findWebhookMessage(id, message) : null
    if (found === null) return messageNotFound()
    const action = { action: 'webhook.send', app: id, target: message, before: null, after: null } as const
    await store.recordAction(action, access.actor)
    return done(presentMessage(found))
  },
})
