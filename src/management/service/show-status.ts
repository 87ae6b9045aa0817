/** Shows what needs attention now, and how the service runs. */

import { type Static, Type } from 'typebox'
import { appMinutesKept, keepDays } from '../../domain/bounds.ts'
import { sumCounts } from '../../domain/counts.ts'
import { recentOutages } from '../../domain/delivery/kept-outages.ts'
import type { Outage } from '../../domain/delivery/relay-state.ts'
import { dayMs } from '../../domain/duration.ts'
import type { Finding } from '../../store/store.ts'
import { ActivityCounts } from '../activity.ts'
import { findAuthHookFaults } from '../auth-hooks/find-auth-hook-faults.ts'
import { isInScope } from '../operation/access.ts'
import { operation } from '../operation/operation.ts'
import { done } from '../operation/result.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { FindingResource, iso, NodeResource, presentNode, presentUsage, type UsageResource } from '../resources.ts'
import { findWebhookFaults } from '../webhooks/judge-webhooks.ts'
import { findAttention } from './attention.ts'
import { AttentionResource, attentionKind, concernedApps } from './condition.ts'
import { listOutages, withoutRelay } from './outages.ts'
import { presentQueue, QueueResource } from './queue.ts'
import { readActivity } from './read-activity.ts'

const StatusResource = closed({
  ok: Type.Boolean({ description: 'True if nothing needs attention.' }),
  attention: Type.Array(AttentionResource, { description: 'Current conditions, the most urgent first.' }),
  earlier: Type.Array(
    closed({
      kind: attentionKind(),
      message: Type.String(),
      apps: concernedApps(),
      from: time(),
      until: time(),
    }),
    { description: `Conditions of the last ${appMinutesKept / 60} hours that are over, newest first.` },
  ),
  today: closed({
    accepted: Type.Integer(),
    delivered: Type.Integer(),
    failed: Type.Integer(),
    expired: Type.Integer(),
    refused: Type.Integer(),
  }),
  lastHour: orNull(ActivityCounts),
  apps: Type.Integer(),
  nodes: Type.Array(NodeResource, {
    description: 'The processes of the service; empty for a token that is limited to some apps.',
  }),
  outages: Type.Array(closed({ relay: Type.String(), from: time(), until: time(), reason: Type.String() }), {
    description: `Outages of relays that ended in the last ${appMinutesKept / 60} hours; without the name of the relay for a token that is limited to some apps.`,
  }),
  queue: QueueResource,
  checks: orNull(
    closed({
      at: time(
        `When the checks ran last. They are kept for ${keepDays} days, and not shown to a token that is limited to some apps.`,
      ),
      findings: Type.Array(FindingResource),
    }),
  ),
})
export type StatusResource = Static<typeof StatusResource>

const keyWarningMs = 7 * dayMs

export const showStatus = operation({
  method: 'GET',
  path: '/v1/status',
  role: 'reader',
  summary:
    'Shows what needs attention now, the counts of today (UTC) and the last hour, the processes with their relays, and the queue.',
  answer: StatusResource,
  async run(context) {
    const { store, access } = context
    const now = store.now()
    const scope = access.apps && [...access.apps]
    const seesAll = scope === null
    const [
      allApps,
      allNodes,
      usage,
      reported,
      sources,
      allExpiring,
      counted,
      findings,
      authHookKeys,
      webhooks,
      kept,
      past,
    ] = await Promise.all([
      store.listApps(),
      store.listNodes(),
      store.readUsageToday(scope),
      store.readReportedUsage(scope),
      store.listReportSources(),
      store.listExpiringKeys(now + keyWarningMs),
      context.queue.get(),
      context.findings.get(),
      store.listAuthHookKeys(),
      store.listReceivers(),
      store.findCheck('service'),
      store.findCheck('outages'),
    ])
    const apps = allApps.filter(({ id }) => isInScope(access, id))
    const nodes = allNodes.map((node) => presentNode(node, now))
    const expiring = allExpiring.filter(({ app }) => isInScope(access, app))
    const queue = presentQueue(context, counted, apps)
    const all = listOutages(nodes, recentOutages(past, now))
    const outages = seesAll ? all : all.map(withoutRelay)
    const activity = await readActivity(context, { apps, nodes, outages })
    const attention = findAttention({
      ...{ seesAll, apps, usage, reported, sources, expiring, queue, nodes, outages, findings, ...activity.now },
      records: context.records.get(),
      authHooks: findAuthHookFaults({ ...context, linksBaseUrl: context.links.baseUrl }, apps, authHookKeys),
      webhooks: findWebhookFaults(apps, webhooks, now),
      late: counted.late,
      nowMs: now,
    })
    return done({
      ok: attention.length === 0,
      attention,
      earlier: activity.earlier,
      today: countToday(apps.map(({ id }) => presentUsage({ day: '', counts: usage.get(id) ?? {} }))),
      lastHour: seesAll ? activity.lastHour : null,
      apps: apps.length,
      nodes: seesAll ? nodes : [],
      outages: presentOutages(outages),
      queue,
      checks: seesAll && kept !== null ? { at: iso(kept.at), findings: kept.result as Finding[] } : null,
    })
  },
})

const presentOutages = (outages: readonly Outage[]): StatusResource['outages'] =>
  outages.map(({ from, reason, relay, until }) => ({ relay, reason, from: iso(from), until: iso(until) }))

function countToday(apps: readonly UsageResource[]): StatusResource['today'] {
  const sum = (pick: (usage: UsageResource) => number) => apps.reduce((all, usage) => all + pick(usage), 0)
  return {
    accepted: sum((usage) => usage.accepted),
    delivered: sum((usage) => usage.delivered),
    failed: sum((usage) => usage.failed),
    expired: sum((usage) => usage.expired),
    refused: sum(({ refused }) => sumCounts(refused)),
  }
}
