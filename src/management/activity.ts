/** The counts behind charts, as operations answer with them. */
import { type Static, Type } from 'typebox'
import {
  type ActivityEvent,
  type ActivityRow,
  countsBelow,
  relayOutcomes,
  tookAtMost,
} from '../domain/operator/activity.ts'
import { closed, orNull, time } from './operation/schema.ts'

const named = (description: string) => Type.Record(Type.String(), Type.Integer(), { description })
const tookWithin = (share: string) =>
  orNull(
    Type.Integer({
      description: `Milliseconds from acceptance to the relay's 250 within which ${share} of the emails were delivered; rounded up. Null if there were no emails, or if it is over an hour.`,
    }),
  )

const counts = {
  accepted: Type.Integer(),
  replayed: Type.Integer({
    description: 'Answered 202 because of their idempotency key, without a second email.',
  }),
  refused: named('Refused requests, by code.'),
  delivered: Type.Integer(),
  deferred: Type.Integer({ description: 'Attempts that a relay deferred.' }),
  failed: named('By reason.'),
  expired: Type.Integer(),
  cancelled: Type.Integer(),
  bounced: named('Delivered emails that a report said had bounced, by cause.'),
  complained: Type.Integer({ description: 'Emails that their recipients reported as spam.' }),
  suppressed: Type.Integer({ description: 'Accepted and not sent, since the recipient is suppressed.' }),
  gone: Type.Integer({
    description: 'Emails whose recipient has no mailbox, as the relay or a report said.',
  }),
  lostLeases: Type.Integer(),
  replies: named('Replies of the relays, by code.'),
  keys: named('Accepted requests of an app by the id of their key; with the step hour alone.'),
  relays: Type.Record(
    Type.String(),
    closed({ delivered: Type.Integer(), deferred: Type.Integer(), failed: Type.Integer() }),
    {
      description: 'Attempts by relay; for the whole service alone.',
    },
  ),
  p50Ms: tookWithin('half'),
  p95Ms: tookWithin('95 %'),
}

export const ActivityCounts = closed(counts)
export type ActivityCounts = Static<typeof ActivityCounts>

export const ActivityItem = closed({ at: time(), ...counts })
export type ActivityItem = Static<typeof ActivityItem>

type Rows = readonly Pick<ActivityRow, 'event' | 'count'>[]

/** Adds up rows of any minutes. */
export function presentCounts(rows: Rows): ActivityCounts {
  const sums = new Map<ActivityEvent, number>()
  for (const { event, count } of rows) sums.set(event, (sums.get(event) ?? 0) + count)
  const of = (event: ActivityEvent) => sums.get(event) ?? 0
  return {
    accepted: of('accepted'),
    replayed: of('replayed'),
    refused: countsBelow(sums, 'refused'),
    delivered: of('delivered'),
    deferred: of('deferred'),
    failed: countsBelow(sums, 'failed'),
    expired: of('expired'),
    cancelled: of('cancelled'),
    bounced: countsBelow(sums, 'bounced'),
    complained: of('complained'),
    suppressed: of('suppressed'),
    gone: of('gone'),
    lostLeases: of('lost'),
    replies: countsBelow(sums, 'reply'),
    keys: countsBelow(sums, 'key'),
    relays: presentRelays(sums),
    p50Ms: tookAtMost(sums, 0.5),
    p95Ms: tookAtMost(sums, 0.95),
  }
}

function presentRelays(sums: ReadonlyMap<ActivityEvent, number>): ActivityCounts['relays'] {
  const names = new Set(relayOutcomes.flatMap((outcome) => Object.keys(countsBelow(sums, `${outcome}_by`))))
  const of = (event: ActivityEvent) => sums.get(event) ?? 0
  const countsOf = (name: string) => ({
    delivered: of(`delivered_by:${name}`),
    deferred: of(`deferred_by:${name}`),
    failed: of(`failed_by:${name}`),
  })
  return Object.fromEntries([...names].sort().map((name) => [name, countsOf(name)]))
}
