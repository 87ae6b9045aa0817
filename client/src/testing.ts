/**
 * For tests of apps: a client that captures instead of sending, and a reader of the inbox of
 * `postern dev`. Only the service validates emails: to test its refusals, use the inbox.
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

type Row = Pick<InboxEmail, 'id' | 'type' | 'to' | 'receivedAt'>

const late = () => new PosternError('timeout', 'No such email arrived in the inbox in time.')

/**
 * Reads the inbox of `postern dev`. A reader returns emails that arrive after its creation: create it
 * before your app sends.
 */
export class DevInbox {
  readonly #url: string
  readonly #given = new Set<string>()
  readonly #madeAt = Date.now()

  /** @param url address of the inbox or of the console that it is part of. Default http://127.0.0.1:4022 */
  constructor(url = 'http://127.0.0.1:4022') {
    this.#url = `${url.replace(/(?:\/inbox)?\/*$/, '')}/api/inbox`
  }

  /**
   * Waits for an email to an address, optionally of one type. Returns each once, oldest first.
   * @param timeoutMs how long to wait. Default 5,000
   * @throws {PosternError} `timeout`; `network_error` or `unexpected_response` if no inbox answers
   */
  async next(to: string, type?: EmailType, timeoutMs = 5_000): Promise<InboxEmail> {
    const endsAt = Date.now() + timeoutMs
    for (;;) {
      const rows = await this.#get<Row[]>('', endsAt)
      const [row] = rows
        .filter((email) => this.#isNew(email, to) && (type === undefined || email.type === type))
        .slice(-1)
      if (row !== undefined) {
        this.#given.add(row.id)
        return this.#get<InboxEmail>(`/${row.id}`, endsAt)
      }
      if (Date.now() >= endsAt) throw late()
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }

  #isNew({ id, to, receivedAt }: Row, address: string): boolean {
    const recent = Date.parse(receivedAt) >= this.#madeAt
    return recent && !this.#given.has(id) && to.toLowerCase() === address.toLowerCase()
  }

  async #get<T>(path: string, endsAt: number): Promise<T> {
    const signal = AbortSignal.timeout(Math.max(1, endsAt - Date.now()))
    const answer = await fetch(this.#url + path, { signal }).catch(() => null)
    if (answer === null) {
      if (signal.aborted) throw late()
      throw new PosternError('network_error', `No inbox answers at ${this.#url}: is \`postern dev\` running?`)
    }
    const json = (await answer.json().catch(() => null)) as T | null
    if (answer.ok && json !== null) return json
    throw new PosternError('unexpected_response', `${this.#url} answered ${answer.status}: not an inbox.`)
  }
}
