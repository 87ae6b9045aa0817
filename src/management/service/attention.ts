/**
 * Finds what needs attention now, grouped by its cause: pure, from the records of the store. The messages
 * name no commands and no pages: the command line and the console say where to look in their own words.
 */
import { parseAllowedUrl, parseAppScheme } from '../../domain/app/allowed-entry.ts'
import type { App } from '../../domain/app/app.ts'
import { hasDomain } from '../../domain/app/sender-domains.ts'
import { heldDays, latelyMinutes, overMinutes } from '../../domain/bounds.ts'
import { counted, formatCount, nameAll, sumCounts } from '../../domain/counts.ts'
import { describeDuration, hourMs, minuteMs } from '../../domain/duration.ts'
import type { ActivityCounts } from '../activity.ts'
import { fromDomain } from '../domains/domain-subject.ts'
import { isoOrNull } from '../resources.ts'
import {
  addCounts,
  appConditionKinds,
  appConditions,
  findNow,
  isTrivial,
  type Shown,
  serviceRefusals,
} from './app-conditions.ts'
import { judgeNodes } from './attention-nodes.ts'
import { judgeGone, judgeReports, judgeSilence } from './attention-reports.ts'
import {
  type Attention,
  type AttentionKind,
  attentionKinds,
  type Condition,
  failedShare,
  isStop,
  type Situation,
} from './condition.ts'
import { findTransports, outageEnd } from './outages.ts'
import type { QueueResource } from './queue.ts'

/** With these, people cannot sign in, or soon cannot. */
const urgentKinds: readonly AttentionKind[] = [
  'store_failing',
  'no_worker',
  'no_relay',
  'keys_missing',
  'requests_turned_away',
  'mail_late',
]

const lately = `in the last ${latelyMinutes} minutes`

const nearly = 0.8
const turnedAwayShare = 0.01
const lateAfterMs = 30_000
/** So long before a replaced key ends, its use is a matter for somebody. */
const replacedWarningMs = 2 * hourMs
/** For this long after an outage, waiting mail counts as its backlog. */
const recoveryMs = 5 * minuteMs
/** One link that expired is often a slow receiver. */
const expiredUrgentMin = 5
type Refused = ActivityCounts['refused']

/** The most urgent first. */
export function findAttention(situation: Situation): Attention[] {
  const { queue } = situation
  const nodes = judgeNodes(situation)
  const isStopped = nodes.some(isStop)
  const found = [
    ...nodes,
    ...judgeAnswers(situation),
    // They follow from a stop, whose message counts them.
    ...(isStopped ? [] : [...judgeLate(situation), ...judgeExpired(situation)]),
    ...judgeApps(situation, isStopped),
    ...judgeRecords(situation),
    ...judgeFindings(situation, isStopped),
    ...judgeQueue(queue),
    ...judgeSettings(situation),
    ...judgeGone(situation),
    ...judgeReports(situation),
    ...judgeSilence(situation),
  ]
  return found
    .map(({ apps = [], since = null, subject = null, urgent, ...condition }) => ({
      ...condition,
      apps: [...apps],
      since: isoOrNull(since),
      subject,
      urgent: urgent ?? urgentKinds.includes(condition.kind),
    }))
    .toSorted(
      (a, b) => Number(b.urgent) - Number(a.urgent) || attentionKinds.indexOf(a.kind) - attentionKinds.indexOf(b.kind),
    )
}

function judgeFindings({ findings, seesAll }: Situation, isStopped: boolean): Condition[] {
  const kinds: Readonly<Record<string, AttentionKind>> = { worker: 'no_worker', keys: 'keys_missing' }
  const explained = isStopped ? ['worker', 'writes', 'disk'] : ['writes']
  return findings.flatMap(({ check, detail, ok }): Condition[] =>
    ok || explained.includes(check) || !seesAll
      ? []
      : [{ kind: kinds[check] ?? 'check_failed', message: `${check}: ${detail}`, subject: check }],
  )
}

const countTurnedAway = ({ refused }: ActivityCounts): number =>
  serviceRefusals.reduce((sum, code) => sum + (refused[code] ?? 0), 0)

function judgeAnswers({ byApp, lately: counts, latest }: Situation): Condition[] {
  const { accepted, refused } = counts
  const turnedAway = countTurnedAway(counts)
  const faults = Object.fromEntries(Object.entries(refused).filter(([code]) => !serviceRefusals.includes(code)))
  const all = accepted + turnedAway + sumCounts(faults)
  const found: Condition[] = []
  if (turnedAway > turnedAwayShare * all && countTurnedAway(latest) > 0)
    found.push({
      kind: 'requests_turned_away',
      message: `${formatCount(turnedAway)} of ${formatCount(all)} requests were answered 503 ${lately}: the database did not answer, the queue was full, this process was behind with its mail, or it was stopping. The log says which.`,
    })
  // Requests of no app: their key is unknown, or they have none.
  const rest = subtract(faults, [...byApp.values()])
  const unnamed = { ...counts, refused: rest }
  const { appliesTo, describe } = appConditions.requests_refused
  if (appliesTo(unnamed))
    found.push({
      kind: 'requests_refused',
      message: describe([], unnamed, { when: ` ${lately}`, reply: null }),
    })
  return found
}

/** The refusals that `parts` do not count. */
function subtract(all: Refused, parts: readonly ActivityCounts[]): Refused {
  const left: Record<string, number> = { ...all }
  for (const { refused } of parts)
    for (const [code, count] of Object.entries(refused)) if (left[code] !== undefined) left[code] -= count
  return left
}

/** By the moment of the count, which may be a minute old: mail that was ready may have been sent since. */
function judgeLate({ apps, late, nodes, nowMs, outages, queue }: Situation): Condition[] {
  const countedAt = Date.parse(queue.countedAt)
  const found = apps.flatMap(({ id, settings, slug }) => {
    const lateMs = countedAt - (late.find(({ app }) => app === id)?.since ?? countedAt)
    return lateMs > lateAfterMs ? [{ slug, lateMs, transport: settings.transport }] : []
  })
  const { opened, working } = findTransports(nodes)
  const unusable = found.flatMap(({ slug, transport }): Condition[] => {
    if (transport === undefined || opened.has(transport)) return []
    const message = `The mail of ${slug} waits, because no process can use the transport ${transport}: it does not exist, its key is missing, or its relays are not allowed there. The log of the process that sends says why. Add it again, or choose another one for the app.`
    return [{ kind: 'mail_late', message, apps: [slug] }]
  })
  // A transport that is down is a condition of its own.
  const delayed = found.filter(({ transport }) => transport === undefined || working.has(transport))
  return [...unusable, ...describeLate(delayed, { countedAt, nowMs, outages, queue })]
}

type Delayed = readonly { readonly slug: string; readonly lateMs: number }[]
type LateFacts = Pick<Situation, 'nowMs' | 'outages' | 'queue'> & { readonly countedAt: number }

function describeLate(delayed: Delayed, { countedAt, nowMs, outages, queue }: LateFacts): Condition[] {
  if (delayed.length === 0) return []
  const slugs = delayed.map(({ slug }) => slug)
  const longest = describeDuration(Math.max(...delayed.map(({ lateMs }) => lateMs)))
  const endedMs = outageEnd(outages)
  // Mail that was due only after the outage waits for another reason.
  const isLeft = delayed.every(({ lateMs }) => countedAt - lateMs <= endedMs)
  if (isLeft && nowMs - endedMs < recoveryMs) {
    const waiting = counted(queue.depth, 'email')
    const message = `The relay answers again; Postern is sending the ${waiting} that waited. The oldest has waited ${longest}.`
    return [{ kind: 'mail_late', message, apps: slugs, urgent: false }]
  }
  const message = `Mail from ${nameAll(slugs)} has waited up to ${longest}: it is accepted faster than it is sent, or a relay is slow.`
  return [{ kind: 'mail_late', message, apps: slugs }]
}

function judgeExpired({ apps, byApp, expired }: Situation): Condition[] {
  // A link or two of very many expire while a mailbox is full, or greylists.
  const affected = apps.filter(({ id }) => {
    const lost = expired.get(id) ?? 0
    return lost > failedShare * (lost + (byApp.get(id)?.delivered ?? 0))
  })
  if (affected.length === 0) return []
  const slugs = affected.map(({ slug }) => slug)
  const count = affected.reduce((sum, { id }) => sum + (expired.get(id) ?? 0), 0)
  return [
    {
      kind: 'links_expired',
      message: `${counted(count, 'link')} from ${nameAll(slugs)} expired ${lately}, before the email could be sent.`,
      apps: slugs,
      urgent: count >= expiredUrgentMin,
    },
  ]
}

/** Apps with the same reply have one cause; refused requests of each app have their own. */
function judgeApps(situation: Situation, isStopped: boolean): Condition[] {
  const { apps, nowMs, outages, replies } = situation
  // The outage says why mail is deferred, and for some minutes after it the counts hold its attempts.
  const sinceOutageMs = nowMs - outageEnd(outages)
  const isExplained = isStopped || sinceOutageMs < overMinutes * minuteMs
  const holdsOutage = (kind: AttentionKind, { minutes }: Shown) =>
    kind === 'mail_deferred' && sinceOutageMs < minutes * minuteMs
  const kinds = appConditionKinds.filter((kind) => !(kind === 'mail_deferred' && isExplained))
  return kinds.flatMap((kind) => {
    const { describe, isUrgent, state } = appConditions[kind]
    const found = apps.flatMap((app) => {
      const shown = findNow(kind, app, situation)
      const usual = replies[kind]?.get(app.id)
      if (shown === null || holdsOutage(kind, shown) || (usual !== undefined && isTrivial(shown, usual))) return []
      const reply = usual?.text ?? null
      const cause = state === null ? app.slug : reply
      return [{ ...shown, slug: app.slug, reply, cause: `${shown.minutes} ${cause}` }]
    })
    return [...Map.groupBy(found, ({ cause }) => cause).values()].map((group): Condition => {
      const slugs = group.map(({ slug }) => slug)
      const counts = addCounts(group.map((app) => app.counts))
      const [{ minutes, reply } = { minutes: latelyMinutes, reply: null }] = group
      const message = describe(slugs, counts, { when: ` in the last ${minutes} minutes`, reply })
      return { kind, message, apps: slugs, urgent: isUrgent(counts) }
    })
  })
}

function judgeRecords({ apps, records }: Situation): Condition[] {
  return records.flatMap(({ domain, message, selector }): Condition[] => {
    const slugs = apps.filter((app) => fromDomain(app) === domain).map(({ slug }) => slug)
    const text = `Receivers cannot verify the mail from ${domain}, which the key ${selector} signs, and may refuse it. ${message}`
    const subject = `${selector} ${domain}`
    return slugs.length === 0 ? [] : [{ kind: 'record_missing', message: text, apps: slugs, urgent: true, subject }]
  })
}

function judgeQueue({ depth, max }: QueueResource): Condition[] {
  if (depth < nearly * max) return []
  const message = `The queue holds ${formatCount(depth)} of at most ${formatCount(max)} emails; when it is full, requests are refused with 503.`
  return [{ kind: 'queue_nearly_full', message }]
}

function judgeSettings({ apps, expiring, authHooks, nowMs, queue, usage, webhooks }: Situation): Condition[] {
  const slugs = new Map(apps.map(({ id, slug }) => [id, slug]))
  // A key in its grace is used until the new one is deployed.
  const due = expiring.filter((key) => !key.isReplaced || (key.expiresAt ?? nowMs) - nowMs < replacedWarningMs)
  const keys = due.map(({ id, app, name, expiresAt, isReplaced, lastUsedAt }): Condition => {
    const slug = slugs.get(app) ?? app
    const left = describeDuration((expiresAt ?? nowMs) - nowMs)
    const used = describeDuration(nowMs - (lastUsedAt ?? nowMs))
    const message = isReplaced
      ? `The old key ${name ?? id} of ${slug} was replaced, but was still used ${used} ago. It stops working in ${left}: deploy the new key before then.`
      : `The key ${name ?? id} of ${slug} expires in ${left}: replace it before then.`
    return { kind: 'key_expires', message, apps: [slug], subject: id }
  })
  const refused = authHooks.map(({ app, message }): Condition => ({ kind: 'auth_hook_refused', message, apps: [app] }))
  const failing = webhooks.map(({ app, message }): Condition => ({ kind: 'webhook_failing', message, apps: [app] }))
  return [...apps.flatMap((app) => judgeApp(app, { queue, usage })), ...keys, ...refused, ...failing]
}

function judgeApp(app: App, { queue, usage }: Pick<Situation, 'queue' | 'usage'>): Condition[] {
  const { id, settings, slug, status } = app
  const found: Condition[] = []
  const add = (kind: AttentionKind, message: string, urgent = false) =>
    found.push({ kind, message, apps: [slug], urgent })
  const { daily } = settings.limits
  const accepted = usage.get(id)?.accepted ?? 0
  if (accepted >= daily)
    add(
      'daily_limit_near',
      `${slug} has used all of its ${formatCount(daily)} emails for today: until midnight (UTC) its requests are refused, and its users get no mail.`,
      true,
    )
  else if (accepted >= nearly * daily)
    add(
      'daily_limit_near',
      `${slug} has used ${formatCount(accepted)} of its ${formatCount(daily)} emails for today (UTC).`,
    )
  const waiting = queue.apps.find(({ app }) => app === id)
  const held = (waiting?.queued ?? 0) + (waiting?.deferred ?? 0)
  if (status !== 'active' && held > 0)
    add(
      'mail_held',
      `${slug} is ${status} and holds ${counted(held, 'email')}; held mail is cancelled after ${heldDays} days.`,
    )
  const invalid = [
    ...settings.allowedUrls.filter((entry) => !parseAllowedUrl(entry).ok),
    ...settings.appSchemes.filter((entry) => !parseAppScheme(entry).ok),
  ]
  if (invalid.length > 0)
    add(
      'setting_invalid',
      `The allow-list of ${slug} has entries that are no longer valid, so their links are refused: ${invalid.join(', ')}. Replace or remove them.`,
    )
  const domain = fromDomain(app)
  if (!hasDomain(settings, domain))
    add(
      'setting_invalid',
      `${domain} is not a sender domain of ${slug}, so its mail waits. Add the domain, or change the sender.`,
      true,
    )
  return found
}
