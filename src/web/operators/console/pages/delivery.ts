/**
 * Delivery: how much waits and how old it is, the relays as each process sees them, what comes back about
 * delivered emails, and the processes.
 */

import { queueAgesMs, reportedDays } from '../../../../domain/bounds.ts'
import { counted, formatCount, sumCounts } from '../../../../domain/counts.ts'
import { nameNetworkFault } from '../../../../domain/delivery/network-fault.ts'
import { captureRelayName } from '../../../../domain/delivery/relay-state.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { NodeResource } from '../../../../management/resources.ts'
import { isStop } from '../../../../management/service/condition.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { ranges, relayCharts } from '../activity-charts.ts'
import { age, button, due, facts, linkButton, mark, meter, region, section, shortTime, table, took } from '../parts.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { describeStopEnd } from './email-rows.ts'
import { renderEarlier, renderProblems } from './problems.ts'
import { renderRelayChecks } from './settings.ts'

type Queue = Answer<'status.show'>['queue']

export async function showDelivery(visit: Visit): Promise<PageAnswer> {
  const [range] = ranges
  const [{ attention, checks, earlier, nodes, outages, queue }, activity] = await Promise.all([
    visit.get('status.show', {}),
    visit.seesAll ? visit.get('activity.show', { query: range.query(visit.now) }) : null,
  ])
  const body = html`<div class="title"><h1>Delivery</h1>${visit.may('operator') && queue.states.deferred > 0 && !attention.some(isStop) ? linkButton('/emails?confirm=retry#confirm', `Retry ${formatCount(queue.states.deferred)} deferred…`) : none}</div>
${region('attention', html`${renderProblems(attention, '/delivery')}${renderEarlier(earlier, visit, '/delivery')}`)}
${visit.seesAll ? region('relays', section('Relays', html`${renderRelays(nodes, visit)}${renderRelayChecks(checks, visit.now)}${visit.may('operator') ? button('/settings/checks', 'Check the relays now', { fields: { back: '/delivery' } }) : none}`)) : none}
${activity === null ? none : region('relay-charts', relayCharts(activity, range, { nodes, outages, now: visit.now }))}
${region('queue', section('Waiting', renderQueue(queue, describeStopEnd(attention.filter(isStop)), visit), { note: html`counted ${age(queue.countedAt, visit.now)}` }))}
${visit.seesAll ? region('reports', section('Reports', await renderReports(visit))) : none}
${section('Suppressions', await renderSuppressions(visit))}
${visit.seesAll ? region('processes', section('Processes', renderProcesses(nodes, visit))) : none}`
  return { title: 'Delivery', body, nav: 'delivery', live: 'service' }
}

const ageHeads = [...queueAgesMs.map((ms) => `under ${took(ms)}`), 'older']

function renderQueue(
  { apps, depth, firstExpiresAt, max, nextAttemptAt, oldestAcceptedAt, states }: Queue,
  stopEnd: string | null,
  { now, seesAll }: Visit,
): Html {
  const total = html`<dl>
<dt>Emails</dt>
<dd>${formatCount(depth)}${seesAll ? html` of at most ${formatCount(max)} ${meter(depth, max, 'Waiting emails')}` : none}</dd>
<dt>States</dt>
<dd>${formatCount(states.queued)} queued · ${formatCount(states.sending)} sending · ${formatCount(states.deferred)} deferred</dd>
${firstExpiresAt === null ? none : html`<dt>First link expires</dt><dd>${age(firstExpiresAt, now)}</dd>`}
${oldestAcceptedAt === null ? none : html`<dt>Oldest</dt><dd>accepted ${age(oldestAcceptedAt, now)}</dd>`}
${nextAttemptAt === null ? none : html`<dt>Next attempt</dt><dd>${stopEnd === null ? due(nextAttemptAt, now) : `when ${stopEnd}`}</dd>`}</dl>`
  const occurs = (_: unknown, age: number) => apps.some(({ ages }) => (ages[age] ?? 0) > 0)
  const rows = apps.map(({ app, slug, held, queued, sending, deferred, ages }) => [
    slug === null ? html`<code>${app}</code> (deleted)` : html`<a href="/emails?app=${slug}">${slug}</a>`,
    held ? mark('off', 'held') : mark('quiet', 'active'),
    ...[queued, sending, deferred, ...ages.filter(occurs)].map((count) => (count === 0 ? '–' : formatCount(count))),
  ])
  const heads = ['App', 'Status', 'Queued', 'Sending', 'Deferred', ...ageHeads.filter(occurs)]
  const numbers = heads.map((_, index) => index).slice(2)
  return html`${total}${table('Waiting emails by app and age', heads, rows, { numbers, empty: 'The queue is empty.' })}`
}

function renderRelays(nodes: readonly NodeResource[], { now }: Visit): Html {
  const rows = nodes.flatMap(({ machine, alive, relays }) =>
    relays.map(({ name, available, since, reason, connections, lastOutage, tried }) => [
      html`<b>${name === captureRelayName ? 'the dev inbox' : name}</b>`,
      alive ? renderRelayState({ available, tried }) : mark('off', 'unknown'),
      html`${shortTime(since, now)} <span class="soft">${age(since, now)}</span>${reason === '' ? none : html`<br>${renderFault(reason)}<span class="reply">${reason}</span>`}${renderOutage(lastOutage, now)}`,
      available ? describeConnections(connections) : '–',
      machine,
    ]),
  )
  const empty = 'No process with the worker role is running, so nothing is sent.'
  return table('Relays', ['Relay', 'State', 'Since', 'Connections', 'Seen from'], rows, { empty })
}

function renderOutage(outage: NodeResource['relays'][number]['lastOutage'], now: number): Html {
  if (outage === null) return none
  const { from, until } = outage
  return html`<br><span class="soft">last outage ${shortTime(from, now)} – ${shortTime(until, now)}</span>`
}

/** A fault of the network in words, in front of its code. */
function renderFault(reason: string): Html {
  const words = nameNetworkFault(reason)
  return words === null ? none : html`${words} `
}

/** A relay that asked to slow down, or refuses for now by policy, gets fewer connections for a while. */
const describeConnections = ({ allowed, busy, max, open }: NodeResource['relays'][number]['connections']) =>
  `${open} open, ${busy} busy, at most ${allowed}${allowed < max ? ` of ${max} for now, after temporary refusals` : ''}`

type RelayState = Pick<NodeResource['relays'][number], 'available' | 'tried'>

export function renderRelayState({ available, tried }: RelayState): Html {
  if (!available) return mark('bad', 'unavailable')
  return mark('quiet', tried ? 'available' : 'not tried yet')
}

async function renderSuppressions({ get }: Visit): Promise<Html> {
  const { items, next } = await get('suppression.list', {})
  const count = next === null ? counted(items.length, 'recipient') : `${formatCount(items.length)} recipients or more`
  const verb = items.length === 1 && next === null ? 'gets' : 'get'
  return html`<p>${count} ${verb} no mail for a while: the mailbox does not exist, an email was reported as spam, or an operator asked for it. <a href="/suppressions">Show the suppressions</a></p>`
}

/** Reports of mail servers and recipients about delivered emails. */
async function renderReports({ get, now }: Visit): Promise<Html> {
  const reports = await get('report.show', {})
  const { apps, bounceAddress, bounced, bounceListener, complained, reportsListener } = reports
  const toEmails = (state: string, text: string): Html =>
    html`<a href="/emails?state=${state}&within=10080">${text}</a>`
  const causes = Object.entries(bounced)
    .toSorted(([, a], [, b]) => b - a)
    .map(([cause, count]) => `${formatCount(count)} ${cause.replaceAll('_', ' ')}`)
  const own = apps.map((slug, n) => html`${n === 0 ? '' : ', '}<a href="/apps/${slug}/settings">${slug}</a>`)
  const sources = reports.sources.map(
    ({ heardAt, source }, n) => html`${n === 0 ? '' : ' · '}${source} ${age(heardAt, now)}`,
  )
  return facts([
    ['Bounce address', bounceAddress ?? 'none: bounces go to the senders (POSTERN_BOUNCE_ADDRESS)'],
    ['Apps with their own', apps.length === 0 ? null : html`${own}`],
    ['Bounce listener', bounceListener ?? 'none in this process (POSTERN_BOUNCE_LISTEN)'],
    [
      'Reports listener',
      reportsListener === null
        ? 'none in this process (POSTERN_REPORTS_LISTEN)'
        : `${reportsListener}, for ${reports.providers.join(', ')}`,
    ],
    ['Last reports', sources.length === 0 ? 'none yet' : html`${sources}`],
    [
      `Last ${reportedDays} days`,
      html`${toEmails('bounced', `${formatCount(sumCounts(bounced))} bounced`)} · ${toEmails('complained', counted(complained, 'complaint'))}`,
    ],
    ['Causes', causes.length === 0 ? null : causes.join(' · ')],
  ])
}

function renderProcesses(nodes: readonly NodeResource[], { now }: Visit): Html {
  const rows = nodes.map(({ machine, version, roles, startedAt, seenAt, alive }) => [
    html`<b>${machine}</b>`,
    alive ? mark('quiet', 'running') : mark('bad', 'not reporting'),
    version,
    roles.join(', '),
    age(startedAt, now),
    age(seenAt, now),
  ])
  const empty = 'No process has reported yet; each does within a few seconds.'
  return table('Processes', ['Machine', 'State', 'Version', 'Roles', 'Started', 'Last seen'], rows, { empty })
}
