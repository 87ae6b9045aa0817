/** What both engines keep to, so that an email's life does not depend on where it is stored. */

const minuteMs = 60_000
const dayMs = 86_400_000

/** An email that lost this many leases has probably killed its workers. */
export const lostMax = 5
/** The longest wait between two attempts: an hour and a fifth. */
export const waitMaxMs = 72 * minuteMs
/** Mail whose key is missing is looked at again after so long. */
export const unreadableWaitMs = 5 * minuteMs
/** Rows taken by one step of claims and upkeep, so that no transaction is long. */
export const stepMax = 500
/** Apps that take turns in one claim. */
export const appsPerClaim = 32
/** Attempts kept on record: a relay that is down for days must not grow a row without end. */
export const trailMax = 60
/** How long an idempotency key is remembered. */
export const idempotencyMs = dayMs
/** How long records and counts are kept. */
export const keepDays = 30
/** How long a disabled app's mail is held. */
export const heldDays = 7
/** Rows looked at by one step of a pass over a big table, and how often a pass begins. */
export const passMax = 2000
export const passEveryMs = 10 * minuteMs
