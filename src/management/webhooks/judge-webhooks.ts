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
          message: `${slug} has a webhook address and no secret, so its webhooks are not sent. Create the secret.`,
        },
      ]
    const { failingSince, result } = webhook
    if (failingSince === null || (result !== gone && nowMs - failingSince < failingMs)) return []
    const age = describeDuration(nowMs - failingSince)
    const why =
      result === gone
        ? 'answers 410, so its messages are given up'
        : `has failed for ${age} (${result}). Its messages wait and are tried again`
    return [
      {
        app: slug,
        message: `The webhook receiver of ${slug} ${why}.`,
      },
    ]
  })
