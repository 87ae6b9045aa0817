/** Claiming due mail, in one round trip (`functions/claim.sql`). */
import type { App } from '../../domain/app/app.ts'
import { noReply } from '../../domain/delivery/smtp-reply.ts'
import { type EndedCount, suspectAfter } from '../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { unreadableWaitMs } from '../shared/bounds.ts'
import { type ClaimRow, openContent, type Row, toApp, toClaim } from '../shared/records.ts'
import type { Claim, Claimed, ClaimRequest } from '../store.ts'
import type { PostgresContext } from './context.ts'
import { calledFunction, sqlFunction } from './functions.ts'
import { appendTrail, finish, type OutcomeCall, recordOutcomes } from './outcome.ts'

/** How often a claim looks for expired, lapsed and due mail: under load not every claim does. */
const maintainEveryMs = 250
/** After an outage, lapsed leases are left alone for this long: their workers may hold outcomes to write. */
const recoverAfterMs = 5000

type Input = {
  readonly context: PostgresContext
  readonly request: ClaimRequest
  readonly maintain: boolean
  readonly recover: boolean
  readonly after: string
  readonly suspectLast: boolean
}

const appTurns = sqlFunction('app_turns')
const pickInTurns = sqlFunction('pick_in_turns')
const maintainQueue = sqlFunction('maintain_queue', [appendTrail])
const lease = sqlFunction('lease')
const claim = calledFunction<Input>(
  'claim',
  [appTurns, pickInTurns, maintainQueue, lease, finish],
  [
    ['p_self', 'int', ({ context }) => context.self],
    ['p_slot', 'int', ({ context }) => context.slot],
    ['p_offset_ms', 'bigint', ({ context }) => context.clock.offsetMs],
    ['p_maintain', 'boolean', ({ maintain }) => maintain],
    ['p_recover', 'boolean', ({ recover }) => recover],
    ['p_max', 'int', ({ request }) => request.max],
    ['p_per_app', 'int', ({ request }) => request.perApp],
    ['p_after', 'text', ({ after }) => after],
    ['p_suspect_last', 'boolean', ({ suspectLast }) => suspectLast],
    ['p_leased', 'text[]', ({ request }) => request.leases.map(({ emailId }) => emailId)],
    ['p_fences', 'bigint[]', ({ request }) => request.leases.map(({ fence }) => fence)],
    ['p_leased_apps', 'text[]', ({ request }) => request.leases.map(({ appId }) => appId)],
  ],
)

export const claimFunctions = [appTurns, pickInTurns, maintainQueue, lease, claim]

type ClaimedRow = Row &
  ClaimRow & { readonly now_ms: number; readonly body: Uint8Array | null; readonly version: number }
type LastRow = { app_id: string; suspects: boolean; expired_count: number; dead_count: number }

/** One worker's claims: where its turns among apps continue, and the apps that it has seen. */
export class Claims {
  readonly #context: PostgresContext
  readonly #apps = new Map<AppId, App>()
  #after = ''
  #suspectLast = false
  #maintainedAtMs = 0
  #recoverFromMs = 0

  constructor(context: PostgresContext) {
    this.#context = context
  }

  async claimDue(request: ClaimRequest, deadlineMs: number): Promise<Claimed> {
    const rows = await this.#claim(request, deadlineMs).catch((error: unknown) => {
      this.#recoverFromMs = performance.now() + recoverAfterMs
      throw error
    })
    const last = rows.pop() as LastRow | undefined
    const claimed = rows as ClaimedRow[]
    this.#after = last?.app_id ?? ''
    this.#suspectLast = claimed.some((row) => row.lost_leases >= suspectAfter)
    for (const row of claimed)
      if (this.#apps.get(row.app_id)?.version !== row.version) this.#apps.set(row.app_id, toApp(row))
    const { claims, damaged } = await this.#openAll(claimed, deadlineMs)
    const apps = new Map(claimed.map(({ app_id }) => [app_id, this.#apps.get(app_id) as App]))
    const ended: EndedCount[] = [
      { state: 'expired', reason: null, count: last?.expired_count ?? 0 },
      { state: 'failed', reason: 'workers_lost', count: last?.dead_count ?? 0 },
      { state: 'failed', reason: 'unreadable', count: damaged },
    ]
    return { claims, apps, suspects: last?.suspects ?? false, ended: ended.filter(({ count }) => count > 0) }
  }

  #claim(request: ClaimRequest, deadlineMs: number): Promise<Row[]> {
    const context = this.#context
    const nowMs = context.clock.nowMs()
    const maintain = Math.abs(nowMs - this.#maintainedAtMs) >= maintainEveryMs
    if (maintain) this.#maintainedAtMs = nowMs
    const recover = performance.now() >= this.#recoverFromMs
    const [after, suspectLast] = [this.#after, this.#suspectLast]
    const input = { context, request, maintain, recover, after, suspectLast }
    const { text, values } = claim.call(context.schema, input)
    return context.claims.query<Row>(text, values, { deadlineMs })
  }

  /** Mail whose content cannot be opened is not handed out: without its key it waits, damaged it fails. */
  async #openAll(
    rows: readonly ClaimedRow[],
    deadlineMs: number,
  ): Promise<{ claims: Claim[]; damaged: number }> {
    const unreadable: OutcomeCall[] = []
    const claims = rows.flatMap((row) => {
      const opened = openContent(this.#context.ring, row.email_id, row.body)
      if (opened.kind === 'content') return [toClaim(row, opened.content, row.now_ms)]
      const { kind, why } = opened
      const common = { relay: null, reply: noReply(why) } as const
      unreadable.push({
        lease: { emailId: row.email_id as EmailId, fence: row.fence },
        outcome:
          kind === 'key_missing'
            ? { kind: 'unattempted', ...common, waitMs: unreadableWaitMs }
            : { kind: 'failed', ...common, reason: 'unreadable' },
      })
      return []
    })
    if (unreadable.length === 0) return { claims, damaged: 0 }
    // If that fails, these emails return when their leases lapse; the other claims are not delayed.
    const recorded = await recordOutcomes(this.#context, unreadable, deadlineMs).catch((): boolean[] => [])
    const damaged = unreadable.filter(({ outcome }, n) => outcome.kind === 'failed' && recorded[n] === true)
    return { claims, damaged: damaged.length }
  }
}
