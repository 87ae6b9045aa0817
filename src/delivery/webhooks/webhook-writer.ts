/**
 * Adds a message for an app about an email that failed or was suppressed. Nothing waits for it: if the
 * process ends within the millisecond after the email did, the message is lost. Reports add theirs in the
 * transaction that records them. Here that would cost the mail path too much: the store alone knows whether
 * a recipient is suppressed, and it must get recipients sealed, so each email of such an app would be
 * sealed. That takes 5 µs of the 139 µs of processor time that accepting takes: 3.6 %.
 */
import { isTestSide, realSide } from '../../domain/app/test-side.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import type { WebhookEvent, WebhookFacts } from '../../domain/webhooks/webhook.ts'
import type { Emit } from '../../observe/events.ts'
import { type NewEmail, type Store, StoreUnavailable } from '../../store/store.ts'

/** Messages that are being written. Others are lost, so that they delay no mail. */
const addingMax = 64

type WriterDeps = {
  readonly store: Pick<Store, 'addWebhookMessage'>
  /** Seals the recipient of an email. */
  readonly seal: (email: EmailId, to: EmailAddress) => string
  readonly emit: Emit
}

export class WebhookWriter {
  readonly #deps: WriterDeps
  readonly #adding = new Set<Promise<void>>()

  constructor(deps: WriterDeps) {
    this.#deps = deps
  }

  /** Never rejects. */
  add(
    event: WebhookEvent,
    app: AppId,
    email: Pick<NewEmail, 'id' | 'type' | 'content'>,
    facts: WebhookFacts = {},
  ): Promise<void> {
    const lost = () => this.#deps.emit({ kind: 'webhook_lost', appId: app, emailId: email.id, event })
    if (this.#adding.size >= addingMax) return Promise.resolve(lost())
    const adding = this.#write(event, app, email, facts)
      .then((isStored) => {
        if (!isStored) lost()
      })
      .finally(() => this.#adding.delete(adding))
    this.#adding.add(adding)
    return adding
  }

  /** False if it is lost. */
  async #write(
    event: WebhookEvent,
    app: AppId,
    { content, id: email, type }: Pick<NewEmail, 'id' | 'type' | 'content'>,
    facts: WebhookFacts,
  ): Promise<boolean> {
    const { emit, seal, store } = this.#deps
    try {
      const sealed = seal(email, content.to)
      const test = isTestSide(app) ? { test: true as const } : {}
      const message = { app: realSide(app), email, event, sealed, facts: { emailType: type, ...facts, ...test } }
      return (await store.addWebhookMessage(message)) !== 'full'
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) emit({ kind: 'bug', doing: 'adding a webhook', error })
      return false
    }
  }

  /** Resolves when all that were added are stored. */
  async whenIdle(): Promise<void> {
    await Promise.all(this.#adding)
  }
}
