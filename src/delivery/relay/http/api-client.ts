/**
 * A relay that is a mail API: asks for a token, posts the message when the connection is ready and the link
 * and the lease still hold, and reads what the answer means.
 */
import type { Agent } from 'node:http'
import type { Socket } from 'node:net'
import { findNamed, isAboutRecipient } from '../../../domain/delivery/blame.ts'
import {
  classifyAnswer,
  type HttpAnswer,
  judgeStatus,
  toAcceptance,
  toReply,
  unanswered,
} from '../../../domain/delivery/http-answer.ts'
import { type FailureClass, noReply, type Reply } from '../../../domain/delivery/reply.ts'
import type { Source } from '../../../domain/redaction/redact.ts'
import type { ApiRequest, MailApi, Signing } from '../../../services/mail-api.ts'
import type { RelayClient } from '../gated-relay.ts'
import { newGrant } from '../oauth/grants.ts'
import { type AccessToken, TokenFault, TokenSource } from '../oauth/token-source.ts'
import { type Clearance, leaseLost, type Message, type Submission, workerStopped } from '../relay.ts'
import type { ApiAddress } from '../relay-address.ts'
import { type Exchange, isReady, newAgent, type PostOptions, post } from './post.ts'

const checkMs = 20_000
/** Servers close unused connections after five seconds and more. A repeated request is no risk to some. */
const idleMs = { usual: 4_000, idempotent: 20_000 }

const none: AccessToken = { text: '', isKept: false }

/** With the access token that was sent: an answer may repeat it. */
type AskedExchange = Exchange & { readonly token: string }

export class ApiClient implements RelayClient {
  readonly name: string
  readonly #api: MailApi
  readonly #endpoint: URL
  readonly #agent: Agent
  readonly #tokens: TokenSource | null
  readonly #stopped = new AbortController()

  constructor(name: string, { account, ca, endpoint, oauth, service }: ApiAddress, connectionsMax: number) {
    this.name = name
    this.#endpoint = new URL(endpoint)
    this.#api = service.api.open(account, this.#endpoint.host)
    this.#agent = newAgent(this.#endpoint, {
      connectionsMax,
      idleMs: this.#api.isIdempotent ? idleMs.idempotent : idleMs.usual,
      ...(ca !== undefined && { ca }),
    })
    this.#tokens = oauth === null ? null : new TokenSource(newGrant(oauth))
  }

  connections = () => {
    const used = listSockets(this.#agent.sockets)
    const ready = [...used.filter(isReady), ...listSockets(this.#agent.freeSockets)]
    return { connecting: used.filter((socket) => !isReady(socket)).length, open: ready.length, busy: used.length }
  }

  /** How long the access token stays valid; null without one. */
  get tokenLeftMs(): number | null {
    return this.#tokens?.leftMs ?? null
  }

  async send(message: Message, clearance: Clearance, openMs: number): Promise<Submission> {
    const lifeLeftMs = Math.floor(clearance.deadlineMs - performance.now())
    if (lifeLeftMs <= 0) return { kind: 'expired' }
    const budgetMs = Math.min(openMs, lifeLeftMs)
    const connecting = AbortSignal.timeout(budgetMs)
    const newRequest = (signing: Signing) => this.#api.newRequest({ ...message, lifeLeftMs }, signing)
    const mayHandOver = () => performance.now() < clearance.deadlineMs && clearance.isLeaseValid()
    const isOver = () => performance.now() >= clearance.deadlineMs || (budgetMs === lifeLeftMs && connecting.aborted)
    try {
      const exchange = await this.#ask(newRequest, { connecting, mayHandOver })
      if (exchange.kind !== 'lost' || !this.#api.isIdempotent) return this.#read(exchange, message, isOver)
      // The same bytes again: the provider knows whether it took them.
      const again = await this.#ask(newRequest, { connecting: AbortSignal.timeout(budgetMs), mayHandOver })
      return this.#read(again.kind === 'answered' ? again : exchange, message, isOver)
    } catch (error) {
      if (!(error instanceof TokenFault)) throw error
      if (this.#stopped.signal.aborted) return workerStopped
      return isOver() ? { kind: 'expired' } : failedToOpen(error.message, error)
    }
  }

  /** Posts an invalid message, which the provider must refuse. Throws `TokenFault`. */
  async check(): Promise<{ readonly ok: boolean; readonly text: string }> {
    const connecting = AbortSignal.timeout(checkMs)
    const exchange = await this.#ask((signing) => this.#api.newProbe(signing), {
      connecting,
      mayHandOver: () => true,
    })
    if (exchange.kind !== 'answered') return { ok: false, text: 'why' in exchange ? exchange.why : '' }
    const { answer } = exchange
    const kind = this.#judge(answer)
    const isProven = kind === 'refused' && answer.status !== 403
    return { ok: isProven, text: this.#toReply(exchange, answer, null).text }
  }

  /**
   * One exchange; a second one with a new token if the server does not take a kept one.
   * @throws {TokenFault} if there is no token
   */
  async #ask(
    newRequest: (signing: Signing) => ApiRequest,
    options: Pick<PostOptions, 'connecting' | 'mayHandOver'>,
  ): Promise<AskedExchange> {
    const stopped = this.#stopped.signal
    for (let isLast = false; ; isLast = true) {
      const token = (await this.#tokens?.get(options.connecting)) ?? none
      const { path, headers, body } = newRequest({ token: token.text, nowMs: Date.now() })
      const url = new URL(path, this.#endpoint)
      const exchange = await post(this.#agent, { url, headers, body }, { ...options, stopped })
      const isRefused = exchange.kind === 'answered' && exchange.answer.status === 401
      if (isRefused) this.#tokens?.forget(token.text)
      if (!isRefused || !token.isKept || isLast) return { ...exchange, token: token.text }
    }
  }

  #read(exchange: AskedExchange, { content, from }: Message, isOver: () => boolean): Submission {
    switch (exchange.kind) {
      case 'withheld':
        return isOver() ? { kind: 'expired' } : leaseLost
      case 'unconnected':
        if (this.#stopped.signal.aborted) return workerStopped
        return isOver() ? { kind: 'expired' } : failedToOpen(exchange.why, { lasting: exchange.isCertificate })
      case 'lost':
        return failed(noReply(exchange.why, this.#toSource(exchange, content)), unanswered)
      case 'answered': {
        const { answer } = exchange
        const id = this.#api.readAcceptance(answer)
        if (id !== null) return { kind: 'accepted', reply: toAcceptance(answer, id, this.#toSource(exchange, content)) }
        const reply = this.#toReply(exchange, answer, content)
        const named = findNamed(this.#api.readError(answer).text, content.to, [from])
        const judged = this.#judge(answer)
        const isDoubted =
          judged === 'refused' && !isAboutRecipient({ stage: 'handed-over', reply, named, isRefused: true })
        return failed(reply, classifyAnswer(isDoubted ? 'doubted' : judged, answer, Date.now()))
      }
      default:
        return exchange satisfies never
    }
  }

  #judge(answer: HttpAnswer) {
    const { code } = this.#api.readError(answer)
    const { kinds } = this.#api
    const kind = Object.hasOwn(kinds, code) ? kinds[code] : undefined
    return kind ?? judgeStatus(answer.status, code !== '')
  }

  #toReply(asked: AskedExchange, answer: HttpAnswer, content: Message['content'] | null) {
    const error = this.#api.readError(answer)
    return toReply(answer, { error, source: this.#toSource(asked, content), nowMs: Date.now() })
  }

  #toSource({ token }: AskedExchange, email: Message['content'] | null): Source {
    const secrets = [...this.#api.secrets, token]
    return email === null ? { kind: 'other', secrets } : { kind: 'reply', email, secrets }
  }

  close(): void {
    this.#stopped.abort()
    this.#agent.destroy()
  }
}

const listSockets = (ofHosts: NodeJS.ReadOnlyDict<Socket[]>): Socket[] =>
  Object.values(ofHosts).flatMap((sockets = []) => sockets.filter(({ destroyed }) => !destroyed))

function failed(reply: Reply, failureClass: FailureClass): Submission {
  return { kind: 'failed', reply, stage: 'handed-over', failureClass }
}

/** There is no token, or no connection. */
function failedToOpen(
  why: string,
  { lasting, retryAfterMs = null }: Pick<FailureClass, 'lasting'> & Partial<FailureClass>,
): Submission {
  const ofRelay = { permanent: false, scope: 'relay', slowDown: null, ambiguous: false } as const
  return { kind: 'failed', reply: noReply(why), stage: 'connect', failureClass: { ...ofRelay, lasting, retryAfterMs } }
}
