/** Queues a test message for the receiver of an app. */
import { Type } from 'typebox'
import { operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'

export const testWebhook = operation({
  method: 'POST',
  path: '/v1/apps/{app}/webhooks/test',
  role: 'operator',
  summary: 'Queues the message `webhook.test` for the receiver of the app.',
  body: closed({}),
  answer: closed({ id: Type.String({ description: 'The list of webhooks says what became of it.' }) }),
  errors: ['webhook_refused'],
  async run({ access, store }, _input, { id, settings, slug }) {
    const message = { app: id, event: 'webhook.test', email: null, facts: {}, sealed: null } as const
    const added = await store.addWebhookMessage(message)
    if (added === 'full')
      return fail(
        'webhook_refused',
        `Too many webhooks wait for the receiver of ${slug}: find out first why it does not accept them.`,
      )
    if (added === 'unwanted') {
      const missing =
        settings.webhookUrl === undefined
          ? 'address: an admin of the whole service sets it (webhookUrl)'
          : 'secret: an admin makes it'
      return fail('webhook_refused', `${slug} has no webhook ${missing}.`)
    }
    const action = { action: 'webhook.test', app: id, target: added, before: null, after: null } as const
    await store.recordAction(action, access.actor)
    return done({ id: added })
  },
})
