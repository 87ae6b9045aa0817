/** Finds the conditions that need attention: pure, from the records of the store. */

import { parseAllowedUrl, parseAppScheme } from '../../domain/app/allowed-url.ts'
import type { App } from '../../domain/app/app.ts'
import { heldDays } from '../../domain/bounds.ts'
import { counted, sumCounts } from '../../domain/counts.ts'
import { describeDuration } from '../../domain/duration.ts'
import type { KeyRecord, UsageDay } from '../../store/operator-store.ts'
import type { Finding } from '../../store/store.ts'
import type { CountedQueue } from '../operation/operation.ts'
import type { NodeResource } from '../resources.ts'
import type { QueueResource } from './show-queue.ts'

export const attentionKinds = [
  'no_worker',
  'no_relay',
  'requests_turned_away',
  'requests_refused',
  'check_failed',
  'relay_down',
  'process_silent',
  'mail_late',
  'links_expired',
  'mail_failed',
  'queue_nearly_full',
  'daily_limit_near',
  'mail_held',
  'key_expires',
  'setting_invalid',
] as const
type Attention = {
  readonly kind: (typeof attentionKinds)[number]
  readonly message: string
  /** The slug of the app that it concerns. */
  readonly app?: string | undefined
}

type Situation = {
  readonly apps: readonly App[]
  /** The counts of the current day (UTC). */
  readonly usage: ReadonlyMap<App['id'], UsageDay['counts']>
  readonly expiring: readonly KeyRecord[]
  readonly queue: QueueResource
  readonly late: CountedQueue['late']
  readonly findings: readonly Finding[]
  readonly nodes: readonly NodeResource[]
  /** The answers to requests in the last 10 minutes; null for an access to some apps. */
  readonly answers: Answers | null
  /** Emails that expired in the last hour; null for an access to some apps. */
  readonly expiredLately: number | null
  readonly nowMs: number
}

type Answers = { readonly accepted: number; readonly refused: Readonly<Record<string, number>> }

const nearly = 0.8
/** The alerts have the same shares. */
const turnedAwayShare = 0.01
const refusedShare = 0.5
const refusedMin = 20
const lateAfterMs = 30_000
/** A few failures are typing errors of recipients; this share of all ends is a fault. */
const failedShare = 0.05
const failedMin = 20

/** The most urgent first. */
export function findAttention(
  situation: Situation,
): { kind: Attention['kind']; message: string; app: string | null }[] {
  const { answers, apps, expiring, findings, nowMs, queue } = situation
  const nodes = judgeNodes(situation)
  const failing = findings
    .filter(({ check, ok }) => !ok && !(check === 'worker' && nodes.some(({ kind }) => kind === 'no_worker')))
    .map(({ check, detail }): Attention => ({ kind: 'check_failed', message: `${check}: ${detail}` }))
  const byApp = apps.flatMap((app) => judgeApp(app, situation))
  const slugs = new Map(apps.map(({ id, slug }) => [id, slug]))
  const keys = expiring.map(({ id, app, name, expiresAt }): Attention => {
    const left = describeDuration((expiresAt ?? nowMs) - nowMs)
    const message = `The key ${name ?? id} of ${slugs.get(app) ?? app} expires in ${left}; replace it: "postern key replace ${id}".`
    return { kind: 'key_expires', message, app: slugs.get(app) }
  })
  const found = [...nodes, ...judgeAnswers(answers), ...failing, ...judgeQueue(queue), ...byApp, ...keys]
  return found
    .toSorted((a, b) => attentionKinds.indexOf(a.kind) - attentionKinds.indexOf(b.kind))
    .map(({ app = null, ...condition }) => ({ ...condition, app }))
}

function judgeAnswers(answers: Answers | null): Attention[] {
  if (answers === null) return []
  const { accepted, refused } = answers
  const { queue_full = 0, queue_unavailable = 0, ...faults } = refused
  const turnedAway = queue_full + queue_unavailable
  const faulty = sumCounts(faults)
  const all = accepted + turnedAway + faulty
  const found: Attention[] = []
  if (turnedAway > turnedAwayShare * all)
    found.push({
      kind: 'requests_turned_away',
      message: `${turnedAway} of ${all} requests were answered 503 in the last 10 minutes: the database did not answer, the queue was full, delivery was late, or a process was stopping. The log says which.`,
    })
  if (faulty >= refusedMin && faulty > refusedShare * all) {
    const [code] = Object.entries(faults).toSorted(([, a], [, b]) => b - a)[0] ?? []
    found.push({
      kind: 'requests_refused',
      message: `${faulty} of ${all} requests were refused in the last 10 minutes, most of them as ${code}: "postern refusal list APP" shows those of an app, the log those by unknown keys.`,
    })
  }
  return found
}

/** A process that has been silent for longer is not reported any more. */
const silentMaxMs = 3_600_000

function judgeNodes({ nodes, nowMs, queue }: Situation): Attention[] {
  const alive = nodes.filter((node) => node.alive)
  const silent = nodes.filter((node) => !node.alive && nowMs - Date.parse(node.seenAt) < silentMaxMs)
  const workers = alive.filter(({ roles }) => roles.includes('worker'))
  const found = silent.map(({ machine, roles, seenAt }): Attention => {
    const since = describeDuration(nowMs - Date.parse(seenAt))
    const message = `A process on ${machine} (${roles.join(', ')}) has been silent for ${since}: it died, hangs, or has lost the database. If it still runs there, end it; then start it again.`
    return { kind: 'process_silent', message }
  })
  if (nodes.length > 0 && workers.length === 0 && queue.depth > 0)
    found.push({
      kind: 'no_worker',
      message: `No process sends, and ${counted(queue.depth, 'email waits', 'emails wait')}: start "postern serve" with the role worker.`,
    })
  return [...found, ...judgeRelays(workers, nowMs)]
}

function judgeRelays(workers: readonly NodeResource[], nowMs: number): Attention[] {
  const seen = workers.flatMap(({ machine, relays }) => relays.map((relay) => ({ ...relay, machine })))
  const down = seen.filter(({ available }) => !available)
  if (down.length === 0) return []
  const describe = ({ name, machine, since, reason }: (typeof down)[number]) =>
    `${name}, seen from ${machine}, has not answered for ${describeDuration(nowMs - Date.parse(since))}: ${reason}`
  if (down.length === seen.length) {
    const message = `No relay is available, so no mail is sent. ${down.map(describe).join('; ')}. "postern doctor" tries them.`
    return [{ kind: 'no_relay', message }]
  }
  return down.map((relay) => ({
    kind: 'relay_down',
    message: `The relay ${describe(relay)}. Mail goes by the others. "postern doctor" tries them.`,
  }))
}

function judgeQueue({ depth, max }: QueueResource): Attention[] {
  if (depth < nearly * max) return []
  const message = `The queue holds ${depth} of at most ${max} emails; at the maximum, requests are refused with 503.`
  return [{ kind: 'queue_nearly_full', message }]
}

function judgeApp(app: App, { expiredLately, late, queue, usage }: Situation): Attention[] {
  const { slug, settings, id } = app
  const { accepted = 0, delivered = 0, expired = 0, failed = 0 } = usage.get(id) ?? {}
  const found: Attention[] = []
  const add = (kind: Attention['kind'], message: string) => found.push({ kind, message, app: slug })
  // By the moment of the count, which may be kept for a minute: what was ready then may have been sent since.
  const countedAt = Date.parse(queue.countedAt)
  const lateMs = countedAt - (late.find((delayed) => delayed.app === id)?.since ?? countedAt)
  if (lateMs > lateAfterMs)
    add(
      'mail_late',
      `Mail of ${slug} has waited for ${describeDuration(lateMs)} to be sent. If no line above says why: "postern doctor" tries the relays, and "postern queue" shows whether more arrives than is sent.`,
    )
  if (expired > 0 && expiredLately !== 0)
    add(
      'links_expired',
      `${counted(expired, 'email')} of ${slug} not sent today, because the link expired first: "postern email list --app ${slug} --state expired" shows them.`,
    )
  if (failed >= failedMin && failed > failedShare * (delivered + failed))
    add(
      'mail_failed',
      `${failed} of ${delivered + failed} emails of ${slug} failed today: "postern email list --app ${slug} --state failed" shows the relay's answers.`,
    )
  if (accepted >= nearly * settings.limits.daily)
    add(
      'daily_limit_near',
      accepted >= settings.limits.daily
        ? `${slug} has sent all of its ${settings.limits.daily} emails of today: until midnight (UTC) its requests are refused, and its users get no mail. Raise its daily limit if that is wrong.`
        : `${slug} has sent ${accepted} of its ${settings.limits.daily} emails of today (UTC).`,
    )
  const waiting = queue.apps.find((waitingApp) => waitingApp.app === id)
  const held = (waiting?.queued ?? 0) + (waiting?.deferred ?? 0)
  if (app.status === 'disabled' && held > 0)
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
