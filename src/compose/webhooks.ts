/** Webhooks: what leaves them, and the part of the service that sends them. */
import { postWebhook } from '../delivery/webhooks/post-webhook.ts'
import { WebhookQueue } from '../delivery/webhooks/webhook-queue.ts'
import { WebhookSender } from '../delivery/webhooks/webhook-sender.ts'
import {
  openRecipient,
  openWebhookSecret,
  readWebhookSecret,
  sealRecipient,
} from '../store/crypto/webhook-secret.ts'
import type { ServiceContext } from './context.ts'

export const composeWebhookQueue = ({ config, events, store }: ServiceContext): WebhookQueue =>
  new WebhookQueue({ store, emit: events.emit, seal: (email, to) => sealRecipient(config.ring, email, to) })

export function composeWebhookSender({ config, events, store, version }: ServiceContext): WebhookSender {
  const { ring, webhooksArePrivate: allowsPrivate } = config
  return new WebhookSender({
    store,
    version,
    emit: events.emit,
    openSecret: (app, sealed) => {
      const secret = openWebhookSecret(ring, app, sealed)
      return secret === null ? null : readWebhookSecret(secret)
    },
    openRecipient: (email, sealed) => openRecipient(ring, email, sealed),
    post: (posting, stopped) => postWebhook(posting, { allowsPrivate, stopped }),
  })
}
