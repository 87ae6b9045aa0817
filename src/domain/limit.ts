/**
 * Rate limits by GCRA (the generic cell rate algorithm). A bucket is one number, the theoretical
 * arrival time of its next request. The burst is the whole limit, so "10 an hour" is ten at once and
 * then one per six minutes; within one window nearly twice the limit can pass. Times are integer
 * microseconds on the store's clock. A refusal changes no bucket.
 */
import { describeDuration } from './duration.ts'

/** At most `quota` per `windowUs`. */
export type Limit = { readonly quota: number; readonly windowUs: number }

export type Charge =
  | { readonly ok: true; readonly arrivalUs: number }
  | { readonly ok: false; readonly retryAfterUs: number }

/**
 * Charges one request at `nowUs` to a bucket whose stored arrival time is `arrivalUs` (0 for a new
 * bucket). A charge stores at most one window ahead. A stored time more than one window ahead can
 * only come from a clock that was set back: up to two windows ahead it counts (a small step must not
 * refill a bucket), beyond that it is ignored (a large step must not lock anyone out).
 */
export function chargeLimit(limit: Limit, arrivalUs: number, nowUs: number): Charge {
  const intervalUs = Math.ceil(limit.windowUs / limit.quota)
  const burstUs = intervalUs * limit.quota
  const arrival = arrivalUs > nowUs + 2 * burstUs ? nowUs : Math.max(arrivalUs, nowUs)
  const next = arrival + intervalUs
  const allowAtUs = next - burstUs
  return allowAtUs > nowUs ? { ok: false, retryAfterUs: allowAtUs - nowUs } : { ok: true, arrivalUs: next }
}

export const keyWindowS = 60
export const recipientWindowS = 3600
export const dailyWindowS = 86_400

/** The refusals for a limit: the policy's name in `RateLimit` headers, its window, the flag that sets it. */
export const limitRefusals = {
  key_rate_limited: { policy: 'key', windowS: keyWindowS, flag: '--key-per-minute' },
  recipient_rate_limited: { policy: 'recipient', windowS: recipientWindowS, flag: '--recipient-per-hour' },
  daily_limit_reached: { policy: 'daily', windowS: dailyWindowS, flag: '--daily' },
} as const

export type LimitRefusal = keyof typeof limitRefusals

/** The limit that was reached (`quota` per `windowS` seconds), and the wait until it allows more. */
export type LimitHit = { readonly quota: number; readonly windowS: number; readonly retryAfterMs: number }

/** The public text for a limit: which one it is, how long to wait, and how an operator changes it. */
export function explainLimit(refusal: LimitRefusal, { quota, retryAfterMs }: LimitHit): string {
  const wait = describeDuration(retryAfterMs, 'ceil')
  const rules: Record<LimitRefusal, string> = {
    key_rate_limited: `Too many requests with this delivery key: at most ${quota} a minute.`,
    recipient_rate_limited: `Too many emails to this recipient or mailbox (any +tag): at most ${quota} an hour.`,
    daily_limit_reached: `This app has used all of its ${quota} emails for today (UTC).`,
  }
  return `${rules[refusal]} Try again in ${wait}. An operator raises the limit with: postern app update APP ${limitRefusals[refusal].flag} N`
}

/** The limits of an app, as its settings hold them. */
export type AppLimits = {
  readonly keyPerMinute: number
  readonly recipientPerHour: number
  readonly daily: number
}

export const defaultLimits: AppLimits = { keyPerMinute: 600, recipientPerHour: 10, daily: 10_000 }

/** A mailbox's bucket holds this many recipients' limits: test suites use `a+1@`, `a+2@`. */
export const mailboxFactor = 5

const perWindow = (quota: number, windowS: number): Limit => ({ quota, windowUs: windowS * 1e6 })

export const keyLimit = (limits: AppLimits): Limit => perWindow(limits.keyPerMinute, keyWindowS)
export const recipientLimit = (limits: AppLimits): Limit => perWindow(limits.recipientPerHour, recipientWindowS)
export const mailboxLimit = (limits: AppLimits): Limit =>
  perWindow(limits.recipientPerHour * mailboxFactor, recipientWindowS)
