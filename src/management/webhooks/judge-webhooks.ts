/** Finds receivers that do not take the webhooks of their apps: pure, from the records of the store. */
import type { App } from '../../domain/app/app.ts'
import { describeDuration, minuteMs } from '../../domain/duration.ts'
import { gone } from '../../domain/webhooks/webhook.ts'
import type { ReceiverRecord } from '../../store/webhook-store.ts'

export type WebhookFault = { readonly app: string; readonly message: string }

/** A receiver may be down for as long as its deployment takes. */
const failingMs = 10 * minuteMs

export const findWebhookFaults = (
  apps: readonly App[],
  webhooks: readonly ReceiverRecord[],
  nowMs: number,
): WebhookFault[] =>
  apps.flatMap(({ id, settings, slug, status }) => {
    if (settings.webhookUrl === undefined || status !== 'active') return []
    const webhook = webhooks.find(({ app }) => app === id)
    if (webhook === undefined)
      return [
        {
          app: slug,
          message: `${slug} has a webhook address and no secret, so it is not notified of emails that bounce. Make the secret.`,
        },
      ]
    const { failingSince, result } = webhook
    if (failingSince === null || (result !== gone && nowMs - failingSince < failingMs)) return []
    const age = describeDuration(nowMs - failingSince)
    const why = result === gone ? 'answers 410, so its messages are given up' : `has failed for ${age} (${result})`
    return [
      {
        app: slug,
        message: `The webhook receiver of ${slug} ${why}. ${slug} is not notified of emails that bounce.`,
      },
    ]
  })
