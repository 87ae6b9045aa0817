/** Claiming due mail, in one round trip (`functions/claim.sql`). */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../../../domain/app/app.ts'
import { retryForMs } from '../../../domain/bounds.ts'
import { noReply } from '../../../domain/delivery/reply.ts'
import { type EndedEmail, type LostLease, suspectAfter } from '../../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../../domain/id.ts'
import { openContent } from '../../crypto/sealed-content.ts'
import { AppTurns } from '../../shared/app-turns.ts'
import { type ClaimRow, type Row, toApp, toClaim } from '../../shared/rows.ts'
import { allLeases, type Claim, type Claimed, type ClaimRequest, mayTakeSuspect } from '../../store.ts'
import type { PostgresContext } from '../engine/context.ts'
import { calledFunction, sqlFunction } from './functions.ts'
import type { MissingSessions } from './missing-sessions.ts'
import { appendTrail, finish, type OutcomeCall, recordOutcomes } from './outcome.ts'
import type { WorkerSession } from './worker-session.ts'

/**
 * How often a claim looks for expired, lapsed and due mail, and for missing sessions: under load not every
 * claim does.
 */
const maintainEveryMs = 250

/**
 * From the start of a claim that took several emails, and all there was, to the next one, which will find
 * several again.
 */
const claimEveryMs = 8

type Input = {
  readonly context: PostgresContext
  readonly request: ClaimRequest
  readonly maintain: boolean
  readonly recover: boolean
  readonly after: string
  readonly soughtFrom: string | null
  readonly suspectLast: boolean
  readonly sessionId: number
  /** Sessions whose mail is taken back. */
  readonly missing: readonly number[]
}

const appTurns = sqlFunction('app_turns')
const pickInTurns = sqlFunction('pick_in_turns')
const lostLeaseWait = sqlFunction('lost_lease_wait')
const maintainQueue = sqlFunction('maintain_queue', [appendTrail, lostLeaseWait])
const chooseMail = sqlFunction('choose_mail', [appTurns, pickInTurns])
const missingSessions = sqlFunction('missing_sessions')
const claim = calledFunction<Input>(
  'claim',
  [chooseMail, maintainQueue, missingSessions, finish],
  [
    ['p_self', 'int', ({ context }) => context.self],
    ['p_slot', 'int', ({ context }) => context.slot],
    ['p_offset_ms', 'bigint', ({ context }) => context.clock.offsetMs],
    ['p_maintain', 'boolean', ({ maintain }) => maintain],
    ['p_keys', 'text[]', ({ context }) => context.ring.map(({ id }) => id)],
    ['p_recover', 'boolean', ({ recover }) => recover],
    ['p_session', 'int', ({ sessionId }) => sessionId],
    ['p_missing', 'int[]', ({ missing }) => missing],
    ['p_transport', 'text', ({ request }) => request.transport ?? ''],
    ['p_max', 'int', ({ request }) => request.max],
    ['p_per_app', 'int', ({ request }) => request.perApp],
    ['p_after', 'text', ({ after }) => after],
    ['p_sought_from', 'text', ({ soughtFrom }) => soughtFrom],
    ['p_suspect_last', 'boolean', ({ suspectLast }) => suspectLast],
    ['p_take_suspect', 'boolean', ({ request }) => mayTakeSuspect(request)],
    ['p_leased', 'text[]', ({ request }) => allLeases(request).map(({ emailId }) => emailId)],
    ['p_fences', 'bigint[]', ({ request }) => allLeases(request).map(({ fence }) => fence)],
    ['p_leased_apps', 'text[]', ({ request }) => request.leases.map(({ appId }) => appId)],
  ],
)

export const claimFunctions = [appTurns, pickInTurns, chooseMail, lostLeaseWait, maintainQueue, missingSessions, claim]

type ClaimedRow = Row & ClaimRow & { readonly now_ms: number; readonly sealed: Uint8Array; readonly version: number }
type LastRow = {
  app_id: string
  suspects: boolean
  more: boolean
  ended: EmailId[] | null
  ended_apps: AppId[] | null
  lost: EmailId[] | null
  lost_counts: number[] | null
  missing: number[] | null
  elsewhere: string[] | null
  is_cut: boolean
}

function lostLeases(last: LastRow | undefined): LostLease[] {
  const counts = last?.lost_counts ?? []
  return (last?.lost ?? []).map((emailId, index) => ({ emailId, count: counts[index] ?? 0 }))
}

function expiredEmails(last: LastRow | undefined): EndedEmail[] {
  const apps = last?.ended_apps ?? []
  return (last?.ended ?? []).map((emailId, index) => ({
    emailId,
    appId: apps[index] as AppId,
    state: 'expired',
    reason: null,
  }))
}

/** One worker's claims: where its turns among apps continue, and the apps that it has seen. */
export class Claims {
  readonly #context: PostgresContext
  readonly #missing: MissingSessions
  readonly #session: () => WorkerSession | null
  readonly #apps = new Map<AppId, App>()
  readonly #turns = new AppTurns()
  #suspectLast = false
  #maintainedAtMs = 0
  /** When the last claim began if it took all there was, by `performance.now()`. */
  #tookAllAtMs = Number.NEGATIVE_INFINITY
  #pausedUntilMs = 0

  constructor(context: PostgresContext, missing: MissingSessions, session: () => WorkerSession | null) {
    this.#context = context
    this.#missing = missing
    this.#session = session
  }

  /** Whether the last claim began at `ms` or later, and took all there was. */
  tookAllSince = (ms: number): boolean => this.#tookAllAtMs >= ms

  async claimDue(request: ClaimRequest, deadlineMs: number): Promise<Claimed> {
    const pauseMs = this.#pausedUntilMs - performance.now()
    if (pauseMs > 0) await sleep(pauseMs)
    const beganAtMs = performance.now()
    const session = this.#session()
    const sessionId = (await session?.id()) ?? 0
    const rows = await this.#claim(request, sessionId, deadlineMs).catch((error: unknown) => {
      this.#missing.noteFailure()
      throw error
    })
    const last = rows.pop() as LastRow | undefined
    const claimed = rows as ClaimedRow[]
    const isFruitless = last?.is_cut === true && claimed.length === 0
    const goesOn = this.#turns.note(request.transport, (last?.app_id ?? '') as AppId | '', isFruitless)
    // Without a session there are no notifications.
    const more = last?.more === true || (claimed.length > 0 && sessionId === 0) || goesOn
    const elsewhere = last?.elsewhere ?? []
    const isAll = !more && last?.is_cut !== true && request.leases.length + claimed.length < request.perApp
    this.#tookAllAtMs = isAll && elsewhere.length === 0 ? beganAtMs : Number.NEGATIVE_INFINITY
    this.#pausedUntilMs = isAll && claimed.length > 1 ? beganAtMs + claimEveryMs : 0
    if (last?.missing != null) this.#missing.note(last.missing)
    this.#suspectLast = claimed.some((row) => row.lost_leases >= suspectAfter)
    for (const row of claimed)
      if (this.#apps.get(row.app_id)?.version !== row.version) this.#apps.set(row.app_id, toApp(row))
    const { claims, damaged } = await this.#openAll(claimed, deadlineMs)
    const apps = new Map(claimed.map(({ app_id }) => [app_id, this.#apps.get(app_id) as App]))
    return {
      claims,
      apps,
      areLeasesValid: () => session?.isValid(sessionId) ?? true,
      standby: false,
      deathIsKnown: session === null || sessionId !== 0,
      suspects: last?.suspects ?? false,
      more,
      elsewhere: elsewhere.map((name) => (name === '' ? null : name)),
      lost: lostLeases(last),
      ended: [...expiredEmails(last), ...damaged],
    }
  }

  #claim(request: ClaimRequest, sessionId: number, deadlineMs: number): Promise<Row[]> {
    const context = this.#context
    const nowMs = context.clock.nowMs()
    const maintain = Math.abs(nowMs - this.#maintainedAtMs) >= maintainEveryMs
    if (maintain) this.#maintainedAtMs = nowMs
    const input = {
      context,
      request,
      maintain,
      recover: this.#missing.mayTakeBack,
      ...this.#turns.of(request.transport),
      suspectLast: this.#suspectLast,
      sessionId,
      missing: this.#missing.longMissing(),
    }
    const { text, values } = claim.call(context.schema, input)
    return context.claims.query<Row>(text, values, { deadlineMs })
  }

  /** Mail whose content cannot be opened is not handed out: without its key it waits, damaged it fails. */
  async #openAll(rows: readonly ClaimedRow[], deadlineMs: number): Promise<{ claims: Claim[]; damaged: EndedEmail[] }> {
    const unreadable: (OutcomeCall & { readonly appId: AppId })[] = []
    const claims = rows.flatMap((row) => {
      const opened = openContent(this.#context.ring, row.email_id, row.sealed)
      if (opened.kind === 'content') return [toClaim(row, opened.content, row.now_ms)]
      const common = { relay: null, reply: noReply(opened.why) } as const
      unreadable.push({
        appId: row.app_id,
        lease: { emailId: row.email_id as EmailId, fence: row.fence },
        outcome:
          opened.kind === 'key_missing'
            ? { kind: 'unattempted', ...common, waitMs: retryForMs, missingKey: opened.keyId }
            : { kind: 'failed', ...common, reason: 'unreadable' },
      })
      return []
    })
    if (unreadable.length === 0) return { claims, damaged: [] }
    // If that fails, these emails return when their leases lapse; the other claims are not delayed.
    const recorded = await recordOutcomes(this.#context, unreadable, deadlineMs).catch((): boolean[] => [])
    const damaged = unreadable.flatMap(({ lease, appId, outcome }, n): EndedEmail[] =>
      outcome.kind === 'failed' && recorded[n] === true
        ? [{ emailId: lease.emailId, appId, state: 'failed', reason: 'unreadable' }]
        : [],
    )
    return { claims, damaged }
  }
}
