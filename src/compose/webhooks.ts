/** Composes the writer and the sender of webhooks. */
import { postWebhook } from '../delivery/webhooks/post-webhook.ts'
import { WebhookSender } from '../delivery/webhooks/webhook-sender.ts'
import { WebhookWriter } from '../delivery/webhooks/webhook-writer.ts'
import { openRecipient, openWebhookSecret, readWebhookSecret, recipientSealer } from '../store/crypto/webhook-secret.ts'
import type { ServiceContext } from './context.ts'

export const composeWebhookWriter = ({
  config,
  events,
  store,
}: Pick<ServiceContext, 'config' | 'events' | 'store'>): WebhookWriter =>
  new WebhookWriter({ store, emit: events.emit, seal: recipientSealer(config.ring) })

export function composeWebhookSender({ config, events, store, version }: ServiceContext): WebhookSender {
  const { dnsServers, ring, allowsPrivateWebhooks: allowsPrivate } = config
  return new WebhookSender({
    store,
    version,
    emit: events.emit,
    openSecret: (app, sealed) => {
      const secret = openWebhookSecret(ring, app, sealed)
      return secret === null ? null : readWebhookSecret(secret)
    },
    openRecipient: (email, sealed) => openRecipient(ring, email, sealed),
    post: (posting, stopped) => postWebhook(posting, { allowsPrivate, dnsServers, stopped }),
  })
}
