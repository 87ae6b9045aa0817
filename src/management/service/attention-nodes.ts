/** Finds what is wrong with processes and relays: pure, from what the processes say of themselves. */
import { counted, nameAll } from '../../domain/counts.ts'
import { isReply, readCodes } from '../../domain/delivery/smtp-reply.ts'
import { transportOf } from '../../domain/delivery/transport.ts'
import { dayMs, describeDuration, minuteMs } from '../../domain/duration.ts'
import { adviseOn, withAdvice } from '../../services/advice.ts'
import { isoOrNull, type NodeResource } from '../resources.ts'
import { type Attention, type Condition, isStop, type Situation } from './condition.ts'
import { type GroupedRelay, groupRelays, ofService, stoppedSince } from './outages.ts'

/** A new certificate must be uploaded to the provider, often by somebody else. */
const certificateWarningMs = 30 * dayMs

/** A process that has been silent for longer is not reported any more. */
const silentMaxMs = 3_600_000

type NodeSituation = Pick<
  Situation,
  'seesAll' | 'apps' | 'expired' | 'expiredFrom' | 'findings' | 'nodes' | 'nowMs' | 'queue'
>

/** Why nothing is sent now. */
export const findStops = (situation: NodeSituation): Attention[] =>
  judgeNodes(situation)
    .filter(isStop)
    .map(({ since = null, subject = null, ...stop }) => ({
      ...{ ...stop, apps: [], urgent: true },
      ...{ since: isoOrNull(since), subject },
    }))

/** An access for some apps learns that nothing is sent, and nothing of processes and relays by name. */
export function judgeNodes(situation: NodeSituation): Condition[] {
  const { apps, nodes, nowMs, queue, seesAll } = situation
  const store = judgeStore(situation)
  if (store.length > 0) return store // they cannot report: their last words may no longer be true
  const alive = nodes.filter((node) => node.alive)
  const silent = nodes.filter((node) => seesAll && !node.alive && nowMs - Date.parse(node.seenAt) < silentMaxMs)
  const workers = alive.filter(({ roles }) => roles.includes('worker'))
  const found = silent.map(({ machine, roles, seenAt }): Condition => {
    const since = describeDuration(nowMs - Date.parse(seenAt))
    const message = `The process on ${machine} (${roles.join(', ')}) has not reported for ${since}: it has died, is hanging, or cannot reach the database. If it is still running, kill it; then start it again.`
    return { kind: 'process_silent', message, subject: `${machine} ${roles.join(' ')}` }
  })
  if (apps.length > 0 && alive.length === 0)
    found.push({
      kind: 'no_worker',
      message: `No process of this service has reported lately: requests may not be answered, and mail may not be sent.${queue.depth === 0 ? '' : ` ${describeWaiting(situation)}`}`,
    })
  else if (workers.length === 0 && queue.depth > 0)
    found.push({
      kind: 'no_worker',
      message: `No process is sending mail${seesAll ? ': start one with the worker role' : ''}. ${describeWaiting(situation)}`,
    })
  const certificates = seesAll ? judgeCertificates(workers, nowMs) : []
  return [...found, ...judgeFaults(alive, situation), ...judgeRelays(workers, situation), ...certificates]
}

/** While no write is possible, nothing is queued or sent. */
function judgeStore({ findings, queue, seesAll }: NodeSituation): Condition[] {
  const fault = findings.find(({ check, ok }) => check === 'writes' && !ok)
  if (fault === undefined) return []
  const disk = findings.find(({ check, ok }) => check === 'disk' && !ok)
  const why = seesAll ? ` (${[fault, disk].flatMap((finding) => finding?.detail ?? []).join('; ')})` : ''
  const waiting = queue.depth === 0 ? '' : ` ${counted(queue.depth, 'email waits', 'emails wait')}.`
  const message = `The database cannot be written${why}, so requests are answered 503 and nothing is sent.${waiting} Both resume by themselves once it can. Meanwhile processes cannot report, and nothing is known of relays.`
  return [{ kind: 'store_failing', message }]
}

/** Each thing that a process cannot do now. */
function judgeFaults(alive: readonly NodeResource[], { nowMs, seesAll }: NodeSituation): Condition[] {
  return alive.flatMap(({ faults, machine }) =>
    faults.flatMap(({ reason, since, what }): Condition[] => {
      const age = describeDuration(nowMs - Date.parse(since))
      if (what === 'queueing') {
        const which = seesAll ? ` by the process on ${machine} for ${age}: ${reason}.` : '.'
        return [
          {
            kind: 'store_failing',
            message: `Requests are answered 503${which} Their emails are not queued.`,
          },
        ]
      }
      const message = `The process on ${machine} has not been able to write its log for ${age}: ${reason}. Mail is not affected. Make room, or restart the program that reads its standard output.`
      return seesAll ? [{ kind: 'log_lost', message, subject: machine }] : []
    }),
  )
}

const findWaits = ({ queue }: NodeSituation) => queue.apps.filter(({ queued, deferred }) => queued + deferred > 0)

/** Held mail waits for its app. */
function countWaiting(situation: NodeSituation): number {
  const held = findWaits(situation).filter((app) => app.held)
  return Math.max(0, situation.queue.depth - held.reduce((sum, { queued, deferred }) => sum + queued + deferred, 0))
}

/** Whether mail of an app without a transport waits. */
const waitsForService = (situation: NodeSituation): boolean =>
  countWaiting(situation) > 0 &&
  !findWaits(situation).every(
    ({ app, held }) =>
      held || situation.apps.some(({ id, settings }) => id === app && settings.transport !== undefined),
  )

/** `149 emails from acme, globex and 3 more are waiting; the first link expires in 4 min.` */
function describeWaiting(situation: NodeSituation): string {
  const { apps, expired, expiredFrom, nowMs, queue } = situation
  const { firstExpiresAt } = queue
  const depth = countWaiting(situation)
  if (depth === 0) return 'No mail is waiting yet.'
  const waiting = findWaits(situation).flatMap(({ held, slug }) => (held || slug === null ? [] : [slug]))
  const whose = apps.length > 1 && waiting.length > 0 ? ` from ${nameAll(waiting)}` : ''
  const leftMs = firstExpiresAt === null ? null : Date.parse(firstExpiresAt) - nowMs
  const first = leftMs === null || leftMs <= 0 ? '' : `; the first link expires in ${describeDuration(leftMs)}`
  const lost = [...expired.values()].reduce((sum, count) => sum + count, 0)
  const gone = lost === 0 ? '' : ` ${counted(lost, 'link has', 'links have')} expired since ${showMinute(expiredFrom)}.`
  return `${counted(depth, 'email')}${whose} ${depth === 1 ? 'is' : 'are'} waiting${first}.${gone}`
}

const showMinute = (minute: number): string => `${new Date(minute * minuteMs).toISOString().slice(11, 16)}Z`
/** `11:38:06Z (2 min)` */
const showSince = (since: number, nowMs: number): string =>
  `${new Date(since).toISOString().slice(11, 19)}Z (${describeDuration(nowMs - since)})`

/** A process reports every ten seconds. */
const staleMs = 15_000

function judgeRelays(workers: readonly NodeResource[], situation: NodeSituation): Condition[] {
  const { nowMs, seesAll } = situation
  const all = groupRelays(workers)
  const relays = ofService(all)
  const down = relays.filter(({ failing }) => failing.length > 0)
  const ofTransports = judgeTransports(all, situation)
  const since = stoppedSince(workers)
  if (since !== null) {
    const what = all.length === relays.length ? 'Nothing' : 'No mail of apps without a transport'
    const message = `${what} has been delivered since ${showSince(since, nowMs)}: ${describeStop(down, situation)}. ${describeWaiting(situation)} Sending resumes by itself once a relay accepts mail.`
    return [{ kind: 'no_relay', message, since }, ...ofTransports]
  }
  const isUntried = relays.length > 0 && relays.every(({ views }) => views.every(({ tried }) => !tried))
  if (isUntried && waitsForService(situation))
    return [{ kind: 'relay_untried', message: describeUntried(workers, situation) }, ...ofTransports]
  if (!seesAll) return ofTransports
  const others = 'Mail goes through the others.'
  return [...down.map((relay) => describeDown(relay, nowMs, others)), ...ofTransports]
}

/** While no relay of a transport takes mail, the mail of its apps waits. */
function judgeTransports(all: readonly GroupedRelay[], situation: NodeSituation): Condition[] {
  const { apps, nowMs, seesAll } = situation
  return [...Map.groupBy(all, ({ name }) => transportOf(name))].flatMap(([transport, relays]): Condition[] => {
    const down = relays.filter(({ failing }) => failing.length > 0)
    if (transport === null || down.length === 0) return []
    const users = apps.filter(({ settings }) => settings.transport === transport).map(({ slug }) => slug)
    const isStopped = relays.every(({ isDown }) => isDown)
    const urgent = isStopped && users.length > 0
    if (!seesAll) {
      const message = `The mail of ${nameAll(users)} waits: ${describeStop(down, situation)}.`
      return urgent ? [{ kind: 'relay_down', message, apps: users, urgent }] : []
    }
    const waits = users.length > 0 ? `The mail of ${nameAll(users)} waits.` : 'No app uses it.'
    const others = isStopped ? waits : 'Mail goes through the others.'
    return down.map((relay) => ({ ...describeDown(relay, nowMs, others), apps: users, urgent }))
  })
}

/** @param whenDown what follows for mail if no process can use it */
function describeDown(relay: GroupedRelay, nowMs: number, whenDown: string): Condition {
  const fault = isReply(relay.reason) ? `has answered “${relay.reason}”` : 'has failed'
  const from = relay.isDown ? '' : ` (seen from ${relay.failing.map(({ machine }) => machine).join(', ')})`
  const others = relay.isDown ? whenDown : 'Other processes can reach it, and are sending.'
  const message = `The relay ${relay.name}${from} ${fault} since ${showSince(relay.since, nowMs)}${describeMore(relay, nowMs)}. ${others}`
  return { kind: 'relay_down', message, subject: relay.name }
}

/** Why no relay takes mail. An access for some apps sees no names, nor a reply that may name other apps. */
function describeStop(down: readonly GroupedRelay[], { nowMs, seesAll }: NodeSituation): string {
  if (!seesAll) {
    const reply = down.map(({ reason }) => reason).find(isReply)
    return reply === undefined ? 'no relay can be used' : `the relay answers ${readCodes(reply)}`
  }
  const texts = down.map((relay) => {
    const fault = isReply(relay.reason) ? `answers “${relay.reason}”` : 'cannot be used'
    return `the relay ${relay.name} ${fault}${describeMore(relay, nowMs)}`
  })
  return texts.join('; ')
}

/** Advice on a reply, or the reason without one; and its age if the process has been silent. */
function describeMore({ failing, reason }: GroupedRelay, nowMs: number): string {
  const advice = isReply(reason) ? adviseOn(reason) : null
  const why = isReply(reason) ? (advice === null ? '' : ` (${advice})`) : `: ${withAdvice(reason)}`
  const ageMs = nowMs - Math.max(...failing.map(({ seenAt }) => Date.parse(seenAt)))
  return ageMs > staleMs ? `${why} (as its process reported ${describeDuration(ageMs)} ago)` : why
}

function describeUntried(workers: readonly NodeResource[], situation: NodeSituation): string {
  const { nowMs, queue } = situation
  const startedAt = Math.min(...workers.map((worker) => Date.parse(worker.startedAt)))
  const nextMs = queue.nextAttemptAt === null ? 0 : Date.parse(queue.nextAttemptAt) - nowMs
  const next = nextMs <= 0 ? '' : ` The next attempt is in ${describeDuration(nextMs)}.`
  return `Nothing has been sent since the start ${describeDuration(nowMs - startedAt)} ago, so it is not known whether a relay answers. ${describeWaiting(situation)}${next}`
}

function judgeCertificates(workers: readonly NodeResource[], nowMs: number): Condition[] {
  const relays = workers.flatMap(({ relays }) => relays)
  const expiries = relays.flatMap(({ certificateExpiresAt, name }) => {
    const leftMs = Date.parse(certificateExpiresAt ?? '') - nowMs
    return leftMs < certificateWarningMs ? [{ name, leftMs }] : []
  })
  return [...Map.groupBy(expiries, ({ name }) => name)].map(([name, found]) => {
    const leftMs = Math.min(...found.map((one) => one.leftMs))
    const when = leftMs > 0 ? `expires in ${describeDuration(leftMs)}` : 'has expired'
    const message = `The certificate that the relay ${name} needs for its tokens ${when}: upload a new one to the application, then change \`key\` in the relay's URL and restart. Without it, nothing is sent through this relay.`
    return { kind: 'certificate_expires', message, subject: name }
  })
}
