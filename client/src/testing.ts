/**
 * For tests of apps: a client that captures instead of sending, and a reader of the inbox that
 * `postern dev` keeps. Only the service judges emails; what it would refuse shows with the inbox alone.
 */
import type { EmailType } from './email.ts'
import { Postern } from './postern.ts'
import { PosternError } from './postern-error.ts'

/** An email as the service would have got it. */
export type CapturedEmail = {
  readonly to: string
  readonly type: EmailType
  readonly url: string
  readonly expiresAt: string
  readonly organisationName?: string
  readonly inviterName?: string | null
}

/** A client that queues nothing and remembers everything. */
export class CapturingPostern extends Postern {
  /** What was sent, the oldest first. */
  readonly emails: CapturedEmail[] = []
  /** Set it to see how the app takes a refusal: nothing is captured then. */
  refusal: { readonly status: number; readonly code: string; readonly retryAfterS?: number } | null = null

  constructor() {
    super({
      deliveryKey: 'pst_capturing',
      baseUrl: 'http://postern.invalid',
      fetch: async (_url, init) => this.#answer(String(init?.body)),
    })
  }

  /** The newest email to an address. */
  latest(to: string): CapturedEmail | undefined {
    return this.emails.filter((email) => email.to === to).at(-1)
  }

  #answer(body: string): Response {
    if (this.refusal !== null) {
      const { status, code, retryAfterS } = this.refusal
      const headers = new Headers(retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) })
      const error = { code, message: `Refused by the test: ${code}.`, requestId: 'req_capturing' }
      return Response.json({ ok: false, error }, { status, headers })
    }
    this.emails.push(JSON.parse(body) as CapturedEmail)
    const headers = { 'email-id': `em_capturing_${this.emails.length}` }
    return Response.json({ ok: true }, { status: 202, headers })
  }
}

/** An email in the inbox of `postern dev`. Times are ISO 8601. */
export type InboxEmail = {
  readonly id: string
  readonly app: string
  readonly type: EmailType
  readonly to: string
  readonly from: string
  readonly subject: string
  /** The link as the email carries it. */
  readonly url: string
  readonly expiresAt: string
  readonly receivedAt: string
  readonly html: string
  readonly text: string
}

/** Reads the inbox of `postern dev`. */
export class DevInbox {
  readonly #latest: string
  readonly #given = new Set<string>()

  /** @param url where the inbox is: http://127.0.0.1:4022 unless given */
  constructor(url = 'http://127.0.0.1:4022') {
    this.#latest = `${url.replace(/\/+$/, '')}/api/inbox/latest`
  }

  /** The newest email to an address; null where there is none. */
  async latest(to: string): Promise<InboxEmail | null> {
    const response = await fetch(`${this.#latest}?to=${encodeURIComponent(to)}`)
    const answer = (await response.json().catch(() => ({}))) as InboxEmail & { error?: { code: string } }
    if (response.ok && answer.id) return answer
    if (answer.error?.code === 'no_such_email') return null
    throw new PosternError(
      'unexpected_response',
      `An answer with status ${response.status}: is this the inbox?`,
    )
  }

  /**
   * Waits for an email that this reader has not given yet: the next call waits for the next one.
   * @param timeoutMs how long to wait: 5,000 unless given
   * @throws {PosternError} `timeout`
   */
  async next(to: string, type?: EmailType, timeoutMs = 5_000): Promise<InboxEmail> {
    const endsAt = Date.now() + timeoutMs
    for (;;) {
      const email = await this.latest(to)
      if (email !== null && !this.#given.has(email.id) && (type === undefined || email.type === type)) {
        this.#given.add(email.id)
        return email
      }
      if (Date.now() >= endsAt)
        throw new PosternError('timeout', `No such email in the inbox within ${timeoutMs} ms.`)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
}
