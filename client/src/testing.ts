/**
 * For tests of apps: a client that captures instead of sending, and a reader of the inbox that
 * `postern dev` keeps. Only the service judges emails; what it would refuse shows with the inbox alone.
 */
import type { EmailType } from './email.ts'
import { Postern } from './postern.ts'
import { type Issue, PosternError } from './postern-error.ts'

/** An email as the service would have got it. */
export type CapturedEmail = {
  readonly to: string
  readonly type: EmailType
  readonly url: string
  readonly expiresAt: string
  readonly organisationName?: string
  readonly inviterName?: string | null
}

/** An answer of the service's that is no 202. */
export type Refusal = {
  readonly status: number
  readonly code: string
  readonly retryAfterS?: number
  readonly issues?: readonly Issue[]
}

/** A client that queues nothing and remembers everything. */
export class CapturingPostern extends Postern {
  /** What was sent, the oldest first. */
  readonly emails: CapturedEmail[] = []
  /** Set it to see how the app takes a refusal: nothing is captured then. */
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

  /** The newest email to an address, in any case of letters. */
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

const late = () => new PosternError('timeout', 'No such email came to the inbox in time.')

/**
 * Reads the inbox of `postern dev`. A reader gives the emails that came after it was made, so make it
 * before your app sends.
 */
export class DevInbox {
  readonly #url: string
  readonly #given = new Set<string>()
  readonly #madeAt = Date.now()

  /** @param url where the inbox is: http://127.0.0.1:4022 unless given */
  constructor(url = 'http://127.0.0.1:4022') {
    this.#url = `${url.replace(/\/+$/, '')}/api/inbox`
  }

  /**
   * Waits for an email to an address, perhaps of one type, and gives each once, the oldest first.
   * @param timeoutMs how long to wait: 5,000 unless given
   * @throws {PosternError} `timeout`; `network_error` or `unexpected_response` where no inbox answers
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
    throw new PosternError('unexpected_response', `${this.#url} answered ${answer.status}: it is no inbox.`)
  }
}
