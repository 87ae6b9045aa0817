/** Shows where an app is notified of emails that bounced or failed, and the last messages to it. */
import { Type } from 'typebox'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { isoOrNull } from '../resources.ts'
import { presentMessage, WebhookMessageResource } from './webhook-parts.ts'

const listedMax = 100

export const listWebhooks = operation({
  method: 'GET',
  path: '/v1/apps/{app}/webhooks',
  role: 'reader',
  summary: `Shows the webhook address of the app, the state of its receiver, and the last ${listedMax} messages.`,
  answer: closed({
    url: orNull(Type.String()),
    hasSecret: Type.Boolean({ description: 'Without a secret, nothing is sent.' }),
    oldSecretUntil: orNull(time()),
    failingSince: orNull(time()),
    items: Type.Array(WebhookMessageResource, { description: 'Newest first.' }),
  }),
  async run({ store }, _input, { id, settings }) {
    const [webhook, messages] = await Promise.all([store.findReceiver(id), store.listWebhookMessages(id, listedMax)])
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
