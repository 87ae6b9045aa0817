/** Webhooks: the secrets of apps that sign them, and the recipients in messages that wait. */
import { randomBytes } from 'node:crypto'
import type { AppId, EmailId } from '../../domain/id.ts'
import type { WebhookSecrets, WebhookStore } from '../webhook-store.ts'
import { type KeyRing, seal, sealingKeyId, unseal } from './key-ring.ts'

const secretBytes = 32
const prefix = 'whsec_'

/** In the form of Standard Webhooks. */
export const makeWebhookSecret = (): string => prefix + randomBytes(secretBytes).toString('base64')

export const readWebhookSecret = (secret: string): Buffer =>
  Buffer.from(secret.slice(prefix.length), 'base64')

const secretContext = (app: AppId): string => `webhook secret ${app}`
const recipientContext = (id: EmailId): string => `webhook recipient ${id}`

export const sealWebhookSecret = (ring: KeyRing, app: AppId, secret: string): string =>
  seal(ring, secretContext(app), secret).toString('base64url')

/** Null if the ring lacks the key that sealed it, or it was altered. */
export const openWebhookSecret = (ring: KeyRing, app: AppId, sealed: string): string | null =>
  open(ring, secretContext(app), sealed)

/** Seals the recipient of an email. */
export const recipientSealer =
  (ring: KeyRing) =>
  (id: EmailId, to: string): string =>
    seal(ring, recipientContext(id), to).toString('base64url')

/** Null as for `openWebhookSecret`. */
export const openRecipient = (ring: KeyRing, id: EmailId, sealed: string): string | null =>
  open(ring, recipientContext(id), sealed)

function open(ring: KeyRing, context: string, sealed: string): string | null {
  try {
    return unseal(ring, context, Buffer.from(sealed, 'base64url'))
  } catch {
    return null
  }
}

/**
 * Seals all secrets with the first key of the ring, so that the others can be removed from it. Returns those
 * that the ring cannot open, which stay as they are.
 */
export async function resealReceivers(
  ring: KeyRing,
  store: Pick<WebhookStore, 'listReceivers' | 'resealReceiver'>,
): Promise<readonly WebhookSecrets[]> {
  const closed: WebhookSecrets[] = []
  for (const webhook of await store.listReceivers()) {
    const { app, sealed, oldSealed } = webhook
    const secret = openWebhookSecret(ring, app, sealed)
    const oldSecret = oldSealed === null ? null : openWebhookSecret(ring, app, oldSealed)
    if (secret === null) {
      closed.push(webhook)
      continue
    }
    const isCurrent = [sealed, oldSealed].every(
      (text) => text === null || sealingKeyId(Buffer.from(text, 'base64url')) === ring[0].id,
    )
    if (isCurrent) continue
    await store.resealReceiver(webhook, {
      sealed: sealWebhookSecret(ring, app, secret),
      oldSealed: oldSecret === null ? null : sealWebhookSecret(ring, app, oldSecret),
    })
  }
  return closed
}
