/** The SMTP sessions with one relay: they stay open between messages. */
import type { RelayClient } from '../gated-relay.ts'
import type { TokenSource } from '../oauth/token-source.ts'
import { type Clearance, type Message, type Submission, workerStopped } from '../relay.ts'
import { newTokens, type SmtpAddress, withGreetingName } from './connect.ts'
import { failed, SmtpSession } from './smtp-session.ts'

const messagesPerSession = 1000
const idleMs = 20_000

export class SessionPool implements RelayClient {
  readonly name: string
  readonly #address: SmtpAddress
  readonly #tokens: TokenSource | null
  /** With the timers that end them; the one used last comes last. */
  readonly #idle = new Map<SmtpSession, NodeJS.Timeout>()
  readonly #stopped = new AbortController()
  readonly #busy = new Set<SmtpSession>()
  #connecting = 0

  constructor(name: string, address: SmtpAddress) {
    this.name = name
    this.#address = address
    this.#tokens = newTokens(address)
  }

  connections = () => ({
    connecting: this.#connecting,
    open: this.#busy.size + this.#idle.size,
    busy: this.#busy.size,
  })

  async send(message: Message, clearance: Clearance, openMs: number): Promise<Submission> {
    const address = withGreetingName(this.#address, message.from)
    const reused = this.#takeIdle(address.greetingName)
    if (reused !== undefined) {
      const submission = await this.#sendOver(reused, message, clearance)
      if (!wasStale(submission)) return submission
    }
    const session = await this.#open(address, clearance.deadlineMs, openMs)
    return session instanceof SmtpSession ? this.#sendOver(session, message, clearance) : session
  }

  /** A new session, or why there is none. */
  async #open(address: SmtpAddress, deadlineMs: number, withinMs: number): Promise<SmtpSession | Submission> {
    const lifeLeftMs = Math.floor(deadlineMs - performance.now())
    if (this.#stopped.signal.aborted) return workerStopped
    if (lifeLeftMs <= 0) return { kind: 'expired' }
    const budgetMs = Math.min(withinMs, lifeLeftMs)
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(budgetMs)])
    this.#connecting += 1
    const session = await SmtpSession.open(address, signal, this.#tokens).finally(() => {
      this.#connecting -= 1
    })
    if (this.#stopped.signal.aborted) {
      if (session instanceof SmtpSession) session.close()
      return workerStopped
    }
    if (session instanceof SmtpSession) {
      session.onEnd(() => this.#drop(session))
      return session
    }
    return budgetMs === lifeLeftMs && signal.aborted ? { kind: 'expired' } : failed(session, address)
  }

  async #sendOver(session: SmtpSession, message: Message, clearance: Clearance): Promise<Submission> {
    this.#busy.add(session)
    const submission = await session.submit(message, clearance)
    this.#busy.delete(session)
    this.#giveBack(session)
    return submission
  }

  /** A session that greeted the relay with this name. One of another name makes room for a new one. */
  #takeIdle(greetingName: string | null): SmtpSession | undefined {
    const idle = [...this.#idle.keys()]
    const session = idle.findLast((known) => known.greetingName === greetingName)
    if (session !== undefined) this.#drop(session)
    else if (idle[0] !== undefined) this.#retire(idle[0])
    return session
  }

  #giveBack(session: SmtpSession): void {
    if (session.closed) return
    if (session.messages >= messagesPerSession || this.#stopped.signal.aborted) session.quit()
    else {
      const retire = setTimeout(() => this.#retire(session), idleMs)
      this.#idle.set(session, retire)
    }
  }

  #retire(session: SmtpSession): void {
    this.#drop(session)
    session.quit()
  }

  #drop(session: SmtpSession): void {
    clearTimeout(this.#idle.get(session))
    this.#idle.delete(session)
  }

  close(): void {
    this.#stopped.abort()
    for (const session of this.#busy) session.stop()
    for (const session of this.#idle.keys()) this.#retire(session)
  }
}

/** The server ended an idle session, or one with enough messages, before it read this one. */
const wasStale = (submission: Submission): boolean => {
  if (submission.kind !== 'failed' || submission.stage === 'handed-over') return false
  const { code } = submission.reply
  return code === null || (code === 421 && submission.stage === 'sender')
}
