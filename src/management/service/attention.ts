/** Finds the conditions that need attention: pure, from the records of the store. */
import { parseAllowedUrl, parseAppScheme } from '../../domain/app/allowed-url.ts'
import type { App } from '../../domain/app/app.ts'
import { describeDuration } from '../../domain/duration.ts'
import type { KeyRecord, UsageDay } from '../../store/operator-store.ts'
import type { Finding } from '../../store/store.ts'
import type { CountedQueue } from '../operation.ts'
import type { NodeResource } from '../resources.ts'
import type { QueueResource } from './show-queue.ts'

export const attentionKinds = [
  'no_worker',
  'no_relay',
  'requests_turned_away',
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
type Attention = { readonly kind: (typeof attentionKinds)[number]; readonly message: string }

type Situation = {
  readonly apps: readonly App[]
  /** The counts of the current day (UTC). */
  readonly usage: ReadonlyMap<App['id'], UsageDay['counts']>
  readonly expiring: readonly KeyRecord[]
  readonly queue: QueueResource
  readonly late: CountedQueue['late']
  readonly findings: readonly Finding[]
  readonly nodes: readonly NodeResource[]
  /** Requests that were answered 503 in the last minutes. */
  readonly turnedAway: number
  readonly nowMs: number
}

const nearly = 0.8
const lateAfterMs = 30_000
/** A few failures are typing errors of recipients; this share of all ends is a fault. */
const failedShare = 0.05
const failedMin = 20

/** The most urgent first. */
export function findAttention(situation: Situation): { kind: Attention['kind']; message: string }[] {
  const { apps, expiring, findings, nowMs, queue, turnedAway } = situation
  const failing = findings
    .filter(({ ok }) => !ok)
    .map(({ check, detail }): Attention => ({ kind: 'check_failed', message: `${check}: ${detail}` }))
  const byApp = apps.flatMap((app) => ofApp(app, situation))
  const slugs = new Map(apps.map(({ id, slug }) => [id, slug]))
  const keys = expiring.map(({ id, app, name, expiresAt }): Attention => {
    const left = describeDuration((expiresAt ?? nowMs) - nowMs)
    const message = `The key ${name ?? id} of ${slugs.get(app) ?? app} expires in ${left}; replace it: "postern key replace ${id}".`
    return { kind: 'key_expires', message }
  })
  const refused: Attention[] =
    turnedAway === 0 ? [] : [{ kind: 'requests_turned_away', message: turnedAwayText(turnedAway) }]
  const found = [...ofNodes(situation), ...refused, ...failing, ...ofQueue(queue), ...byApp, ...keys]
  return found.toSorted((a, b) => attentionKinds.indexOf(a.kind) - attentionKinds.indexOf(b.kind))
}

const turnedAwayText = (count: number) =>
  `${count === 1 ? '1 request was' : `${count} requests were`} answered 503 in the last 10 minutes: the database did not answer, the queue was full, delivery was late, or a process was stopping. The log says which.`

/** A process that has been silent for longer is not reported any more. */
const silentMaxMs = 3_600_000

function ofNodes({ nodes, nowMs, queue }: Situation): Attention[] {
  const alive = nodes.filter((node) => node.alive)
  const silent = nodes.filter(
    (node) => !node.alive && nowMs - Date.parse(node.seenAt) < silentMaxMs && !isReplaced(node, alive),
  )
  const workers = alive.filter(({ roles }) => roles.includes('worker'))
  const found = silent.map(({ machine, roles, seenAt }): Attention => {
    const since = describeDuration(nowMs - Date.parse(seenAt))
    const message = `A process on ${machine} (${roles.join(', ')}) has been silent for ${since}: it died, hangs, or has lost the database.`
    return { kind: 'process_silent', message }
  })
  if (nodes.length > 0 && workers.length === 0 && queue.depth > 0)
    found.push({
      kind: 'no_worker',
      message: `No process sends, and ${queue.depth === 1 ? '1 email waits' : `${queue.depth} emails wait`}: start "postern serve" with the role worker.`,
    })
  return [...found, ...ofRelays(workers, nowMs)]
}

/** True if a process with the same machine and roles started after this one was last seen. */
const isReplaced = ({ machine, roles, seenAt }: NodeResource, alive: readonly NodeResource[]): boolean =>
  alive.some(
    (other) => other.machine === machine && other.roles.join() === roles.join() && other.startedAt > seenAt,
  )

function ofRelays(workers: readonly NodeResource[], nowMs: number): Attention[] {
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

function ofQueue({ depth, max }: QueueResource): Attention[] {
  if (depth < nearly * max) return []
  const message = `The queue holds ${depth} of at most ${max} emails; at the maximum, requests are refused with 503.`
  return [{ kind: 'queue_nearly_full', message }]
}

function ofApp(app: App, { late, nowMs, queue, usage }: Situation): Attention[] {
  const { slug, settings, id } = app
  const { accepted = 0, delivered = 0, expired = 0, failed = 0 } = usage.get(id) ?? {}
  const found: Attention[] = []
  const add = (kind: Attention['kind'], message: string) => found.push({ kind, message })
  const lateMs = nowMs - (late.find((each) => each.app === id)?.since ?? nowMs)
  if (lateMs > lateAfterMs)
    add(
      'mail_late',
      `Mail of ${slug} is late by ${describeDuration(lateMs)}: no relay answers, no process sends, or more arrives than is sent. "postern doctor" tells which.`,
    )
  if (expired > 0)
    add(
      'links_expired',
      `${expired} emails of ${slug} were not sent today before their links expired: "postern email list --app ${slug} --state expired" shows them.`,
    )
  if (failed >= failedMin && failed > failedShare * (delivered + failed))
    add(
      'mail_failed',
      `${failed} of ${delivered + failed} emails of ${slug} failed today: "postern email list --app ${slug} --state failed" shows the relay's answers.`,
    )
  if (accepted >= nearly * settings.limits.daily)
    add(
      'daily_limit_near',
      `${slug} has sent ${accepted} of its ${settings.limits.daily} emails of today (UTC).`,
    )
  const waiting = queue.apps.find((each) => each.app === id)
  const held = (waiting?.queued ?? 0) + (waiting?.deferred ?? 0)
  if (app.status === 'disabled' && held > 0)
    add('mail_held', `${slug} is disabled and holds ${held} emails, which are cancelled after 7 days.`)
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
