/**
 * The rules that hold when the queue is empty: each accepted email has ended once, and its record says what
 * the relays saw.
 */

import { supersededAfterMs, trailMax } from '../src/domain/bounds.ts'
import { finalStates } from '../src/domain/delivery/states.ts'
import { dayMs, minuteMs } from '../src/domain/duration.ts'
import type { Known, Ledger } from './ledger.ts'
import { limitedApp, relays } from './plan.ts'
import type { World } from './world.ts'

const ended = new Set<string>(finalStates)
/** A report may change a delivered email to these. */
const reported = new Set(['bounced', 'complained'])
/** Records are kept for 30 days. */
const keptMs = 25 * dayMs
/** An email gets another attempt before more than half of its life is over (`retry-schedule.ts`). */
const calmShare = 0.65
const lifeMinMs = 200_000

type Ending = {
  /** Its app, its recipient and its type. */
  readonly name: string
  readonly state: string
  readonly reason: string | null
  readonly attempts: number
  readonly lost: number
  readonly acceptedAt: number
  readonly expiresAt: number
  readonly trail: readonly { readonly at: number; readonly outcome: string }[]
}

/** Outcomes of an attempt. */
const tries = new Set(['delivered', 'deferred', 'failed'])
/** The last attempt may have ended so. */
const withoutRecord = new Set(['expired', 'cancelled'])
/** Between the ends of two attempts, before they are spread. */
const waitsMs = [5000, 15_000, 45_000, 120_000, 300_000]
const waitMaxMs = 600_000
/** A relay that takes ten minutes to reply, a breaker that is open, or a machine that leaps. */
const lateMaxMs = 675_000
/** Without these: two pauses of a breaker, a connection that hangs, and the leaps between busy times. */
const soonMaxMs = 90_000

export class Accounts {
  readonly #world: World
  readonly #ledger: Ledger
  /** The state of each email when it was seen first. */
  readonly #ends = new Map<string, string>()

  constructor(world: World, ledger: Ledger) {
    this.#world = world
    this.#ledger = ledger
  }

  close(): void {
    const ledger = this.#ledger
    const rows = ledger.all('select * from history')
    const endings = new Map(
      rows.map((row): [string, Ending] => [
        String(row.email_id),
        {
          name: `${row.app_id} ${row.recipient} ${row.type}`,
          state: String(row.state),
          reason: row.reason as string | null,
          attempts: Number(row.attempts),
          lost: Number(row.lost_leases),
          acceptedAt: Number(row.accepted_at),
          expiresAt: Number(row.expires_at),
          trail: JSON.parse(String(row.trail)),
        },
      ]),
    )
    this.#checkSuperseded(endings)
    const old: string[] = []
    for (const [id, known] of ledger.accepted) {
      if (this.#isGone(id, known, endings)) old.push(id)
      else this.#compare(id, known, endings.get(id))
    }
    for (const [id, ending] of endings) this.#compareCopies(id, ending)
    this.#checkSecrets(rows.map(({ trail }) => String(trail)))
    this.#checkUsage()
    ledger.forget(old)
    for (const id of old) this.#ends.delete(id)
    this.#world.note(`accounts ${ledger.accepted.size} ${endings.size}`)
  }

  #isGone = (id: string, { acceptedAtMs, app }: Known, endings: ReadonlyMap<string, Ending>): boolean =>
    this.#ledger.deleted.has(app) ||
    (!endings.has(id) && this.#ends.has(id) && acceptedAtMs < this.#world.nowMs - keptMs)

  #compare(id: string, known: Known, ending: Ending | undefined): unknown {
    const world = this.#world
    if (ending === undefined) return world.fail(`once: ${id} was accepted and has no record`)
    const { state } = ending
    const first = this.#ends.get(id)
    world.require(ended.has(state), () => `once: ${id} is ${state} in the history`)
    world.require(
      first === undefined || first === state || (first === 'delivered' && reported.has(state)),
      () => `once: ${id} was ${first}, and is ${state}`,
    )
    if (first !== undefined) return null
    this.#ends.set(id, state)
    this.#ledger.count(ending.reason === 'superseded' ? 'superseded' : state)
    if (state === 'expired') this.#checkExpired(id, known, ending)
    this.#checkReason(id, known, ending)
    this.#checkTrail(id, known, ending)
    return null
  }

  /** The state of an email is what was done with it. */
  #checkReason(id: string, { askedAtMs, isCalm, to }: Known, { reason, state }: Ending): void {
    const ledger = this.#ledger
    const isRefused = state === 'failed' && reason === 'refused_by_relay'
    const event = `email.${state}`
    const events = [...(ledger.events.get(id) ?? [])]
    const mayBeLost = !isCalm && askedAtMs < ledger.failedAtMs
    const isReported = events.includes(event) || mayBeLost || (state !== 'failed' && state !== 'suppressed')
    const isRefusedByAll = ledger.refusedBy.get(id)?.size === relays
    const rules: readonly (readonly [holds: boolean, rule: string, how: string])[] = [
      [!isRefused || to.startsWith('gone') || isRefusedByAll, 'record', 'failed as refused, and not by all relays'],
      [state !== 'delivered' || ledger.copies.has(id), 'record', 'is delivered, and no relay has it'],
      [
        state !== 'suppressed' || ledger.mayBeSuppressed.has(to) || to.startsWith('gone'),
        'suppressed',
        'was held back, and its recipient is not suppressed',
      ],
      [
        state === 'cancelled' || !ledger.cancelled.has(id) || ledger.copies.has(id),
        'cancelled',
        `was cancelled, and is ${state}`,
      ],
      [isReported, 'webhooks', `is ${state}, and its app got no webhook`],
      [
        events.every((each) => each === event || reported.has(each.slice(6))),
        'webhooks',
        `is ${state}, and its app got ${events}`,
      ],
    ]
    for (const [holds, rule, how] of rules) this.#world.require(holds, () => `${rule}: ${id} ${how}`)
  }

  /** The attempts of an email, with the waits of `docs/delivery-states.md` between them. */
  #checkTrail(id: string, { askedAtMs }: Known, { acceptedAt, attempts, expiresAt, lost, state, trail }: Ending): void {
    const tried = trail.filter(({ outcome }) => tries.has(outcome))
    this.#world.require(
      tried.length <= attempts + lost,
      () => `record: ${id} has ${tried.length} attempts on record, and ${attempts} are counted`,
    )
    this.#world.require(
      attempts <= tried.length + (withoutRecord.has(state) ? 1 : 0) || trail.length >= trailMax,
      () => `record: ${id} has ${tried.length} attempts on record, and ${attempts} are counted`,
    )
    const isWell = askedAtMs > this.#ledger.failedAtMs
    this.#world.require(lost === 0 || !isWell, () => `lease: ${id} lost a lease, and no process had died`)
    if (lost > 0 || this.#ledger.hasClockMoved) return
    const maxMs = isWell && this.#ledger.isPrompt ? soonMaxMs : lateMaxMs
    let [before, waitMs] = [acceptedAt, 0]
    const last = state === 'expired' ? [{ at: expiresAt }] : []
    for (const [n, { at }] of [...tried, ...last].entries()) {
      const wait = Math.min(1.2 * waitMs, Math.max((expiresAt - before) / 2, minuteMs))
      const latest = Math.max(before + wait, this.#ledger.calmSince) + maxMs
      this.#world.require(at <= latest, () => `retries: ${id} was not tried within ${at - before} ms`)
      before = at
      waitMs = waitsMs[n] ?? waitMaxMs
    }
  }

  #checkExpired(id: string, known: Known, { acceptedAt, expiresAt, lost }: Ending): void {
    const world = this.#world
    world.require(!known.isCalm, () => `delivery: ${id} expired, and nothing was wrong while it waited`)
    const lifeMs = expiresAt - acceptedAt
    const calmMs = expiresAt - Math.max(acceptedAt, this.#ledger.calmSince)
    const isLate = lost === 0 && !this.#ledger.wasWritten(id) && lifeMs >= lifeMinMs && calmMs > calmShare * lifeMs
    world.require(
      !isLate,
      () => `delivery: ${id} expired, and nothing was wrong in the last ${(calmMs / 1000).toFixed(0)} s`,
    )
  }

  /** A newer email of the same name was accepted, which lives as long. */
  #checkSuperseded(endings: ReadonlyMap<string, Ending>): void {
    const byName = Map.groupBy(endings.values(), ({ name }) => name)
    for (const [id, { acceptedAt, expiresAt, name, reason }] of endings) {
      const isNewer = (other: Ending) =>
        other.acceptedAt >= acceptedAt + supersededAfterMs &&
        other.expiresAt >= expiresAt &&
        other.state !== 'suppressed'
      const isRight = reason !== 'superseded' || byName.get(name)?.some(isNewer) === true
      this.#world.require(isRight, () => `superseded: ${id} was replaced by no other email`)
    }
  }

  #compareCopies(id: string, { attempts, lost, state }: Ending): void {
    const copies = this.#ledger.copies.get(id) ?? []
    this.#world.require(
      copies.length <= attempts + lost,
      () => `copies: relays have ${id} ${copies.length} times, after ${attempts} attempts and ${lost} lost leases`,
    )
    const isAnswered = copies.some(({ answeredAtMs, owner }) => answeredAtMs !== null && owner.isAlive)
    const isWrong = isAnswered && state !== 'delivered' && !reported.has(state) && lost === 0
    this.#world.require(!isWrong, () => `record: a relay has ${id}, and it is ${state}`)
  }

  #checkSecrets(trails: readonly string[]): void {
    const open = trails.find((trail) => /secret|@\w+\.test/.test(trail))
    this.#world.require(open === undefined, () => `sealed: a record says ${open}`)
    const webhooks = "webhook_message where due_at is null and sealed is not null and result like '2%'"
    const kept = this.#ledger.number(`select count(*) as n from ${webhooks}`)
    this.#world.require(kept === 0, () => `sealed: ${kept} webhooks were received, and keep their recipient`)
  }

  /** The usage of the last days is what the records say. */
  #checkUsage(): void {
    const ledger = this.#ledger
    const since = Math.floor(this.#world.wallMs() / dayMs) - 20
    const counted = `select app_id, accepted_at / ${dayMs} as day, count(*) as n from history
      where accepted_at >= ${since * dayMs} group by 1, 2`
    const rows = new Map(ledger.all(counted).map((row) => [`${row.app_id} ${row.day}`, Number(row.n)]))
    const usage = ledger.all(`select a.slug, app_id, day, count as n from usage_day join app a using (app_id)
      where event = 'accepted' and day >= ${since} and a.status <> 'deleted'`)
    for (const { app_id: app, day, n, slug } of usage) {
      const found = rows.get(`${app} ${day}`) ?? 0
      this.#world.require(
        found === n,
        () => `counts: ${n} emails of ${slug} were counted on day ${day}; ${found} are recorded`,
      )
      const isOver = slug === 'limited' && Number(n) > limitedApp.daily
      this.#world.require(!isOver, () => `limits: ${n} emails were accepted on day ${day}`)
    }
  }
}
