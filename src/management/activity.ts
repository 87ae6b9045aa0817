/** The counts behind charts, as operations answer with them. */
import { type Static, Type } from 'typebox'
import { type ActivityRow, tookAtMost } from '../domain/activity.ts'
import { closed, orNull, time } from './schema.ts'

const named = (description: string) => Type.Record(Type.String(), Type.Integer(), { description })
const tookWithin = (share: string) =>
  orNull(
    Type.Integer({
      description: `Milliseconds from acceptance to the 250 of the relay, within which ${share} of the emails came; rounded up. Null without emails, or if it is over an hour.`,
    }),
  )

const counts = {
  accepted: Type.Integer(),
  replayed: Type.Integer({ description: 'Answered 202 by their idempotency key, without another email.' }),
  refused: named('Refused requests, by code.'),
  delivered: Type.Integer(),
  deferred: Type.Integer({ description: 'Attempts that a relay deferred.' }),
  failed: named('By reason.'),
  expired: Type.Integer(),
  cancelled: Type.Integer(),
  lostLeases: Type.Integer(),
  replies: named('Replies of relays, by code.'),
  p50Ms: tookWithin('half'),
  p95Ms: tookWithin('95 %'),
}

export const ActivityCounts = closed(counts)
export type ActivityCounts = Static<typeof ActivityCounts>

export const ActivityItem = closed({ at: time(), ...counts })
export type ActivityItem = Static<typeof ActivityItem>

type Rows = readonly Pick<ActivityRow, 'what' | 'count'>[]

/** Adds up rows of any minutes. */
export function presentCounts(rows: Rows): ActivityCounts {
  const sums = new Map<string, number>()
  for (const { what, count } of rows) sums.set(what, (sums.get(what) ?? 0) + count)
  const of = (what: string) => sums.get(what) ?? 0
  const below = (prefix: string) =>
    Object.fromEntries(
      [...sums].flatMap(([what, count]) =>
        what.startsWith(`${prefix}:`) ? [[what.slice(prefix.length + 1), count]] : [],
      ),
    )
  return {
    accepted: of('accepted'),
    replayed: of('replayed'),
    refused: below('refused'),
    delivered: of('delivered'),
    deferred: of('deferred'),
    failed: below('failed'),
    expired: of('expired'),
    cancelled: of('cancelled'),
    lostLeases: of('lost'),
    replies: below('reply'),
    p50Ms: tookAtMost(sums, 0.5),
    p95Ms: tookAtMost(sums, 0.95),
  }
}
