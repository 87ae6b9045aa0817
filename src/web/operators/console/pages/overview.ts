/** The overview: is everything fine now, and how does it run? Without an app, the first steps. */
import { formatCount, sumCounts } from '../../../../domain/counts.ts'
import type { Answer } from '../../../../management/operations.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { activityCharts, chooseRange, type Range, ranges } from '../activity-charts.ts'
import { type Cell, region, section, share, table, tabs, took, withFilters } from '../parts.ts'
import { isKept, renderRefusalName } from '../refusal-titles.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { renderAppTable } from './app-table.ts'
import { firstSteps } from './first-steps.ts'
import { renderEarlier, renderProblems, renderVerdict } from './problems.ts'

type Status = Answer<'status.show'>

export async function overview(visit: Visit): Promise<PageAnswer> {
  const { live, query, seesAll } = visit
  const range = chooseRange(query)
  const draw = () => drawOverview(visit, range)
  // It does not depend on the role, so all people of the whole service share it.
  const body = seesAll ? await live.share(`overview ${range.name}`, draw) : await draw()
  if (body === null) return firstSteps(visit)
  return { title: 'Overview', body, nav: 'overview', live: 'service' }
}

/** Null without an app. */
async function drawOverview(visit: Visit, range: Range): Promise<Html | null> {
  const [status, activity, usage] = await Promise.all([
    visit.get('status.show', {}),
    visit.get('activity.show', { query: range.query(visit.now) }),
    visit.get('usage.list', {}),
  ])
  if (status.apps === 0) return null
  return html`${region('attention', html`${renderVerdict(status, visit)}${renderProblems(status.attention, '/')}${renderEarlier(status.earlier, visit, '/')}`)}
${region('numbers', renderNumbers(status, visit))}
${region('apps', section('Apps, today (UTC)', renderAppTable(usage, status)))}
${tabs(
  'Time of the charts',
  ranges.map(({ name, label }) => [label, `/?range=${name}`]),
  range.label,
)}
${region('charts', activityCharts(activity, range, { nodes: status.nodes, outages: status.outages, now: visit.now }))}
${region('answers', renderAnswers(activity.total, range))}`
}

function renderNumbers({ lastHour, queue, today }: Status, { isDev }: Visit): Html {
  const { depth, states } = queue
  // The states are counted once a minute in a deep queue.
  const areCurrent = sumCounts(states) === depth
  const failed = lastHour === null ? today.failed : sumCounts(lastHour.failed)
  const { delivered, expired } = lastHour ?? today
  const bounced = lastHour === null ? 0 : sumCounts(lastHour.bounced)
  const since = lastHour === null ? 'today' : 'last hour'
  const ended = failed + expired + delivered
  const within = lastHour === null ? '' : `&within=60`
  const took95 =
    lastHour === null || lastHour.p95Ms === null
      ? none
      : tile(
          'Delivery time',
          `≤ ${took(lastHour.p95Ms)}`,
          `95th percentile; median ≤ ${took(lastHour.p50Ms)}`,
          '/delivery',
        )
  return html`<div class="tiles">
${tile('Waiting', formatCount(depth), depth === 0 ? 'nothing' : areCurrent ? describeStates(states) : '', '/delivery')}
${tile(`${isDev ? 'Captured' : 'Delivered'}, ${since}`, formatCount(delivered), lastHour === null || delivered < 60 ? '' : `${formatCount(Math.round(delivered / 60))} a minute`, `/emails?state=delivered${within}`)}
${took95}
${tile(`Failed, ${since}`, formatCount(failed), ended === 0 ? '' : `${share(failed, ended)} of finished emails`, `/emails?state=failed${within}`)}
${tile(`Expired, ${since}`, formatCount(expired), 'before they could be sent', `/emails?state=expired${within}`)}
${bounced === 0 ? none : tile(`Bounced, ${since}`, formatCount(bounced), 'reported after delivery', '/emails?state=bounced&within=10080')}
</div>`
}

const describeStates = ({ queued, sending, deferred }: Status['queue']['states']): string =>
  Object.entries({ queued, sending, deferred })
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${formatCount(count)} ${state}`)
    .join(' · ')

const tile = (label: string, value: string, note: string, address: string): Html =>
  html`<a class="tile" href="${address}"><span class="label">${label}</span><b>${value}</b><span class="soft">${note}</span></a>`

type Counts = Answer<'activity.show'>['total']

function renderAnswers(counts: Counts, { minutes }: Range): Html {
  const { accepted, deferred, delivered, refused, replayed } = counts
  const emails = (state: string, text: Cell): Html =>
    html`<a href="/emails?state=${state}&within=${minutes}">${text}</a>`
  const answers = [
    ['accepted', accepted] as const,
    ...(replayed > 0 ? [['replayed (idempotency key)', replayed] as const] : []),
    ...Object.entries(refused)
      .toSorted(([, a], [, b]) => b - a)
      .map(([code, count]) => {
        const name = renderRefusalName(code)
        return [isKept(code) ? html`<a href="/refusals?code=${code}">${name}</a>` : name, count] as const
      }),
  ]
  const outcomes = [
    [emails('delivered', 'delivered'), delivered] as const,
    [emails('deferred', 'deferred (attempts)'), deferred] as const,
    [emails('expired', 'expired'), counts.expired] as const,
    ...Object.entries(counts.failed).map(
      ([reason, count]) => [emails('failed', `failed: ${reason.replaceAll('_', ' ')}`), count] as const,
    ),
    ...Object.entries(counts.bounced).map(
      ([cause, count]) => [emails('bounced', `bounced: ${cause.replaceAll('_', ' ')}`), count] as const,
    ),
    [emails('complained', 'complaints'), counts.complained] as const,
    [emails('suppressed', 'suppressed: not sent'), counts.suppressed] as const,
  ]
  const replies = Object.entries(counts.replies).map(
    ([reply, count]) =>
      [html`<a href="${withFilters('/emails', { reply, within: String(minutes) })}">${reply}</a>`, count] as const,
  )
  const rows = (entries: readonly (readonly [Cell, number])[]) =>
    entries.filter(([, count]) => count > 0).map(([name, count]) => [name, formatCount(count)])
  const options = { numbers: [1], empty: 'Nothing in this period.' }
  return html`<div class="pair">${section('API responses', table('API responses', ['Response', 'Requests'], rows(answers), options))}
${section(
  'Outcomes',
  html`${table('Outcomes', ['Outcome', 'Emails'], rows(outcomes), options)}${replies.length === 0 ? none : html`<h3>Relay replies</h3>${table('Relay replies', ['Reply', 'Attempts'], rows(replies), options)}`}`,
)}
</div>`
}
