/**
 * Rate limits by GCRA (the generic cell rate algorithm): one number per bucket, the theoretical
 * arrival time. The burst is the whole limit, so "10 an hour" is ten at once and then one per six
 * minutes; within some windows nearly twice the limit can pass. Times are integer microseconds on
 * the store's clock. A refusal moves nothing.
 */

/** At most `quota` per `windowUs`. */
export type Limit = { readonly quota: number; readonly windowUs: number }

export type Charge =
  | { readonly ok: true; readonly tatUs: number }
  | { readonly ok: false; readonly retryAfterUs: number }

/**
 * One arrival at `nowUs` in a bucket whose stored arrival time is `tatUs` (0 for a new bucket). A
 * charge stores at most one window ahead. What lies further ahead is from before the clock stepped
 * back: up to a window more it is kept, so that a small step opens no full bucket; beyond that it
 * counts for nothing, so that no step locks anybody out for longer than two windows.
 */
export function chargeLimit(limit: Limit, tatUs: number, nowUs: number): Charge {
  const intervalUs = Math.ceil(limit.windowUs / limit.quota)
  const burstUs = intervalUs * limit.quota
  const tat = tatUs > nowUs + 2 * burstUs ? nowUs : Math.max(tatUs, nowUs)
  const next = tat + intervalUs
  const allowAtUs = next - burstUs
  return allowAtUs > nowUs ? { ok: false, retryAfterUs: allowAtUs - nowUs } : { ok: true, tatUs: next }
}

const minuteUs = 60_000_000
const hourUs = 60 * minuteUs

/** The limits of an app, as its settings hold them. */
export type AppLimits = {
  readonly keyPerMinute: number
  readonly recipientPerHour: number
  readonly daily: number
}

export const defaultLimits: AppLimits = { keyPerMinute: 600, recipientPerHour: 10, daily: 10_000 }

/** The folded mailbox's bucket: wide enough for test suites that use `a+1@`, `a+2@`. */
const mailboxFactor = 5

export const keyLimit = (limits: AppLimits): Limit => ({ quota: limits.keyPerMinute, windowUs: minuteUs })
export const recipientLimit = (limits: AppLimits): Limit => ({
  quota: limits.recipientPerHour,
  windowUs: hourUs,
})
export const mailboxLimit = (limits: AppLimits): Limit => ({
  quota: limits.recipientPerHour * mailboxFactor,
  windowUs: hourUs,
})
