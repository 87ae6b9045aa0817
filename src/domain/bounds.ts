/** Bounds and periods of the product: both stores keep them, and pages and commands name them. */
import { hourMs, minuteMs } from './duration.ts'

/** The longest wait between two attempts: an hour and a fifth (`retry-schedule.ts`). */
export const waitMaxMs = 72 * minuteMs
/** An email that has been in the queue for this long fails with `retries_exhausted`. */
export const retryForHours = 48
export const retryForMs = retryForHours * hourMs
/** The last use of a key or a token is recorded at most this often. */
export const lastUseEveryMs = 60_000
/** A replaced key is in use if a request came with it as recently as this. */
export const keyInUseMs = hourMs
/** Minutes: what needs attention is judged by these; a condition that is older is over. */
export const latelyMinutes = 10
/** Minutes without its events after which a condition of an app is over. */
export const overMinutes = 3
/** Days for which a suppression may last, and for which its bounces count after it. */
export const [suppressionDaysMax, suppressionMemoryDays] = [400, 90]
/** Rows that one step of a claim or of maintenance changes, so that no transaction is long. */
export const stepMax = 500
/** Apps that take turns in one claim. */
export const appsPerClaim = 32
/** A claim passes this many apps at most whose mail it may not take. */
export const appsSeenPerClaim = 256
/** So many claims look one after another, before the next ones wait. */
export const fruitlessMax = 16
/** An email that has waited for less is not superseded: mail that leaves at once is never cancelled. */
export const supersededAfterMs = 1000
/** Attempts kept in a record: a relay that is down for days must not grow a row without bound. */
export const trailMax = 60
/** Days after acceptance in which a report about an email counts. */
export const reportDays = 10
/** Days (UTC), with today, whose bounces and complaints are compared with what was delivered. */
export const reportedDays = 7
/** Reports of a delay that one record keeps, at most one an hour. */
export const delayedReportsMax = 10
/** How long an idempotency key is remembered. */
export const idempotencyHours = 24
export const idempotencyMs = idempotencyHours * hourMs
/** How long records and counts are kept. */
export const keepDays = 30
/** Keys of an app that work, and as many that have ended (the newest), so that reading all stays cheap. */
export const keysMax = 1000
/** Networks of a key: an app has few servers, and each request is compared with all. */
export const keyNetworksMax = 20
/**
 * Secrets of one auth server of an app that work: the newest, and those before it in their grace. Each call
 * of a stranger is compared with all of them.
 */
export const authHookSecretsMax = 4
/** Passkeys of a person. */
export const passkeysMax = 20
/** Sessions of a person: a few browsers and machines. The oldest ends when one more begins. */
export const sessionsMax = 20
/** How often a change of an app is tried again when other changes come between reading and writing. */
export const appChangeTriesMax = 10
/**
 * Characters that changes of one app, and those of one person or token, may add to the audit in a day (UTC):
 * some 3,000 entries, so that an app adds at most 400 MB in the time that the audit is kept.
 */
export const auditedPerDayMax = 1024 * 1024
/** How long the counts behind charts are kept. */
export const activityDays = 8
/** How long the counts of an app by the minute are kept. */
export const appMinutesKept = 120
/** How long the audit is kept. */
export const auditDays = 400
/** How long a disabled app's mail is held before it is cancelled. */
export const heldDays = 7
/** Characters of a search for a part of a reply. */
export const replySearchMax = 100
/** Rows that one step of a scan over a big table reads, and how often a scan begins. */
export const scanMax = 2000
export const scanEveryMs = 10 * minuteMs
/** How long a request waits for the store before it is answered with 503. */
export const enqueueDeadlineMs = 2000
/** The upper bounds of the ages by which waiting mail is counted, in milliseconds; older mail comes last. */
export const queueAgesMs = [1000, 10_000, minuteMs, 5 * minuteMs, hourMs]
/** Webhooks of one app that wait. */
export const waitingWebhooksMax = 1000
/** The newest webhooks of an app, which its page shows. */
export const webhooksListed = 100
/** Days for which a webhook is tried at most. */
export const webhookDays = 3
/** How long a sender has a webhook to itself; a try takes much less. */
export const webhookLeaseMs = minuteMs
/** Tries that a message keeps. */
export const webhookTrailMax = 20
/** How long a receiver that fails is left alone at most. */
export const webhookPauseMaxMs = 5 * minuteMs
/**
 * Recipients of one app that operators suppress: a list that somebody brings along from another provider is
 * imported as suppressions of all apps, by an admin of the whole service.
 */
export const suppressionsMax = 5000
/** Bytes of a request to the management API, or of a form of the console. */
export const operatorBodyBytesMax = 64 * 1024
/** Bytes of a mail report that are read. */
export const reportMax = 512 * 1024
/** Bytes of a call by which a mail service reports: the largest batch of those known has 768 KB. */
export const providerCallMax = 1024 * 1024
/** Characters of a report that an operator gives, as JSON: the beginning, which has its fields. */
export const reportTextMax = 60_000

/** How long the emails of test keys are kept, and how many of each app. */
export const inboxMs = hourMs
export const inboxMax = 500
/** Emails in one answer. */
export const inboxPageMax = 100

/** How long a request may wait for an email in an inbox. Proxies give up after 30 seconds. */
export const inboxWaitMaxS = 25
export const inboxWaitDefaultS = 10
