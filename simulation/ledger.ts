/**
 * The rules that hold while mail flows. The ledger receives the answers to callers and the mail of relays,
 * and reads the database on a connection of its own. `accounts.ts` compares the records when the queue is
 * empty.
 */
import { DatabaseSync } from 'node:sqlite'
import { dayMs, hourMs } from '../src/domain/duration.ts'
import type { EmailType } from '../src/domain/request/email-kinds.ts'
import type { AcceptAnswer } from '../src/intake/accept-email.ts'
import { RecipientLimits } from './limits.ts'
import { findDifference } from './message.ts'
import type { Link } from './network.ts'
import { limitedApp } from './plan.ts'
import type { Random } from './random.ts'
import type { Copy } from './relay.ts'
import type { Owner, World } from './world.ts'

/** A request of a caller. */
export type Asked = {
  readonly app: string
  readonly to: string
  readonly type: EmailType
  /** The token of its link. */
  readonly token: string
  readonly locale: string | null
  /** Null for one that nobody repeats. */
  readonly idempotencyKey: string | null
  readonly key: string
  /** On the wall clock. */
  readonly expiresAt: number
  /** Whether another body was sent with the same key. */
  readonly isReused: boolean
}

/** An email that was answered with 202. `isCalm`: nothing was wrong from before it was accepted until now. */
export type Known = Asked & {
  readonly askedAtMs: number
  readonly acceptedAtMs: number
  isCalm: boolean
}

export type Row = Readonly<Record<string, string | number | null>>

/** A link that lives for less is refused. */
const lifeMinMs = 15_000
/** Emails to one recipient in an hour. */
const perHour = ({ app }: Asked): number => (app === 'limited' ? limitedApp.recipientPerHour : 10)
/** A quiet app waits for no longer, in calm times. */
const quietMaxMs = 1000
/** So long after the last fault, its effects are over: a lease has ended, and the breakers are closed. */
const calmAfterMs = 70_000
/**
 * Mail that a worker had claimed before an app was stopped has been sent or given back by then. An idle
 * connection that has died is noticed after 40 s, and then the email is sent on another one.
 */
const stoppedAfterMs = 70_000

export class Ledger {
  readonly #world: World
  readonly #path: string
  #database: DatabaseSync | null = null
  /** By id. */
  readonly accepted = new Map<string, Known>()
  readonly copies = new Map<string, Copy[]>()
  /** Emails of apps that were deleted, whose records go. */
  readonly deleted = new Set<string>()
  readonly counts: Record<string, number> = { accepted: 0, refused: 0, again: 0, unanswered: 0 }
  /** By email: the relays that have refused it for good. */
  readonly refusedBy = new Map<string, Set<string>>()
  /** When a process, a clock or the disk failed last, or had failed until then. */
  failedAtMs = Number.NEGATIVE_INFINITY
  /** Whether no relay has let a process wait since the queue was empty. */
  isPrompt = true
  /** How many faults last now. */
  faultsActive = 0
  /** Since when nothing has been wrong, and since when every process had its time, on the monotonic clock. */
  calmSinceMs = 0
  /** The same on the wall clock. */
  calmSince = 0
  #timelySinceMs = 0
  /** Limits count on the wall clock. */
  #clockMovedAtMs = Number.NEGATIVE_INFINITY
  readonly #byKey = new Map<string, string>()
  /** Emails to recipients that are asked for once. */
  readonly #alone = new Map<string, string>()
  readonly #waiting = new Set<Known>()
  /** By email: where its bytes were written last. */
  readonly #written = new Map<string, Link>()
  /** Keys that were revoked and apps that were stopped, and since when callers could know. */
  readonly #revoked = new Map<string, number>()
  readonly #stopped = new Map<string, number>()
  readonly cancelled = new Set<string>()
  /** Recipients that an operator has suppressed: since when and until when on the wall clock. */
  readonly #suppressed = new Map<string, { sinceMs: number; until: number }>()
  /** Recipients that may be suppressed: an operator has asked for it, or a report was read. */
  readonly mayBeSuppressed = new Set<string>()
  /** By email: the events of its webhooks. */
  readonly events = new Map<string, Set<string>>()
  readonly #recent: Copy[] = []
  readonly #limits = new RecipientLimits()

  constructor(world: World, path: string) {
    this.#world = world
    this.#path = path
  }

  /** Opens the database on its first use, which must not be in a process. */
  all(text: string, ...values: (string | number)[]): Row[] {
    this.#database ??= new DatabaseSync(this.#path, { readOnly: true })
    return this.#database.prepare(text).all(...values) as Row[]
  }
  close = (): void => this.#database?.close()
  number = (text: string): number => Number(this.all(text)[0]?.n ?? 0)

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1
  }

  /** Something is wrong. `time`: a process stands still, or a clock is set. */
  disturb({ time = false, clock = false } = {}): void {
    const { nowMs } = this.#world
    this.calmSinceMs = nowMs
    this.calmSince = this.#world.wallMs()
    if (time) this.#timelySinceMs = nowMs
    if (clock) this.#clockMovedAtMs = nowMs
    for (const known of this.#waiting) known.isCalm = false
    this.#waiting.clear()
  }

  /** Within the last two hours, in which limits count. */
  get hasClockMoved(): boolean {
    return this.#clockMovedAtMs >= this.#world.nowMs - 2 * hourMs
  }

  get isCalm(): boolean {
    return this.faultsActive === 0 && this.#world.nowMs - this.calmSinceMs > calmAfterMs
  }

  revoked = (key: string): unknown => this.#revoked.set(key, this.#world.nowMs)
  /** An operator was answered that it is stopped, or begins to start it. */
  stopped = (slug: string, isStopped: boolean): unknown =>
    isStopped ? this.#stopped.set(slug, this.#world.nowMs) : this.#stopped.delete(slug)
  suppressed = (to: string, days: number): unknown =>
    this.#suppressed.set(to, { sinceMs: this.#world.nowMs, until: this.#world.wallMs() + days * dayMs })
  /** The receiver of webhooks has one. */
  receivedWebhook(body: string): void {
    const { data, type } = JSON.parse(body) as { type: string; data: { emailId?: string } }
    this.#world.require(!body.includes('secret'), () => `sealed: a webhook says ${body}`)
    const id = data.emailId ?? ''
    this.events.set(id, (this.events.get(id) ?? new Set()).add(type))
  }
  refused = (id: string, relay: string): unknown =>
    this.refusedBy.set(id, (this.refusedBy.get(id) ?? new Set()).add(relay))
  /** Whether a request was accepted whose key is still remembered. */
  isRemembered = ({ idempotencyKey }: Asked): boolean => this.#byKey.has(idempotencyKey ?? '')
  pickCopy = (random: Random): Copy | null => (this.#recent.length === 0 ? null : random.pick(this.#recent))
  /** An email that is being sent, or one that waits. */
  pickQueued(random: Random, { isSending }: { isSending: boolean }): string | null {
    const state = isSending ? "state = 'sending'" : "state <> 'sending'"
    const rows = this.all(`select email_id from queue where ${state} order by email_id`)
    return rows.length === 0 ? null : String(random.pick(rows).email_id)
  }

  /** A caller sends a request. */
  asked = ({ to }: Asked): void => this.#limits.asked(to, this.#world.nowMs)

  /** @param askedAtMs when the request was sent */
  answered(asked: Asked, answer: AcceptAnswer, askedAtMs: number): unknown {
    const world = this.#world
    const name = asked.idempotencyKey ?? asked.to
    if ('rejection' in answer) {
      this.count('refused')
      world.note(`answer ${name} ${answer.rejection.code}`)
      this.#checkLimit(asked, answer.rejection.code, askedAtMs)
      return this.#refused(asked, answer.rejection.code, askedAtMs)
    }
    const { emailId, replayed } = answer
    world.note(`answer ${name} 202 ${emailId}${replayed ? ' replayed' : ''}`)
    this.#checkAccess(asked, emailId, askedAtMs)
    this.#checkKey(asked, emailId)
    this.#checkLimit(asked, replayed ? 'repeated' : 'accepted', askedAtMs)
    if (this.accepted.has(emailId)) return null
    this.count('accepted')
    const known: Known = {
      ...asked,
      // Nobody knows which request was accepted.
      askedAtMs: replayed ? Number.NEGATIVE_INFINITY : askedAtMs,
      acceptedAtMs: world.nowMs,
      isCalm: this.isCalm,
    }
    this.accepted.set(emailId, known)
    this.#waiting.add(known)
    for (const copy of this.copies.get(emailId) ?? []) this.#checkMessage(emailId, copy)
    const isThere = this.#find(emailId).length === 1 || this.deleted.has(asked.app)
    return world.require(isThere, () => `durable: ${emailId} was answered with 202 and is nowhere`)
  }

  #refused(asked: Asked, code: string, askedAtMs: number): void {
    const { app, expiresAt, idempotencyKey, isReused, key } = asked
    const isExplained =
      isReused ||
      (app === 'limited' && /_limited$|_limit_reached$/.test(code)) ||
      code === 'recipient_rate_limited' || // has a rule of its own
      (code === 'invalid_body' && expiresAt < this.#world.wallMs() + lifeMinMs) ||
      this.#revoked.has(key) ||
      this.#stopped.has(app)
    const isCalm = this.isCalm && askedAtMs > this.calmSinceMs
    this.#world.require(isExplained || !isCalm, () => `answers: ${idempotencyKey} was answered ${code}`)
    const isRepetition = idempotencyKey !== null && this.#byKey.has(idempotencyKey) && !isReused
    const isOverdue = code === 'invalid_body' || code === 'recipient_rate_limited' || code === 'daily_limit_reached'
    this.#world.require(
      !(isRepetition && isOverdue),
      () => `idempotency: ${idempotencyKey} was accepted, and answered ${code} when it was repeated`,
    )
  }

  #checkLimit(asked: Asked, answer: string, askedAtMs: number): void {
    const { nowMs } = this.#world
    const limit = { to: asked.to, perHour: perHour(asked) }
    const isRight = this.#limits.answered(limit, { answer, askedAtMs, nowMs })
    this.#world.require(isRight || this.hasClockMoved, () => `limits: ${asked.to} was answered ${answer}`)
  }

  #checkAccess({ app, key }: Asked, id: string, askedAtMs: number): void {
    const isLate = (since: number | undefined) => since !== undefined && askedAtMs > since
    this.#world.require(!isLate(this.#revoked.get(key)), () => `access: ${id} was accepted after its key was revoked`)
    this.#world.require(!isLate(this.#stopped.get(app)), () => `access: ${id} was accepted after its app was stopped`)
  }

  #checkKey({ idempotencyKey, isReused, to }: Asked, id: string): void {
    if (idempotencyKey === null) return void this.#alone.set(to, id)
    const known = this.#byKey.get(idempotencyKey)
    // The first request was lost, or waits in a process that stands still; it is refused when it gets there.
    if (known === undefined && isReused) return
    this.#world.require(
      known === undefined || (known === id && !isReused),
      () => `idempotency: ${idempotencyKey} is ${known}, and was answered with ${id}`,
    )
    this.#byKey.set(idempotencyKey, id)
  }

  #find = (id: string): Row[] => [
    ...this.all('select state, lease_until, expires_at from queue where email_id = ?', id),
    ...this.all('select state, 0 as lease_until, expires_at from history where email_id = ?', id),
  ]

  /** A process writes the bytes of a message. */
  handedOver(id: string, owner: Owner, link: Link): void {
    const world = this.#world
    world.note(`${owner.name} writes ${id}`)
    const [row] = this.#find(id)
    const wallMs = world.wallMs()
    const rules: readonly (readonly [holds: boolean, rule: string, how: string])[] = [
      [row !== undefined, 'lease', 'which is nowhere'],
      [!this.cancelled.has(id), 'cancelled', 'although it was cancelled'],
      [Number(row?.expires_at) > wallMs, 'expiry', 'after its link has expired'],
      [row?.state === 'sending', 'lease', `which is ${row?.state}`],
      [Number(row?.lease_until) > wallMs, 'lease', 'without a lease'],
      [!this.#isBeingSent(id, link), 'lease', 'while it is being sent'],
      [!this.#isKnownToBeSent(id), 'copies', 'after a relay has said that it has it'],
      [!this.#isStopped(id), 'access', 'of an app that was stopped'],
    ]
    for (const [holds, rule, how] of rules) world.require(holds, () => `${rule}: ${owner.name} sends ${id} ${how}`)
    this.#written.set(id, link)
  }

  #isBeingSent(id: string, link: Link): boolean {
    const before = this.#written.get(id)
    return before !== undefined && before !== link && before.isOpen && before.owner.isAlive
  }

  #isKnownToBeSent(id: string): boolean {
    const isKnown = ({ answeredAtMs, owner }: Copy) =>
      answeredAtMs !== null && owner.isAlive && answeredAtMs > this.#timelySinceMs
    return this.copies.get(id)?.some(isKnown) ?? false
  }

  #isStopped(id: string): boolean {
    const since = this.#stopped.get(this.accepted.get(id)?.app ?? '')
    return since !== undefined && this.#world.nowMs - Math.max(since, this.#timelySinceMs) > stoppedAfterMs
  }

  /** Whether its bytes were written: the worker may have waited for the reply until the link expired. */
  wasWritten = (id: string): boolean => this.#written.has(id)

  /** A relay has a copy. */
  copied(id: string, copy: Copy): void {
    const world = this.#world
    world.note(`${copy.relay} accepts ${id}`)
    const before = this.copies.get(id) ?? []
    if (before.length > 0) this.count('again')
    this.copies.set(id, [...before, copy])
    this.#recent.push(copy)
    if (this.#recent.length > 50) this.#recent.shift()
    if (copy.received.recipient.startsWith('alone')) {
      const first = this.#alone.get(copy.received.recipient) ?? id
      world.require(first === id, () => `once: one request made ${first} and ${id}`)
      this.#alone.set(copy.received.recipient, id)
    }
    this.#checkMessage(id, copy)
    const known = this.accepted.get(id)
    if (known !== undefined) this.#checkSuppressed(id, known)
    if (known === undefined || !this.#waiting.delete(known)) return
    const waitedMs = world.nowMs - known.acceptedAtMs
    const isLate = known.app === 'quiet' && known.isCalm && waitedMs > quietMaxMs
    world.require(!isLate, () => `fairness: ${id} of a quiet app waited for ${waitedMs.toFixed(0)} ms`)
  }

  #checkSuppressed(id: string, { askedAtMs, to }: Known): void {
    const suppression = this.#suppressed.get(to)
    const isSent =
      suppression !== undefined &&
      askedAtMs > Math.max(suppression.sinceMs, this.#clockMovedAtMs) &&
      this.#world.wallMs() < suppression.until
    this.#world.require(!isSent, () => `suppressed: ${id} was sent to ${to}`)
  }

  /** Its answer may come after its first copy. */
  #checkMessage(id: string, { isWhole, received, relay }: Copy): void {
    const known = this.accepted.get(id)
    const difference = known === undefined || !isWhole ? null : findDifference(received, known)
    this.#world.require(difference === null, () => `content: ${relay} has ${id}, and ${difference}`)
  }

  /** After each commit of a writer. */
  committed(): void {
    const depth = this.number('select count as n from queue_depth')
    const rows = this.number('select count(*) as n from queue')
    this.#world.require(depth === rows, () => `counts: the depth is ${depth}, and the queue has ${rows} emails`)
  }

  get depth(): number {
    return this.number('select count(*) as n from queue')
  }

  /** When the next queued email is due or expires, on the wall clock; null if one is due or being sent. */
  nextDueAt(): number | null {
    const busy = this.number("select count(*) as n from queue where state <> 'deferred'")
    return busy > 0 ? null : this.number('select min(min(due_at, expires_at)) as n from queue')
  }

  webhooksWait = (): boolean => this.number('select count(*) as n from webhook_message where due_at is not null') > 0

  /** The accounts are closed: what is over is forgotten. `old`: emails whose records are gone. */
  forget(old: readonly string[]): void {
    for (const id of old) {
      this.#byKey.delete(this.accepted.get(id)?.idempotencyKey ?? '')
      this.accepted.delete(id)
    }
    this.copies.clear()
    this.refusedBy.clear()
    this.#waiting.clear()
    this.#written.clear()
    this.events.clear()
    this.#alone.clear()
    this.#limits.forget(this.#world.nowMs - 2 * hourMs)
  }
}
