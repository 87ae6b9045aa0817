/** Webhooks: the secrets of apps that sign them, and the recipients in messages that wait. */
import { randomBytes } from 'node:crypto'
import type { AppId, EmailId } from '../../domain/id.ts'
import type { WebhookSecrets, WebhookStore } from '../webhook-store.ts'
import { isSealedFirst, type KeyRing, openText, resealAll, sealText } from './key-ring.ts'

const secretBytes = 32
const prefix = 'whsec_'

/** In the form of Standard Webhooks. */
export const makeWebhookSecret = (): string => prefix + randomBytes(secretBytes).toString('base64')

export const readWebhookSecret = (secret: string): Buffer => Buffer.from(secret.slice(prefix.length), 'base64')

const secretContext = (app: AppId): string => `app-webhook secret ${app}`
const recipientContext = (id: EmailId): string => `webhook recipient ${id}`

export const sealWebhookSecret = (ring: KeyRing, app: AppId, secret: string): string =>
  sealText(ring, secretContext(app), secret)

/** Null if the ring lacks the key that sealed it, or it was altered. */
export const openWebhookSecret = (ring: KeyRing, app: AppId, sealed: string): string | null =>
  openText(ring, secretContext(app), sealed)

/** Seals the recipient of an email. */
export const recipientSealer =
  (ring: KeyRing) =>
  (id: EmailId, to: string): string =>
    sealText(ring, recipientContext(id), to)

/** Null as for `openWebhookSecret`. */
export const openRecipient = (ring: KeyRing, id: EmailId, sealed: string): string | null =>
  openText(ring, recipientContext(id), sealed)

/** Returns those that the ring cannot open. An old secret that it cannot open is dropped. */
export const resealReceivers = async (
  ring: KeyRing,
  store: Pick<WebhookStore, 'listReceivers' | 'resealReceiver'>,
): Promise<readonly WebhookSecrets[]> =>
  resealAll(ring, await store.listReceivers(), {
    context: ({ app }) => secretContext(app),
    isCurrent: ({ old }) => old.every(({ sealed }) => isSealedFirst(ring, sealed)),
    write: (receiver, sealed) => {
      const { app } = receiver
      const old = receiver.old.flatMap(({ sealed: before, until }) => {
        const text = openWebhookSecret(ring, app, before)
        return text === null ? [] : [{ sealed: sealWebhookSecret(ring, app, text), until }]
      })
      return store.resealReceiver(receiver, { sealed, old })
    },
  })
