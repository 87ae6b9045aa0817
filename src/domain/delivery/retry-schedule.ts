/**
 * When the next attempt is made: 5 s, 15 s, 45 s, 2 min, 5 min, then every 10 min for two hours,
 * then hourly, each ±20 % so that a crowd spreads out; fitted into the life the link has left, since
 * a sign-in link of five minutes is worth more than one retry; and none after 48 h.
 */

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const steps = [5 * second, 15 * second, 45 * second, 2 * minute, 5 * minute]
const everyTenMinutes = 12

/** After this long in the queue an email fails with `retries_exhausted`. */
export const retryForMs = 48 * hour

const shortestMs = 2 * second

/** The unjittered wait after the nth attempt (1 is the first). */
export function retryDelayMs(attempts: number): number {
  const step = steps[attempts - 1]
  if (step !== undefined) return step
  return attempts <= steps.length + everyTenMinutes ? 10 * minute : hour
}

/**
 * Milliseconds from now to the next attempt; never past what is left of the link's life (maintenance
 * expires it then). Null where 48 h would be over by then. `random` is in [0, 1).
 */
export function nextAttemptMs(email: {
  attempts: number
  ageMs: number
  lifeLeftMs: number
  random: number
}): number | null {
  const jittered = retryDelayMs(email.attempts) * (0.8 + 0.4 * email.random)
  const fitted = Math.max(Math.min(jittered, email.lifeLeftMs / 2), shortestMs)
  const delay = Math.round(Math.min(fitted, Math.max(email.lifeLeftMs, 0)))
  return email.ageMs + delay >= retryForMs ? null : delay
}
