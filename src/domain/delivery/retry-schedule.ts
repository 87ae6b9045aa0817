/**
 * When the next attempt is made: after 5 s, 15 s, 45 s, 2 min, 5 min, then every 10 min for two hours,
 * then hourly. Each wait is spread by ±20 %, so that a backlog does not retry all at once, and is at
 * most half of the time that the link has left: a link of five minutes gets several attempts. After
 * `retryForMs` there is no further attempt. If a relay asked to slow down, or was busy, it is asked again
 * soon: these waits begin with one second, and double.
 */
import { retryForMs } from '../bounds.ts'
import { hourMs, minuteMs } from '../duration.ts'

const second = 1000
const steps = [5 * second, 15 * second, 45 * second, 2 * minuteMs, 5 * minuteMs]
const tenMinuteSteps = 12

const waitMinMs = 2 * second
const soonMinMs = second / 2

/** The wait after the nth attempt (the first is 1), before it is spread. */
export function retryDelayMs(attempts: number): number {
  const step = steps[attempts - 1]
  if (step !== undefined) return step
  return attempts <= steps.length + tenMinuteSteps ? 10 * minuteMs : hourMs
}

/**
 * Milliseconds from now to the next attempt, at the latest when the link expires. Null if that would be later
 * than `retryForMs` after acceptance. `random` is in [0, 1).
 */
export function nextAttemptMs(email: {
  attempts: number
  ageMs: number
  lifeLeftMs: number
  random: number
  isSoon?: boolean
}): number | null {
  const { attempts, isSoon = false } = email
  const usualMs = retryDelayMs(attempts)
  const delayMs = isSoon ? Math.min(second * 2 ** (attempts - 1), usualMs) : usualMs
  const jittered = delayMs * (0.8 + 0.4 * email.random)
  const fitted = Math.max(Math.min(jittered, email.lifeLeftMs / 2), isSoon ? soonMinMs : waitMinMs)
  const delay = Math.round(Math.min(fitted, Math.max(email.lifeLeftMs, 0)))
  return email.ageMs + delay >= retryForMs ? null : delay
}
