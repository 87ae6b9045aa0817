/**
 * Troubles of an app's mail and requests, found in its counts: of the last minutes, or of the hours before. A
 * trouble is over when minutes have passed without it.
 */
import { formatCount, sumCounts } from '../../domain/counts.ts'
import { adviseOn } from '../../domain/delivery/relay-advice.ts'
import type { ActivityEvent } from '../../domain/operator/activity.ts'
import type { ActivityCounts } from '../activity.ts'
import { failedShare, nameAll } from './condition.ts'

export const troubleKinds = ['mail_failed', 'mail_deferred', 'requests_refused'] as const
export type TroubleKind = (typeof troubleKinds)[number]

export type Counts = Pick<ActivityCounts, 'accepted' | 'refused' | 'delivered' | 'deferred' | 'failed'>

type Words = {
  /** ` in the last 10 minutes`, or nothing. */
  readonly when: string
  /** The newest reply of a relay. */
  readonly reply: string | null
}

type Trouble = {
  readonly isIn: (counts: Counts) => boolean
  /** @param last the counts of the last minutes */
  readonly isOver: (last: Counts) => boolean
  readonly isUrgent: (counts: Counts) => boolean
  /** The events that it consists of. */
  readonly isOf: (event: ActivityEvent) => boolean
  /** @param counts those of the apps, added up */
  readonly describe: (slugs: readonly string[], counts: Counts, words: Words) => string
}

/** A few failures are typing errors of recipients; a share of all ends is a fault. */
const failedMin = 10
/** So many failures are a fault if nothing else is sent. */
const failedAloneMin = 3
/** A few deferred emails are greylisted; most attempts are a fault. */
const deferredMin = 20
const deferredShare = 0.5
const deferredUrgentShare = 0.9
const refusedMin = 20
const refusedShare = 0.5

const countFailed = ({ failed }: Counts): number => sumCounts(failed)
const countAttempts = (counts: Counts): number => counts.deferred + counts.delivered + countFailed(counts)

/** Requests that are answered 503 are another trouble: it is of the service. */
function countRefused({ refused }: Counts): Readonly<Record<string, number>> {
  const { queue_full: _full, queue_unavailable: _unavailable, ...faults } = refused
  return faults
}

export const troubles: Readonly<Record<TroubleKind, Trouble>> = {
  mail_failed: {
    isIn(counts) {
      const [failed, { delivered }] = [countFailed(counts), counts]
      const isLarge = failed >= failedMin && failed > failedShare * (failed + delivered)
      return isLarge || (failed >= failedAloneMin && delivered === 0)
    },
    isOver: (last) => countFailed(last) === 0 && last.delivered > 0,
    isUrgent: (counts) => countFailed(counts) > counts.delivered,
    isOf: (event) => event.startsWith('failed:'),
    describe(slugs, counts, { when, reply }) {
      const failed = countFailed(counts)
      return `${formatCount(failed)} of ${formatCount(failed + counts.delivered)} emails from ${nameAll(slugs)} failed${when}${quote(reply)}.`
    },
  },
  mail_deferred: {
    isIn: (counts) =>
      counts.deferred >= deferredMin && counts.deferred > deferredShare * countAttempts(counts),
    isOver: (last) => last.deferred === 0 && last.delivered > 0,
    isUrgent: (counts) => counts.deferred > deferredUrgentShare * countAttempts(counts),
    isOf: (event) => event === 'deferred',
    describe: (slugs, counts, { when, reply }) =>
      `The relay deferred ${formatCount(counts.deferred)} of ${formatCount(countAttempts(counts))} attempts to send mail from ${nameAll(slugs)}${when}${quote(reply)}.`,
  },
  requests_refused: {
    isIn(counts) {
      const faults = countRefused(counts)
      const faulty = sumCounts(faults)
      // A flood to one recipient or a loop is a trouble, even if most other requests are accepted.
      const limited = (faults.recipient_rate_limited ?? 0) + (faults.key_rate_limited ?? 0)
      return (
        faulty >= refusedMin && (limited >= refusedMin || faulty > refusedShare * (faulty + counts.accepted))
      )
    },
    isOver: (last) => sumCounts(countRefused(last)) === 0,
    isUrgent: () => false,
    isOf: (event) => event.startsWith('refused:') && !event.startsWith('refused:queue_'),
    describe(slugs, counts, { when }) {
      const faults = countRefused(counts)
      const faulty = sumCounts(faults)
      const [code] = Object.entries(faults).toSorted(([, a], [, b]) => b - a)[0] ?? []
      const whose = slugs.length === 0 ? '' : ` from ${nameAll(slugs)}`
      return `${formatCount(faulty)} of ${formatCount(faulty + counts.accepted)} requests${whose} were refused${when}, mostly as ${code}.`
    },
  },
}

function quote(reply: string | null): string {
  if (reply === null) return ''
  const advice = adviseOn(reply)
  return `; last reply: “${reply}”${advice === null ? '' : ` (${advice})`}`
}

/** @param last the counts of the last minutes */
export const goesOn = (kind: TroubleKind, counts: Counts, last: Counts = addCounts([])): boolean =>
  troubles[kind].isIn(counts) && !troubles[kind].isOver(last)

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
