/** Queues a test message for the receiver of an app. */
import { Type } from 'typebox'
import { operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'

export const testWebhook = operation({
  method: 'POST',
  path: '/v1/apps/{app}/webhooks/test',
  role: 'operator',
  target: 'app',
  summary: 'Queues the message `webhook.test` for the receiver of the app.',
  body: closed({}),
  answer: closed({ id: Type.String({ description: 'The list of webhooks says what became of it.' }) }),
  errors: ['no_webhook'],
  async run({ access, store }, _input, { id, slug }) {
    const facts = {}
    const added = await store.addWebhookMessage({
      ...{ app: id, event: 'webhook.test', email: null, facts },
      sealed: null,
    })
    if (added === 'full')
      return fail(
        'no_webhook',
        `Too many webhooks of ${slug} wait for its receiver: see why they fail first.`,
      )
    if (added === 'unwanted')
      return fail(
        'no_webhook',
        `${slug} is sent no webhooks: an admin sets its webhook address (webhookUrl) and makes its secret first.`,
      )
    const action = { action: 'webhook.test', app: id, target: added, before: null, after: null } as const
    await store.recordAction(action, access.actor)
    return done({ id: added })
  },
})
