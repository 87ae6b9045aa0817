/**
 * Sends webhooks: takes due messages of each app from the store, posts them, and records how it went. Apps
 * have a bound each, so that a receiver which hangs delays no other one; a receiver that fails is left alone
 * for a while.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { webhookPauseMaxMs } from '../../domain/bounds.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { redact } from '../../domain/redaction/redact.ts'
import { gone, waitAfterTries, writeWebhook } from '../../domain/webhooks/webhook.ts'
import type { Emit } from '../../observe/events.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import type { ClaimedWebhook, DueWebhooks } from '../../store/webhook-store.ts'
import { newPosting, type Posting, type WebhookAnswer } from './post-webhook.ts'

type SenderDeps = {
  readonly store: Pick<Store, 'listDueWebhooks' | 'claimWebhooks' | 'endWebhookTry' | 'now'>
  readonly emit: Emit
  /** The bytes of a secret; null if the key ring lacks the key that sealed it. */
  readonly openSecret: (app: AppId, sealed: string) => Buffer | null
  readonly openRecipient: (email: EmailId, sealed: string) => string | null
  readonly post: (posting: Posting, stopped: AbortSignal) => Promise<WebhookAnswer>
  /** The version of Postern. */
  readonly version: string
  readonly pollMs?: number
}

const usualPollMs = 1000
const perAppMax = 2
const sendingMax = 64
/** A receiver that failed n times in a row is left alone for 5 s, 10 s, 20 s, … and five minutes at most. */
const pauseMs = 5000

const notSent = { isTaken: false, response: null } as const
const closed: WebhookAnswer = { ...notSent, result: 'the key ring lacks the key that sealed it' }

type Receiver = { sending: number; failures: number; pausedUntilMs: number }

export class WebhookSender {
  readonly #deps: SenderDeps
  readonly #receivers = new Map<AppId, Receiver>()
  readonly #trying = new Set<Promise<void>>()
  readonly #stopped = new AbortController()
  #sending = 0
  #timer: NodeJS.Timeout | undefined
  #taking: Promise<void> | null = null
  #takeAgain = false

  constructor(deps: SenderDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#timer = setInterval(this.wake, this.#deps.pollMs ?? usualPollMs)
  }

  /** A receiver has room, or it is time to look. */
  readonly wake = (): void => {
    if (this.#stopped.signal.aborted) return
    this.#takeAgain = true
    this.#taking ??= this.#takeAll().finally(() => {
      this.#taking = null
    })
  }

  /** Ends what is being sent; what was not answered is sent again after its lease. */
  async stop(graceMs: number): Promise<void> {
    clearInterval(this.#timer)
    const options = { signal: this.#stopped.signal, ref: false }
    await Promise.race([this.#whenIdle(), sleep(graceMs, undefined, options).catch(() => {})])
    this.#stopped.abort()
    await this.#whenIdle()
  }

  async #whenIdle(): Promise<void> {
    await this.#taking
    await Promise.all(this.#trying)
  }

  async #takeAll(): Promise<void> {
    while (this.#takeAgain) {
      this.#takeAgain = false
      try {
        for (const due of await this.#deps.store.listDueWebhooks()) await this.#take(due)
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) this.#deps.emit({ kind: 'bug', doing: 'looking for webhooks', error })
      }
    }
  }

  async #take(due: DueWebhooks): Promise<void> {
    const receiver = this.#receivers.get(due.app) ?? { sending: 0, failures: 0, pausedUntilMs: 0 }
    this.#receivers.set(due.app, receiver)
    const leftMs = receiver.pausedUntilMs - this.#deps.store.now()
    // More is left only after the clock was set back.
    if (!due.isUrgent && leftMs > 0 && leftMs <= webhookPauseMaxMs) return
    // One message tells whether a receiver is back.
    const room = (receiver.failures > 0 ? 1 : perAppMax) - receiver.sending
    const max = Math.min(room, sendingMax - this.#sending)
    if (max <= 0) return
    for (const message of await this.#deps.store.claimWebhooks(due.app, max)) {
      receiver.sending += 1
      this.#sending += 1
      const trying = this.#try(due, message, receiver).finally(() => {
        receiver.sending -= 1
        this.#sending -= 1
        this.#trying.delete(trying)
        this.wake()
      })
      this.#trying.add(trying)
    }
  }

  async #try(due: DueWebhooks, message: ClaimedWebhook, receiver: Receiver): Promise<void> {
    const { emit, store } = this.#deps
    const { app, email, event, id, tries } = message
    const begunAtMs = performance.now()
    try {
      const answer = await this.#post(due, message)
      const { isTaken, response, result } = answer ?? closed
      const isUnanswered = this.#stopped.signal.aborted && !isTaken
      if (isUnanswered) return
      const isOfReceiver = answer !== null && due.url !== null
      if (isOfReceiver) this.#noteAnswer(receiver, isTaken)
      const waitMs = isTaken || result === gone || due.url === null ? null : waitAfterTries(tries)
      const state = !isOfReceiver ? null : isTaken ? 'accepts' : 'fails'
      await store.endWebhookTry({ id, app, tries, result, response, receiver: state, waitMs })
      const outcome = isTaken ? 'sent' : waitMs === null ? 'given_up' : 'failed'
      const tookMs = performance.now() - begunAtMs
      emit({ kind: 'webhook_tried', appId: app, emailId: email, event, outcome, result, tries, tookMs })
    } catch (error) {
      // The lease ends, and the message is sent once more.
      if (!(error instanceof StoreUnavailable)) emit({ kind: 'bug', doing: 'sending a webhook', error })
    }
  }

  #noteAnswer(receiver: Receiver, isTaken: boolean): void {
    receiver.failures = isTaken ? 0 : receiver.failures + 1
    const pause = Math.min(webhookPauseMaxMs, pauseMs * 2 ** (receiver.failures - 1))
    receiver.pausedUntilMs = isTaken ? 0 : this.#deps.store.now() + pause
  }

  /** Null if the key ring lacks a key, which is no fault of the receiver. */
  async #post(due: DueWebhooks, message: ClaimedWebhook): Promise<WebhookAnswer | null> {
    const { openRecipient, openSecret, post, store, version } = this.#deps
    const { app, old, sealed, url } = due
    if (url === null) return { ...notSent, result: 'the app has no webhook address any more' }
    const valid = old.filter(({ until }) => until > store.now()).map((each) => each.sealed)
    const secrets = [sealed, ...valid].map((text) => openSecret(app, text))
    const keys = secrets.filter((key) => key !== null)
    const to = message.sealed === null || message.email === null ? null : openRecipient(message.email, message.sealed)
    const isClosed = secrets[0] === null || (message.sealed !== null && to === null)
    if (isClosed) return null
    const signed = { id: message.id, text: writeWebhook(message, to), keys, nowMs: store.now(), version }
    const answer = await post(newPosting(new URL(url), signed), this.#stopped.signal)
    const source = { kind: 'other', secrets: to === null ? [] : [to] } as const
    return { ...answer, response: answer.response && redact(answer.response, source) }
  }
}
