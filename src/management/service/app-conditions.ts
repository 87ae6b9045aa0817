/**
 * Conditions of the mail and requests of an app, found in its counts: of the last minutes, or of the hours
 * before. A condition is over when minutes have passed without its events.
 */

import type { App } from '../../domain/app/app.ts'
import { latelyMinutes, overMinutes } from '../../domain/bounds.ts'
import { formatCount, nameAll, sumCounts } from '../../domain/counts.ts'
import type { AppId } from '../../domain/id.ts'
import type { ActivityEvent } from '../../domain/operator/activity.ts'
import type { RefusalCode } from '../../domain/request/rejection.ts'
import { adviseOn } from '../../services/advice.ts'
import type { ActivityCounts } from '../activity.ts'
import { failedShare, type UsualReply } from './condition.ts'

export const appConditionKinds = ['mail_failed', 'mail_deferred', 'requests_refused'] as const
export type AppConditionKind = (typeof appConditionKinds)[number]

export type Counts = Pick<ActivityCounts, 'accepted' | 'refused' | 'delivered' | 'deferred' | 'failed'>

/** Emails of one app whose replies are compared. */
export const newestMax = 20

type Words = {
  /** ` in the last 10 minutes`; null for what is over, whose share is not known. */
  readonly when: string | null
  readonly reply: string | null
}

type AppCondition = {
  /** The state of the emails whose usual reply is quoted; null if there is none. */
  readonly state: 'failed' | 'deferred' | null
  readonly appliesTo: (counts: Counts) => boolean
  /** @param last the counts of the last `overMinutes` */
  readonly isOver: (last: Counts) => boolean
  /** Whether these minutes alone show it, because nothing else happens to the mail of an app. */
  readonly isTotal: (last: Counts) => boolean
  readonly isUrgent: (counts: Counts) => boolean
  /** The events that it is made of. */
  readonly countsEvent: (event: ActivityEvent) => boolean
  /** @param counts those of the apps, added up */
  readonly describe: (slugs: readonly string[], counts: Counts, words: Words) => string
}

/** A few failures are mistyped addresses; a large share of all finished emails is a fault. */
const failedMin = 10
/** So many failures are a fault if they are half of all finished emails. */
export const failedAloneMin = 3
/** So many emails that failed or were deferred in `overMinutes`, and none delivered, are a fault. */
const totalMin = 5
/** A few deferred emails are greylisted; most attempts are a fault. */
const deferredMin = 20
const deferredShare = 0.5
const deferredUrgentShare = 0.9
export const refusedMin = 20
export const refusedShare = 0.5

const countFailed = ({ failed }: Counts): number => sumCounts(failed)
const countAttempts = (counts: Counts): number => counts.deferred + counts.delivered + countFailed(counts)

/** With these, a request is answered 503: a condition of the service. */
export const serviceRefusals: readonly string[] = ['queue_full', 'queue_unavailable'] satisfies RefusalCode[]

const countRefused = ({ refused }: Counts): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(refused).filter(([code]) => !serviceRefusals.includes(code)))

export const appConditions: Readonly<Record<AppConditionKind, AppCondition>> = {
  mail_failed: {
    state: 'failed',
    appliesTo(counts) {
      const [failed, { delivered }] = [countFailed(counts), counts]
      const isLarge = failed >= failedMin && failed > failedShare * (failed + delivered)
      return isLarge || (failed >= failedAloneMin && failed >= delivered)
    },
    isOver: (last) => countFailed(last) === 0 && last.delivered > 0,
    isTotal: (last) => last.delivered === 0 && countFailed(last) >= totalMin,
    isUrgent: (counts) => countFailed(counts) > counts.delivered,
    countsEvent: (event) => event.startsWith('failed:'),
    describe(slugs, counts, { when, reply }) {
      const failed = countFailed(counts)
      return `${share(failed, failed + counts.delivered, when)} emails from ${nameAll(slugs)} failed${when ?? ''}${quote(reply)}.`
    },
  },
  mail_deferred: {
    state: 'deferred',
    appliesTo: (counts) => counts.deferred >= deferredMin && counts.deferred > deferredShare * countAttempts(counts),
    isOver: (last) => last.deferred === 0 && last.delivered > 0,
    isTotal: (last) => last.delivered === 0 && last.deferred >= totalMin && countFailed(last) < totalMin,
    isUrgent: (counts) => counts.deferred > deferredUrgentShare * countAttempts(counts),
    countsEvent: (event) => event === 'deferred',
    describe: (slugs, counts, { when, reply }) =>
      `The relay deferred ${share(counts.deferred, countAttempts(counts), when)} attempts to send mail from ${nameAll(slugs)}${when ?? ''}${quote(reply)}.`,
  },
  requests_refused: {
    state: null,
    appliesTo(counts) {
      const faults = countRefused(counts)
      const faulty = sumCounts(faults)
      // A flood to one recipient, or a program in a loop, counts even if most other requests are accepted.
      const limited = (faults.recipient_rate_limited ?? 0) + (faults.key_rate_limited ?? 0)
      return faulty >= refusedMin && (limited >= refusedMin || faulty > refusedShare * (faulty + counts.accepted))
    },
    isOver: (last) => sumCounts(countRefused(last)) === 0,
    isTotal: () => false,
    isUrgent: () => false,
    countsEvent: (event) => event.startsWith('refused:') && !serviceRefusals.includes(event.slice('refused:'.length)),
    describe(slugs, counts, { when }) {
      const faults = countRefused(counts)
      const faulty = sumCounts(faults)
      const whose = slugs.length === 0 ? '' : ` from ${nameAll(slugs)}`
      return `${share(faulty, faulty + counts.accepted, when)} requests${whose} were refused${when ?? ''}: ${listCodes(faults)}.`
    },
  },
}

const share = (count: number, all: number, when: Words['when']): string =>
  when === null ? formatCount(count) : `${formatCount(count)} of ${formatCount(all)}`

const codesMax = 3

/** The most frequent ones: `14 url_not_allowed, 12 daily_limit_reached`. */
function listCodes(refused: Readonly<Record<string, number>>): string {
  const codes = Object.entries(refused)
    .filter(([, count]) => count > 0)
    .toSorted(([, a], [, b]) => b - a)
  const others = sumCounts(Object.fromEntries(codes.slice(codesMax)))
  const named = codes.slice(0, codesMax).map(([code, count]) => `${formatCount(count)} ${code}`)
  return [...named, ...(others === 0 ? [] : [`${formatCount(others)} others`])].join(', ')
}

function quote(reply: string | null): string {
  if (reply === null) return ''
  const advice = adviseOn(reply)
  return `; most frequent reply: “${reply}”${advice === null ? '' : ` (${advice})`}`
}

type Lately = {
  /** The counts of each app in the last `latelyMinutes`, and in the last `overMinutes`. */
  readonly byApp: ReadonlyMap<AppId, Counts>
  readonly last: ReadonlyMap<AppId, Counts>
}

/** The counts of a condition that an app has now, and of how many minutes they are. */
export type Shown = { readonly counts: Counts; readonly minutes: number }

/** Null if an app does not have the condition now. The requests of a disabled app are refused on purpose. */
export function findNow(kind: AppConditionKind, { id, status }: App, { byApp, last }: Lately): Shown | null {
  const { appliesTo, isOver, isTotal, state } = appConditions[kind]
  const [counts, newest] = [byApp.get(id), last.get(id) ?? addCounts([])]
  if (counts === undefined || (state === null && status !== 'active')) return null
  if (isTotal(newest)) return { counts: newest, minutes: overMinutes }
  return appliesTo(counts) && !isOver(newest) ? { counts, minutes: latelyMinutes } : null
}

/** A few mailboxes that do not exist, are full or greylist are no fault of the service. */
const fewMailboxes = 10

/** Whether what is shown concerns a few mailboxes alone, or attempts at very few emails. */
export const isTrivial = ({ minutes }: Shown, { emails, isOfRecipients }: UsualReply): boolean =>
  (isOfRecipients && emails < fewMailboxes) || (minutes === overMinutes && emails < totalMin)

export function addCounts(all: readonly Counts[]): Counts {
  const add = (pick: (counts: Counts) => number) => all.reduce((sum, counts) => sum + pick(counts), 0)
  const addNamed = (pick: (counts: Counts) => Readonly<Record<string, number>>) => {
    const sums: Record<string, number> = {}
    for (const [name, count] of all.flatMap((counts) => Object.entries(pick(counts))))
      sums[name] = (sums[name] ?? 0) + count
    return sums
  }
  return {
    accepted: add(({ accepted }) => accepted),
    refused: addNamed(({ refused }) => refused),
    delivered: add(({ delivered }) => delivered),
    deferred: add(({ deferred }) => deferred),
    failed: addNamed(({ failed }) => failed),
  }
}
