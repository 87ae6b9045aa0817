/** Counts events for charts, and keeps refusals, until they are written to the store. */

import type { Reply } from '../domain/delivery/reply.ts'
import type { FailureReason } from '../domain/delivery/states.ts'
import { refusesMailbox } from '../domain/delivery/suppression.ts'
import { minuteMs } from '../domain/duration.ts'
import type { AppId, KeyId } from '../domain/id.ts'
import { type ActivityEvent, type ActivityRow, tookBucket } from '../domain/operator/activity.ts'
import { type RefusedRequest, refusalsMax } from '../domain/request/refused-request.ts'
import type { AttemptRecorded, PosternEvent, ReportReceived, RequestAnswered, RequestRefused } from './events.ts'

const minutesOfHour = 60
/**
 * Different replies of relays between two writes that are counted by themselves; further ones are
 * `reply:other`.
 */
const repliesMax = 40
/** Different events of an app between two writes; those of more keys are not counted by key. */
const eventsMax = 200
/** Faults of one request that are kept. */
const issuesMax = 10

type Spans = Readonly<Record<ActivityRow['span'], Map<ActivityEvent, Counter>>>
type Counter = { -readonly [Name in keyof ActivityRow]: ActivityRow[Name] }

export class ActivityCounter {
  readonly #nowMs: () => number
  /** The current minute and hour of each app and event. */
  #counts = new Map<AppId | null, Spans>()
  /** Those that ended since the last call. */
  #earlier: Counter[] = []
  #refusals = new Map<AppId, RefusedRequest[]>()
  readonly #replies = new Set<string>()

  /** @param nowMs the store's clock, in milliseconds since 1970 */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  observe(event: PosternEvent): void {
    switch (event.kind) {
      case 'request_answered':
        this.#addRequest(event)
        return
      case 'attempt_recorded':
        this.#addAttempt(event)
        return
      case 'emails_ended':
        // The reason of a failed email is one of failure.
        for (const { appId, state, reason } of event.ended)
          this.#add(appId, state === 'failed' ? `failed:${reason as FailureReason}` : state)
        return
      case 'report_received':
        this.#addReports(event)
        return
      case 'leases_taken_back':
        this.#add(null, 'lost', event.lost.length)
        return
      default:
    }
  }

  /** Nothing was counted or kept since the last call. */
  get isEmpty(): boolean {
    return this.#counts.size === 0 && this.#refusals.size === 0
  }

  /** The counts since the last call. */
  takeCounts(): ActivityRow[] {
    const current = [...this.#counts.values()].flatMap((spans) => [...spans[1].values(), ...spans[60].values()])
    const rows = [...this.#earlier, ...current]
    this.#counts = new Map()
    this.#earlier = []
    this.#replies.clear()
    return rows
  }

  /** The refusals since the last call, of each app the newest. */
  takeRefusals(): RefusedRequest[] {
    const refusals = [...this.#refusals.values()].flat()
    this.#refusals = new Map()
    return refusals
  }

  #addRequest(event: RequestAnswered): void {
    this.#add(event.appId, event.status === 202 ? event.code : `refused:${event.code}`)
    if (event.code === 'accepted' && event.appId !== null && event.keyId !== null)
      this.#addKey(event.appId, event.keyId)
    if (event.status !== 202) this.keepRefusal(event)
  }

  /** Also of a test key, whose side of the app has refusals of its own. */
  keepRefusal({ requestId, appId, keyId, code, issues, origin, recipient }: RequestRefused): void {
    if (appId === null || keyId === null) return
    const kept = this.#refusals.get(appId) ?? []
    if (kept.length >= refusalsMax) kept.shift()
    kept.push({
      requestId,
      at: this.#nowMs(),
      app: appId,
      key: keyId,
      code,
      issues: issues.slice(0, issuesMax),
      origin,
      recipient,
    })
    this.#refusals.set(appId, kept)
  }

  #addAttempt({ appId, outcome, sinceAcceptedMs }: AttemptRecorded): void {
    if (outcome.kind === 'unattempted' || outcome.kind === 'simulated') return
    if (refusesMailbox(outcome)) this.#add(appId, 'gone')
    this.#add(appId, outcome.kind === 'failed' ? `failed:${outcome.reason}` : outcome.kind)
    if ('relay' in outcome && outcome.relay !== null && outcome.relay !== undefined)
      this.#addToService(`${outcome.kind}_by:${outcome.relay}`)
    if (outcome.kind === 'delivered') this.#add(appId, tookBucket(sinceAcceptedMs))
    if ('reply' in outcome) this.#add(appId, this.#replyEvent(outcome.reply))
  }

  #addReports({ appId, cause, finding, isGone, result }: ReportReceived): void {
    if (result !== 'recorded') return
    if (isGone) this.#add(appId, 'gone')
    if (finding === 'bounced' && cause !== null) this.#add(appId, `bounced:${cause}`)
    if (finding === 'complained') this.#add(appId, finding)
  }

  #replyEvent({ code, enhanced }: Reply): ActivityEvent {
    const name = code === null ? 'none' : [code, enhanced].filter((part) => part !== null).join(' ')
    if (!this.#replies.has(name) && this.#replies.size >= repliesMax) return 'reply:other'
    this.#replies.add(name)
    return `reply:${name}`
  }

  /** By the hour. */
  #addKey(app: AppId, key: KeyId): void {
    const spans = this.#find(app)
    const event: ActivityEvent = `key:${key}`
    if (spans[60].size >= eventsMax && !spans[60].has(event)) return
    const minute = Math.floor(this.#nowMs() / minuteMs)
    this.#addTo(spans, { app, span: 60, minute: minute - (minute % minutesOfHour), event, count: 1 })
  }

  #addToService(event: ActivityEvent, count = 1): void {
    this.#addTo(this.#find(null), { app: null, span: 1, minute: Math.floor(this.#nowMs() / minuteMs), event, count })
  }

  /** For the service by the minute, for the app by the hour and, except for details, by the minute. */
  #add(app: AppId | null, event: ActivityEvent, count = 1): void {
    const minute = Math.floor(this.#nowMs() / minuteMs)
    this.#addToService(event, count)
    if (app === null) return
    const spans = this.#find(app)
    this.#addTo(spans, { app, span: 60, minute: minute - (minute % minutesOfHour), event, count })
    if (!event.startsWith('took:') && !event.startsWith('reply:'))
      this.#addTo(spans, { app, span: 1, minute, event, count })
  }

  #find(app: AppId | null): Spans {
    const known = this.#counts.get(app)
    if (known !== undefined) return known
    const made: Spans = { 1: new Map(), 60: new Map() }
    this.#counts.set(app, made)
    return made
  }

  #addTo(spans: Spans, row: Counter): void {
    const counts = spans[row.span]
    const known = counts.get(row.event)
    if (known?.minute === row.minute) {
      known.count += row.count
      return
    }
    if (known !== undefined) this.#earlier.push(known)
    counts.set(row.event, row)
  }
}
