/**
 * For tests of apps: a client that captures instead of sending, and a reader of the inbox of `postern dev`,
 * or of the test keys of a service. Only the service validates emails: to test its refusals, use the inbox.
 */
import type { EmailType } from './email.ts'
import { Postern } from './postern.ts'
import { type Issue, PosternError } from './postern-error.ts'

/** An email as the service would receive it. */
export type CapturedEmail = {
  readonly to: string
  readonly type: EmailType
  readonly url: string
  readonly expiresAt: string
  readonly organisationName?: string
  readonly inviterName?: string | null
  readonly locale?: string | null
  readonly code?: string | null
}

/** An answer other than 202. */
export type Refusal = {
  readonly status: number
  readonly code: string
  readonly retryAfterS?: number
  readonly issues?: readonly Issue[]
}

/** A client that records emails and queues none. */
export class CapturingPostern extends Postern {
  /** Sent emails, oldest first. */
  readonly emails: CapturedEmail[] = []
  /** Set to test how the app handles refusals. Then nothing is captured. */
  refusal: Refusal | null = null
  readonly #ids = new Map<string, string>()

  constructor() {
    super({
      deliveryKey: 'pst_capturing',
      baseUrl: 'http://postern.invalid',
      maxRetries: 0,
      fetch: async (_url, { headers, body } = {}) =>
        this.#answer(String(body), new Headers(headers).get('idempotency-key') ?? ''),
    })
  }

  /** The newest email to an address; ignores case. */
  latest(to: string): CapturedEmail | undefined {
    return this.emails.filter((email) => email.to.toLowerCase() === to.toLowerCase()).at(-1)
  }

  #answer(body: string, idempotencyKey: string): Response {
    if (this.refusal !== null) {
      const { status, code, retryAfterS, issues } = this.refusal
      const headers = new Headers(retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) })
      const error = { code, message: `Refused by the test: ${code}.`, requestId: 'req_capturing', issues }
      return Response.json({ ok: false, error }, { status, headers })
    }
    const known = this.#ids.get(idempotencyKey)
    const id = known ?? `em_capturing_${this.emails.length + 1}`
    if (known === undefined) this.emails.push(JSON.parse(body) as CapturedEmail)
    this.#ids.set(idempotencyKey, id)
    const replayed = known === undefined ? undefined : { 'idempotent-replayed': 'true' }
    return Response.json({ ok: true }, { status: 202, headers: { 'email-id': id, ...replayed } })
  }
}

/** An email in the inbox. Times are ISO 8601. */
export type InboxEmail = {
  readonly id: string
  readonly app: string
  readonly type: EmailType
  readonly to: string
  readonly from: string
  readonly subject: string
  /** The link as the email carries it. */
  readonly url: string
  /** The one-time code; null without one. */
  readonly code: string | null
  readonly expiresAt: string
  readonly receivedAt: string
  /** Counts the emails of the inbox. */
  readonly seq: number
  readonly html: string
  readonly text: string
}

const late = (message = 'No such email arrived in the inbox in time.') => new PosternError('timeout', message)

/** The longest that the inbox lets a request wait. */
const waitMaxMs = 25_000

/** The inbox of an app's test keys, in a service. */
export type TestKeyInbox = {
  /** Address of the console, which also answers the management API. */
  readonly url: string
  /** The slug of the app. */
  readonly app: string
  /** A management token of an operator of the app: `psa_…`. */
  readonly token: string
}

/**
 * Reads the inbox of `postern dev`, or that of an app's test keys. A reader returns emails that arrive after
 * its creation: create it before your app sends.
 */
export class DevInbox {
  readonly #url: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #given = new Set<string>()
  readonly #madeAt = new Date().toISOString()

  /**
   * @param inbox address of the inbox of `postern dev`, or of the console that it is part of; or an inbox of
   * test keys. Default http://127.0.0.1:4022
   */
  constructor(inbox: string | TestKeyInbox = 'http://127.0.0.1:4022') {
    const { url, ...keys } = typeof inbox === 'string' ? { url: inbox } : inbox
    const base = url.replace(/(?:\/inbox)?\/*$/, '')
    this.#url = 'app' in keys ? `${base}/v1/apps/${encodeURIComponent(keys.app)}/inbox` : `${base}/api/inbox`
    this.#headers = 'token' in keys ? { authorization: `Bearer ${keys.token}` } : {}
  }

  /**
   * Waits for an email to an address, optionally of one type. Returns each once, oldest first.
   * @param timeoutMs how long to wait. Default 5,000
   * @throws {PosternError} `timeout`; `network_error` or `unexpected_response` if no inbox answers
   */
  async next(to: string, type?: EmailType, timeoutMs = 5_000): Promise<InboxEmail> {
    const endsAt = Date.now() + timeoutMs
    let after = this.#madeAt
    for (;;) {
      const waitMs = Math.max(0, Math.min(waitMaxMs, endsAt - Date.now()))
      const query = { to, after, timeout: String(waitMs / 1000), ...(type !== undefined && { type }) }
      const answer = await this.#wait(new URLSearchParams(query), waitMs)
      if (typeof answer === 'string' && Date.now() >= endsAt) throw late(answer)
      if (typeof answer === 'string') continue
      if (!this.#given.has(answer.id)) {
        this.#given.add(answer.id)
        return answer
      }
      after = String(answer.seq)
    }
  }

  /** The email, or why none came in so much time. */
  async #wait(query: URLSearchParams, waitMs: number): Promise<InboxEmail | string> {
    const beganAt = Date.now()
    // The inbox ends the wait; this is for one that does not.
    const signal = AbortSignal.timeout(waitMs + 1000)
    const answer = await fetch(`${this.#url}/wait?${query}`, { signal, headers: this.#headers }).catch(() => null)
    if (answer === null) {
      if (signal.aborted) throw late()
      throw new PosternError('network_error', `No inbox answers at ${this.#url}: is Postern running?`)
    }
    const json = (await answer.json().catch(() => null)) as InboxAnswer | null
    if (answer.ok && json !== null) return json as InboxEmail
    const { code, message } = json?.error ?? { code: '', message: 'not an inbox.' }
    // An answer before its time is from an inbox that stops, or does not know this request.
    const isInTime = Date.now() - beganAt >= waitMs - earlyMs
    if (code === 'no_such_email' && isInTime) return message
    throw new PosternError('unexpected_response', `${this.#url} answered ${answer.status}: ${message}`)
  }
}

/** Timers of two machines differ by a little. */
const earlyMs = 100

type InboxAnswer = Partial<InboxEmail> & {
  readonly error?: { readonly code: string; readonly message: string }
}
