/**
 * Strikes: what reports and refusals do to the suppressions of recipients, and when so many come that none
 * counts.
 */
import { latelyMinutes } from '../../domain/bounds.ts'
import type { SuppressionReason } from '../../domain/delivery/states.ts'
import {
  addStrike,
  type Destination,
  isMassBounce,
  isSeenBySeveral,
  strikesPerAppMax,
} from '../../domain/delivery/suppression.ts'
import { minuteMs } from '../../domain/duration.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import type { ReportStore, Strike } from '../report-store.ts'
import { lock, readOne, type Script, type ScriptContext } from './script.ts'
import { allApps, lockSuppression, type Recipient, writeSuppression } from './suppressions.ts'

type Cause = {
  readonly reason: Exclude<SuppressionReason, 'operator'>
  readonly email: EmailId
  readonly acceptedAt: number
  readonly reply: string | null
}

export function* strikeRefused(
  context: ScriptContext,
  { email, destination, reply }: Parameters<ReportStore['strikeRefused']>[0],
): Script<Strike> {
  const { prefix } = context
  const [known] = yield {
    text: `select app_id, recipient, accepted_at from ${prefix}history where email_id = $1`,
    values: [email],
  }
  if (known === undefined) return { kind: 'none' }
  const to = { app: known.app_id as AppId, recipient: known.recipient as string, destination }
  const acceptedAt = known.accepted_at as number
  return yield* strike(context, to, { reason: 'no_mailbox', email, acceptedAt, reply })
}

/** Suppresses a recipient for longer than before, unless too many mailboxes are said to be gone. */
export function* strike(
  context: ScriptContext,
  to: Recipient & { readonly app: AppId },
  { acceptedAt, email, reason, reply }: Cause,
): Script<Strike> {
  const { nowMs, prefix } = context
  // Its deletion has removed the suppressions of an app.
  const [app] = yield {
    text: `select 1 from ${prefix}app where app_id = $1 and status <> 'deleted' ${lock(context, 'for share')}`,
    values: [to.app],
  }
  if (app === undefined) return { kind: 'none' }
  const repeated = reason === 'no_mailbox' ? yield* findLaterBounce(context, to, acceptedAt) : null
  if (repeated !== null) return { kind: 'suppressed', until: repeated }
  if (reason === 'no_mailbox' && (yield* findsMassBounce(context, to))) return { kind: 'massive' }
  const known = yield* lockSuppression(context, to)
  const bouncedAt = reason === 'no_mailbox' ? nowMs : known.bouncedAt
  const terms = addStrike(known, reason, nowMs)
  yield* writeSuppression(context, known, { ...terms, bouncedAt, email, reply })
  return { kind: 'suppressed', until: terms.until }
}

/**
 * Ends a suppression for a reason that no longer holds: the recipient says that the email is no spam, or a
 * provider delivers to the mailbox.
 */
export function* forgive(
  { prefix }: ScriptContext,
  { app, recipient }: Recipient,
  reason: Cause['reason'],
): Script<void> {
  yield {
    text: `delete from ${prefix}suppression where app_id = $1 and recipient = $2 and reason = $3`,
    values: [app, recipient, reason],
  }
}

/**
 * Until when a recipient is suppressed who bounced after an email was accepted; null if none did. Emails that
 * were in flight then say the same once more: a refusal and the report of one email, or several emails that
 * waited for the relay.
 */
function* findLaterBounce(
  { prefix }: ScriptContext,
  { app, recipient }: Recipient & { readonly app: AppId },
  acceptedAt: number,
): Script<number | null> {
  const text = `select until from ${prefix}suppression where app_id = $1 and recipient = $2 and bounced_at >= $3`
  return yield* readOne({ text, values: [app, recipient, acceptedAt] }, (row) => row.until as number)
}

/** Counts the strike, also one that is then not made, and says whether too many came before it lately. */
function* findsMassBounce(
  context: ScriptContext,
  { app, destination }: Recipient & { readonly app: AppId },
): Script<boolean> {
  const { count } = yield* countStrike(context, app, anyDestination)
  // Events count a few seconds late, and beyond the strikes that a worker makes at once.
  const { ended, gone } = yield* readEnds(context, app)
  // Strikes of an app that are not believed count for no other app.
  if (isMassBounce({ gone: Math.max(count - 1, gone), ended })) return true
  return yield* isSeenElsewhere(context, app, destination)
}

/** Whether several apps see too many strikes at one large provider. */
function* isSeenElsewhere(context: ScriptContext, app: AppId, destination: Destination): Script<boolean> {
  if (destination === 'other') return false
  const all = yield* countStrike(context, allApps, destination)
  const ofApp = yield* countStrike(context, app, destination, [all.since, all.since - 1])
  const isCapped = ofApp.count > strikesPerAppMax
  const text = `update ${context.prefix}strike_count set capped = capped + 1 where app_id = $1 and destination = $2`
  if (!isCapped) yield { text, values: [allApps, destination] }
  if (!isSeenBySeveral(all.capped + (isCapped ? 0 : 1))) return false
  return isMassBounce({ gone: all.count - 1, ended: (yield* readEnds(context, allApps)).ended })
}

/** The `destination` of the strikes of an app at all destinations. */
const anyDestination = ''

/** Adds a strike to a count that began after `after` and by `since`; any other count begins anew. */
function* countStrike(
  { nowMs, prefix }: ScriptContext,
  app: string,
  destination: string,
  [since, after] = [nowMs, nowMs - latelyMinutes * minuteMs],
): Script<{ readonly capped: number; readonly count: number; readonly since: number }> {
  const isSame = 'known.since > $4 and known.since <= $3'
  const [row] = yield {
    text: `insert into ${prefix}strike_count as known (app_id, destination, since, count, capped) values ($1, $2, $3, 1, 0)
      on conflict (app_id, destination) do update set since = case when ${isSame} then known.since else $3 end,
        count = 1 + case when ${isSame} then known.count else 0 end,
        capped = case when ${isSame} then known.capped else 0 end
      returning *`,
    values: [app, destination, since, after],
  }
  return { capped: Number(row?.capped), count: Number(row?.count), since: Number(row?.since) }
}

/** How many emails of an app, or of all, ended lately, by the counts of minutes. */
function* readEnds({ nowMs, prefix }: ScriptContext, app: string): Script<{ gone: number; ended: number }> {
  const [counts] = yield {
    text: `select coalesce(sum(case when event = 'gone' then count end), 0) as gone,
        coalesce(sum(case when event <> 'gone' then count end), 0) as ended
      from ${prefix}activity where app_id = $1 and span = 1 and minute >= $2
        and (event in ('gone', 'delivered') or event like 'failed:%')`,
    values: [app, Math.floor((nowMs - latelyMinutes * minuteMs) / minuteMs)],
  }
  return { gone: Number(counts?.gone), ended: Number(counts?.ended) }
}
