/** Finds what is wrong with processes and relays: pure, from what the processes say of themselves. */
import { counted } from '../../domain/counts.ts'
import { isReply } from '../../domain/delivery/smtp-reply.ts'
import { dayMs, describeDuration } from '../../domain/duration.ts'
import { withAdvice } from '../../services/advice.ts'
import type { NodeResource } from '../resources.ts'
import { type Attention, type Condition, isStop, type Situation } from './condition.ts'

/** A new certificate must be uploaded to the provider, often by somebody else. */
const certificateWarningMs = 30 * dayMs

/** A process that has been silent for longer is not reported any more. */
const silentMaxMs = 3_600_000

type NodeSituation = Pick<Situation, 'seesAll' | 'apps' | 'expired' | 'findings' | 'nodes' | 'nowMs' | 'queue'>

/** Why nothing is sent now. */
export const findStops = (situation: NodeSituation): Attention[] =>
  judgeNodes(situation)
    .filter(isStop)
    .map((stop) => ({ ...stop, apps: [], urgent: true }))

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
    return { kind: 'process_silent', message }
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
  const waiting = queue.depth === 0 ? '' : ` ${counted(queue.depth, 'email')} wait.`
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
      return seesAll ? [{ kind: 'log_lost', message }] : []
    }),
  )
}

const findWaits = ({ queue }: NodeSituation) => queue.apps.filter(({ queued, deferred }) => queued + deferred > 0)

/** Held mail waits for its app. */
function countWaiting(situation: NodeSituation): number {
  const held = findWaits(situation).filter((app) => app.held)
  return Math.max(0, situation.queue.depth - held.reduce((sum, { queued, deferred }) => sum + queued + deferred, 0))
}

/** `149 emails from 5 apps are waiting; the first link expires in 4 min.` */
function describeWaiting(situation: NodeSituation): string {
  const { apps, expired, nowMs, queue } = situation
  const { firstExpiresAt } = queue
  const depth = countWaiting(situation)
  if (depth === 0) return 'No mail is waiting yet.'
  const waiting = findWaits(situation).filter((app) => !app.held).length
  const whose = apps.length > 1 && waiting > 0 ? ` from ${counted(waiting, 'app')}` : ''
  const leftMs = firstExpiresAt === null ? null : Date.parse(firstExpiresAt) - nowMs
  const first = leftMs === null || leftMs <= 0 ? '' : `; the first link expires in ${describeDuration(leftMs)}`
  const lost = [...expired.values()].reduce((sum, count) => sum + count, 0)
  const gone = lost === 0 ? '' : ` ${counted(lost, 'link has', 'links have')} expired already.`
  return `${counted(depth, 'email')}${whose} ${depth === 1 ? 'is' : 'are'} waiting${first}.${gone}`
}

type SeenRelay = NodeResource['relays'][number] & Pick<NodeResource, 'machine' | 'seenAt'>

/** A process reports every ten seconds. */
const staleMs = 15_000

function judgeRelays(workers: readonly NodeResource[], situation: NodeSituation): Condition[] {
  const seen: SeenRelay[] = workers.flatMap(({ machine, relays, seenAt }) =>
    relays.map((relay) => ({ ...relay, machine, seenAt })),
  )
  const byName = Map.groupBy(seen, ({ name }) => name)
  const down = [...byName].flatMap(([name, views]) => {
    const failing = views.filter(({ available }) => !available)
    return failing.length === 0 ? [] : [{ name, failing, isDown: failing.length === views.length }]
  })
  const describe = ({ name, failing }: (typeof down)[number]): string => {
    const since = failing.map((view) => Date.parse(view.since)).sort()[0] ?? situation.nowMs
    const from = workers.length > 1 ? ` (seen from ${failing.map(({ machine }) => machine).join(', ')})` : ''
    const clock = `${new Date(since).toISOString().slice(11, 19)}Z`
    const reason = failing[0]?.reason ?? ''
    const fault = isReply(reason) ? 'has refused mail' : 'has not answered'
    const ageMs = situation.nowMs - Math.max(...failing.map(({ seenAt }) => Date.parse(seenAt)))
    const stale = ageMs > staleMs ? ` (as its process reported ${describeDuration(ageMs)} ago)` : ''
    return `${name}${from} ${fault} for ${describeDuration(situation.nowMs - since)}, since ${clock}${stale}: ${withAdvice(reason)}`
  }
  if (down.length > 0 && down.length === byName.size && down.every(({ isDown }) => isDown)) {
    const which = situation.seesAll ? ` ${down.map(describe).join('; ')}.` : ''
    const isRefused = down.every(({ failing }) => isReply(failing[0]?.reason ?? ''))
    const fault = isRefused ? 'accepts mail' : 'answers'
    const message = `No relay ${fault}, so no mail is sent.${which} ${describeWaiting(situation)} Sending resumes by itself once a relay ${fault}.`
    return [{ kind: 'no_relay', message }]
  }
  if (seen.length > 0 && seen.every(({ tried }) => !tried) && countWaiting(situation) > 0)
    return [{ kind: 'relay_untried', message: describeUntried(workers, situation) }]
  if (!situation.seesAll) return []
  return down.map((relay) => ({
    kind: 'relay_down',
    message: `The relay ${describe(relay)}. ${relay.isDown ? 'Mail goes through the others.' : 'Other processes can reach it, and are sending.'}`,
  }))
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
    return { kind: 'certificate_expires', message }
  })
}
