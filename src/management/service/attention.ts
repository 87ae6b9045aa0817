/**
 * Finds what needs attention now, grouped by its cause: pure, from the records of the store. The messages
 * name no commands and no pages: the command line and the console say where to look in their own words.
 */
import { parseAllowedUrl, parseAppScheme } from '../../domain/app/allowed-url.ts'
import type { App } from '../../domain/app/app.ts'
import { heldDays, latelyMinutes } from '../../domain/bounds.ts'
import { counted, formatCount, sumCounts } from '../../domain/counts.ts'
import { describeDuration } from '../../domain/duration.ts'
import { judgeNodes } from './attention-nodes.ts'
import {
  type Attention,
  type AttentionKind,
  attentionKinds,
  type Condition,
  describeFailed,
  failedShare,
  isFailing,
  isStop,
  nameAll,
  type Situation,
} from './condition.ts'
import type { QueueResource } from './show-queue.ts'

/** With these, people cannot sign in, or soon cannot. */
const urgentKinds: readonly AttentionKind[] = ['no_worker', 'no_relay', 'requests_turned_away', 'mail_late']

const lately = `in the last ${latelyMinutes} minutes`

const nearly = 0.8
const turnedAwayShare = 0.01
const refusedShare = 0.5
const refusedMin = 20
const lateAfterMs = 30_000
/** One link that expired is often a slow receiver. */
const expiredUrgentMin = 5
/** The most urgent first. */
export function findAttention(situation: Situation): Attention[] {
  const { findings, queue } = situation
  const nodes = judgeNodes(situation)
  const isStopped = nodes.some(isStop)
  const failing = findings
    .filter(({ check, ok }) => !ok && !(check === 'worker' && isStopped))
    .map(({ check, detail }): Condition => ({ kind: 'check_failed', message: `${check}: ${detail}` }))
  const found = [
    ...nodes,
    ...judgeAnswers(situation),
    // They follow from a stop, whose message counts them.
    ...(isStopped ? [] : [...judgeLate(situation), ...judgeExpired(situation)]),
    ...judgeFailed(situation),
    ...failing,
    ...judgeQueue(queue),
    ...judgeSettings(situation),
  ]
  return found
    .toSorted((a, b) => attentionKinds.indexOf(a.kind) - attentionKinds.indexOf(b.kind))
    .map(({ apps = [], urgent, ...condition }) => ({
      ...condition,
      apps: [...apps],
      urgent: urgent ?? urgentKinds.includes(condition.kind),
    }))
}

function judgeAnswers({ apps, byApp, lately: counts }: Situation): Condition[] {
  const { accepted, refused } = counts
  const { queue_full = 0, queue_unavailable = 0, ...faults } = refused
  const turnedAway = queue_full + queue_unavailable
  const all = accepted + turnedAway + sumCounts(faults)
  const found: Condition[] = []
  if (turnedAway > turnedAwayShare * all)
    found.push({
      kind: 'requests_turned_away',
      message: `${turnedAway} of ${all} requests were answered 503 ${lately}: the database did not answer, the queue was full, delivery was late, or a process was stopping. The log says which.`,
    })
  const ofApps: Record<string, number> = {}
  for (const { id, slug, status } of apps) {
    const own = byApp.get(id)
    if (own === undefined) continue
    for (const [code, count] of Object.entries(own.refused)) ofApps[code] = (ofApps[code] ?? 0) + count
    if (status === 'disabled') continue // its requests are refused on purpose
    const message = describeRefused(own.refused, own.accepted, `requests from ${slug}`)
    if (message !== null) found.push({ kind: 'requests_refused', message, apps: [slug] })
  }
  // The rest named no app: a key that is unknown, or none.
  const rest = Object.entries(faults).map(([code, count]) => [code, count - (ofApps[code] ?? 0)] as const)
  const message = describeRefused(Object.fromEntries(rest), accepted, 'requests')
  if (message !== null) found.push({ kind: 'requests_refused', message })
  return found
}

function describeRefused(
  refused: Readonly<Record<string, number>>,
  accepted: number,
  what: string,
): string | null {
  const { queue_full: _full, queue_unavailable: _unavailable, ...faults } = refused
  const faulty = sumCounts(faults)
  // Somebody is flooding a recipient, or a program is in a loop, even if most other requests are accepted.
  const limited = (faults.recipient_rate_limited ?? 0) + (faults.key_rate_limited ?? 0)
  if (faulty < refusedMin || (limited < refusedMin && faulty <= refusedShare * (faulty + accepted)))
    return null
  const [code] = Object.entries(faults).toSorted(([, a], [, b]) => b - a)[0] ?? []
  return `${formatCount(faulty)} of ${formatCount(faulty + accepted)} ${what} were refused ${lately}, mostly as ${code}.`
}

/** By the moment of the count, which may be a minute old: mail that was ready may have been sent since. */
function judgeLate({ apps, late, queue }: Situation): Condition[] {
  const countedAt = Date.parse(queue.countedAt)
  const delayed = apps.flatMap(({ id, slug }) => {
    const lateMs = countedAt - (late.find(({ app }) => app === id)?.since ?? countedAt)
    return lateMs > lateAfterMs ? [{ slug, lateMs }] : []
  })
  if (delayed.length === 0) return []
  const slugs = delayed.map(({ slug }) => slug)
  const longest = describeDuration(Math.max(...delayed.map(({ lateMs }) => lateMs)))
  const message = `Mail from ${nameAll(slugs)} has waited up to ${longest}: it is accepted faster than it is sent, or a relay is slow.`
  return [{ kind: 'mail_late', message, apps: slugs }]
}

function judgeExpired({ apps, expired, lately: { delivered } }: Situation): Condition[] {
  const slugs = apps.filter(({ id }) => (expired.get(id) ?? 0) > 0).map(({ slug }) => slug)
  if (slugs.length === 0) return []
  const count = sumCounts(Object.fromEntries(expired))
  return [
    {
      kind: 'links_expired',
      message: `${counted(count, 'link')} from ${nameAll(slugs)} expired ${lately}, before the email could be sent.`,
      apps: slugs,
      urgent: count >= expiredUrgentMin && count > failedShare * (count + delivered),
    },
  ]
}

/** Apps whose mail fails with the same reply have one cause. */
function judgeFailed({ apps, byApp, replies }: Situation): Condition[] {
  const failing = apps.flatMap(({ id, slug }) => {
    const counts = byApp.get(id)
    if (counts === undefined || !isFailing(counts)) return []
    return [{ slug, counts, reply: replies.get(id) ?? null }]
  })
  const byReply = Map.groupBy(failing, ({ reply }) => reply)
  return [...byReply].map(([reply, group]): Condition => {
    const slugs = group.map(({ slug }) => slug)
    const counts = group.map((app) => app.counts)
    const failed = counts.reduce((sum, own) => sum + sumCounts(own.failed), 0)
    const delivered = counts.reduce((sum, own) => sum + own.delivered, 0)
    return {
      kind: 'mail_failed',
      message: describeFailed(slugs, counts, { when: ` ${lately}`, reply }),
      apps: slugs,
      urgent: failed > refusedShare * (failed + delivered),
    }
  })
}

function judgeQueue({ depth, max }: QueueResource): Condition[] {
  if (depth < nearly * max) return []
  const message = `The queue holds ${depth} of at most ${max} emails; when it is full, requests are refused with 503.`
  return [{ kind: 'queue_nearly_full', message }]
}

function judgeSettings({ apps, expiring, nowMs, queue, usage }: Situation): Condition[] {
  const slugs = new Map(apps.map(({ id, slug }) => [id, slug]))
  const keys = expiring.map(({ id, app, name, expiresAt, isReplaced, lastUsedAt }): Condition => {
    const slug = slugs.get(app) ?? app
    const left = describeDuration((expiresAt ?? nowMs) - nowMs)
    const used = describeDuration(nowMs - (lastUsedAt ?? nowMs))
    const message = isReplaced
      ? `The old key ${name ?? id} of ${slug} was replaced, but is still in use (${used} ago). It stops working in ${left}: deploy the new key before then.`
      : `The key ${name ?? id} of ${slug} expires in ${left}: replace it before then.`
    return { kind: 'key_expires', message, apps: [slug] }
  })
  return [...apps.flatMap((app) => judgeApp(app, { queue, usage })), ...keys]
}

function judgeApp(
  { id, settings, slug, status }: App,
  { queue, usage }: Pick<Situation, 'queue' | 'usage'>,
): Condition[] {
  const found: Condition[] = []
  const add = (kind: AttentionKind, message: string, urgent = false) =>
    found.push({ kind, message, apps: [slug], urgent })
  const { daily } = settings.limits
  const accepted = usage.get(id)?.accepted ?? 0
  if (accepted >= daily)
    add(
      'daily_limit_near',
      `${slug} has used all of its ${daily} emails for today: until midnight (UTC) its requests are refused, and its users get no mail.`,
      true,
    )
  else if (accepted >= nearly * daily)
    add('daily_limit_near', `${slug} has used ${accepted} of its ${daily} emails for today (UTC).`)
  const waiting = queue.apps.find(({ app }) => app === id)
  const held = (waiting?.queued ?? 0) + (waiting?.deferred ?? 0)
  if (status === 'disabled' && held > 0)
    add(
      'mail_held',
      `${slug} is disabled and holds ${counted(held, 'email')}; held mail is cancelled after ${heldDays} days.`,
    )
  const invalid = [
    ...settings.allowedUrls.filter((entry) => !parseAllowedUrl(entry).ok),
    ...settings.appSchemes.filter((entry) => !parseAppScheme(entry).ok),
  ]
  if (invalid.length > 0)
    add(
      'setting_invalid',
      `${slug} allows ${invalid.join(', ')}, which the rules no longer permit: no such link is sent.`,
    )
  return found
}
