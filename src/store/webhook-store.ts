/**
 * The part of a store that keeps webhooks: the secrets that sign them, and the messages until they are sent.
 * The rules of `store.ts` hold.
 */
import type { AppId, WebhookMessageId } from '../domain/id.ts'
import type { Actor } from '../domain/operator/audit.ts'
import type { WebhookMessage } from '../domain/webhooks/webhook.ts'

/** The secrets are sealed by the key ring, as base64url. */
export type WebhookSecrets = {
  readonly app: AppId
  readonly sealed: string
  /** The secrets before, newest first, which sign as well until their times. */
  readonly old: readonly { readonly sealed: string; readonly until: number }[]
}

export type ReceiverRecord = WebhookSecrets & {
  /** Since when no try succeeds; null after a success. */
  readonly failingSince: number | null
  /** The last try: the status of the answer, or why there was none. */
  readonly result: string | null
}

/** `sealed`: the recipient; null if it is unknown. */
export type NewWebhookMessage = Omit<WebhookMessage, 'id' | 'at'> & {
  readonly app: AppId
  readonly sealed: string | null
}

/** `tries` counts this one. */
export type ClaimedWebhook = WebhookMessage & NewWebhookMessage & { readonly tries: number }

/** The end of a try. `waitMs`: how long the message waits for the next one; null if it has ended. */
export type WebhookTry = Pick<ClaimedWebhook, 'id' | 'app' | 'tries'> & {
  readonly result: string
  /** The beginning of the body that the receiver answered, redacted, unless it accepted. */
  readonly response?: string | null
  /** Null if the try says nothing about the receiver. */
  readonly receiver: 'accepts' | 'fails' | null
  readonly waitMs: number | null
}

/** `dueAt`: null for a message that has ended; 0 for one that is tried at once. */
export type WebhookMessageRecord = WebhookMessage & {
  readonly dueAt: number | null
  readonly tries: number
  readonly result: string | null
  readonly response: string | null
  /** The last tries, at most `webhookTrailMax`. */
  readonly trail: readonly { readonly at: number; readonly result: string }[]
  /** Whether it would be sent with the recipient. */
  readonly keepsRecipient: boolean
}

/** An app with messages that are due. `url`: null if it has no address any more. */
export type DueWebhooks = WebhookSecrets & {
  readonly url: string | null
  /** An operator waits for one of them; it is claimed first. */
  readonly isUrgent: boolean
}

export interface WebhookStore {
  /**
   * Its id. `unwanted`: the app has no address or no secret. `full`: `waitingWebhooksMax` of its messages
   * wait. One about a suppressed email also gets the reason, and the end of the suppression.
   */
  addWebhookMessage(message: NewWebhookMessage): Promise<WebhookMessageId | 'unwanted' | 'full'>
  /** Has a message tried at once, once more if it has ended. */
  sendWebhookAgain(app: AppId, id: WebhookMessageId): Promise<'done' | 'not_found' | 'full'>
  /** The apps with messages that are due. */
  listDueWebhooks(): Promise<readonly DueWebhooks[]>
  /** Leases at most `max` due messages of an app, for `webhookLeaseMs`. */
  claimWebhooks(app: AppId, max: number): Promise<readonly ClaimedWebhook[]>
  /** Nothing if the lease was lost. */
  endWebhookTry(ended: WebhookTry): Promise<void>

  /** Null if the app has no secret. */
  findReceiver(app: AppId): Promise<ReceiverRecord | null>
  listReceivers(): Promise<readonly ReceiverRecord[]>
  /** The newest messages of an app, newest first. */
  listWebhookMessages(app: AppId, limit: number): Promise<readonly WebhookMessageRecord[]>
  findWebhookMessage(app: AppId, id: WebhookMessageId): Promise<WebhookMessageRecord | null>
  /**
   * The secret before signs as well until `oldUntil`, and those before it until their own times; if it is
   * over, none does. Null if there is no such app.
   */
  setWebhookSecret(
    secret: { readonly app: AppId; readonly sealed: string; readonly oldUntil: number },
    actor: Actor,
  ): Promise<ReceiverRecord | null>
  /** Stores secrets that were sealed anew, unless they were changed since they were read. */
  resealReceiver(secrets: WebhookSecrets, resealed: Pick<WebhookSecrets, 'sealed' | 'old'>): Promise<void>
}
