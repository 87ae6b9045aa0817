/**
 * Leaves a message for an app about an email that failed or was suppressed. Nothing waits for it: if the
 * process ends within the millisecond after the email did, the message is lost. Reports leave theirs in the
 * transaction that records them.
 */
import type { AppId, EmailId } from '../../domain/id.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import type { WebhookEvent, WebhookFacts } from '../../domain/webhooks/webhook.ts'
import type { Emit } from '../../observe/events.ts'
import { type NewEmail, type Store, StoreUnavailable } from '../../store/store.ts'

/** Messages that are being written. Others are lost, so that they delay no mail. */
const addingMax = 64

type QueueDeps = {
  readonly store: Pick<Store, 'addWebhookMessage'>
  /** Seals the recipient of an email. */
  readonly seal: (email: EmailId, to: EmailAddress) => string
  readonly emit: Emit
}

export class WebhookWriter {
  readonly #deps: QueueDeps
  #adding = 0

  constructor(deps: QueueDeps) {
    this.#deps = deps
  }

  /** Never rejects. */
  async add(
    event: WebhookEvent,
    app: AppId,
    { content, id: email, type }: Pick<NewEmail, 'id' | 'type' | 'content'>,
    facts: WebhookFacts = {},
  ): Promise<void> {
    const { emit, seal, store } = this.#deps
    const lost = () => emit({ kind: 'webhook_lost', appId: app, emailId: email, event })
    if (this.#adding >= addingMax) return lost()
    this.#adding += 1
    try {
      const sealed = seal(email, content.to)
      const message = { app, email, event, sealed, facts: { emailType: type, ...facts } }
      if ((await store.addWebhookMessage(message)) === 'full') lost()
    } catch (error) {
      lost()
      if (!(error instanceof StoreUnavailable)) emit({ kind: 'bug', doing: 'adding a webhook', error })
    } finally {
      this.#adding -= 1
    }
  }
}
