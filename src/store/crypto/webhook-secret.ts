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
  const isCurrent = (sealed: string) => sealingKeyId(Buffer.from(sealed, 'base64url')) === ring[0].id
  for (const receiver of await store.listReceivers()) {
    const { app, sealed, old } = receiver
    const secret = openWebhookSecret(ring, app, sealed)
    if (secret === null) closed.push(receiver)
    if (secret === null || [sealed, ...old.map((each) => each.sealed)].every(isCurrent)) continue
    const resealed = old.flatMap(({ sealed: oldSealed, until }) => {
      const text = openWebhookSecret(ring, app, oldSealed)
      return text === null ? [] : [{ sealed: sealWebhookSecret(ring, app, text), until }]
    })
    await store.resealReceiver(receiver, { sealed: sealWebhookSecret(ring, app, secret), old: resealed })
  }
  return closed
}
