/** The overview: what needs somebody, then how the service runs. Without an app, the first steps instead. */
import { formatCount, sumCounts } from '../../../../domain/counts.ts'
import type { Answer } from '../../../../management/operations.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { activityCharts, type Range, ranges } from '../activity-charts.ts'
import { meter, region, section, share, statusMark, table, tabs, took } from '../parts.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { firstSteps } from './first-steps.ts'

type Status = Answer<'status.show'>

export async function overview(visit: Visit): Promise<PageAnswer> {
  const { live, query, seesAll } = visit
  const [first, ...others] = rangesFor(visit)
  const range = others.find(({ name }) => name === query.get('range')) ?? first
  const draw = () => drawOverview(visit, range)
  // It does not depend on the role, so all people of the whole service share it.
  const body = seesAll ? await live.share(`overview ${range.name}`, draw) : await draw()
  if (body === null) return firstSteps(visit)
  return { title: 'Overview', body, nav: 'overview', live: 'service' }
}

/** Null without an app. */
async function drawOverview(visit: Visit, range: Range): Promise<Html | null> {
  const status = await visit.get('status.show', {})
  if (status.apps === 0) return null
  const activity = await visit.get('activity.show', { query: range.query(visit.now) })
  const usage = await visit.get('usage.list', {})
  return html`<div class="title"><h1>Overview</h1></div>
${region('attention', renderAttention(status))}
${region('numbers', renderNumbers(status))}
${tabs(
  'Time of the charts',
  rangesFor(visit).map(({ name, label }) => [label, `/?range=${name}`]),
  range.label,
)}
${region('charts', activityCharts(activity, range, visit.now))}
${region('answers', renderAnswers(activity.total))}
${region('apps', section('Apps, today (UTC)', renderApps(usage)))}`
}

/** The counts of apps are kept by the hour. */
const rangesFor = ({ seesAll }: Visit): readonly [Range, ...Range[]] =>
  seesAll ? ranges : [ranges[1], ranges[2]]

/** Where each condition is looked into. */
const places: Partial<
  Record<Status['attention'][number]['kind'], (app: string) => readonly [string, string]>
> = {
  no_worker: () => ['/delivery', 'Delivery'],
  no_relay: () => ['/delivery', 'Delivery'],
  relay_down: () => ['/delivery', 'Delivery'],
  process_silent: () => ['/delivery', 'Delivery'],
  mail_late: () => ['/delivery', 'Delivery'],
  queue_nearly_full: () => ['/delivery', 'Delivery'],
  check_failed: () => ['/settings', 'Checks'],
  requests_refused: () => ['/apps', 'Apps'],
  links_expired: (app) => [`/emails?app=${app}&state=expired`, 'The emails'],
  mail_failed: (app) => [`/emails?app=${app}&state=failed`, 'The emails'],
  daily_limit_near: (app) => [`/apps/${app}/settings#daily`, 'Limits'],
  mail_held: (app) => [`/apps/${app}/settings`, 'Settings of the app'],
  key_expires: (app) => [`/apps/${app}/keys`, 'Keys'],
  setting_invalid: (app) => [`/apps/${app}/links`, 'Links'],
}

/** The conditions in which no mail is sent, or requests are lost. */
const urgent = ['no_worker', 'no_relay', 'requests_turned_away', 'mail_late', 'links_expired']

export function renderAttention({ attention }: Pick<Status, 'attention'>): Html {
  if (attention.length === 0)
    return html`<p class="no-problems" role="status"><span aria-hidden="true">●</span> No problems found.</p>`
  const items = attention.map(({ kind, message, app }) => {
    const [address, label] = places[kind]?.(app ?? '') ?? []
    const link = address === undefined ? none : html`<a href="${address}">${label ?? ''}</a>`
    return html`<li class="${urgent.includes(kind) ? 'urgent' : ''}"><span>${message}</span> ${link}</li>`
  })
  return html`<section class="attention" role="status" aria-label="Needs attention"><ul>${items}</ul></section>`
}

function renderNumbers({ lastHour, queue, today }: Status): Html {
  const { depth, states } = queue
  const hour = lastHour ?? null
  const failed = hour === null ? today.failed : sumCounts(hour.failed)
  const expired = hour?.expired ?? today.expired
  const delivered = hour?.delivered ?? today.delivered
  const since = hour === null ? 'today' : 'last hour'
  return html`<div class="tiles">
${tile('Waiting', formatCount(depth), `${formatCount(states.sending)} sending · ${formatCount(states.deferred)} deferred`, '/delivery')}
${tile(`Delivered, ${since}`, formatCount(delivered), hour === null || delivered < 60 ? '' : `${formatCount(Math.round(delivered / 60))} a minute`, '/emails?state=delivered')}
${hour === null ? none : tile('Delivery time', took(hour.p95Ms), `95 % of the last hour within · half within ${took(hour.p50Ms)}`, '/delivery')}
${tile(`Failed, ${since}`, formatCount(failed), `${share(failed, failed + expired + delivered)} of those that ended`, '/emails?state=failed')}
${tile(`Expired, ${since}`, formatCount(expired), 'links that ended unsent', '/emails?state=expired')}
</div>`
}

const tile = (label: string, value: string, note: string, address: string): Html =>
  html`<a class="tile" href="${address}"><span class="label">${label}</span><b>${value}</b><span class="soft">${note}</span></a>`

type Counts = Answer<'activity.show'>['total']

function renderAnswers({ accepted, deferred, delivered, failed, refused, replayed, replies }: Counts): Html {
  const answers = [
    ['accepted', accepted] as const,
    ...(replayed > 0 ? [['replayed by an idempotency key', replayed] as const] : []),
    ...Object.entries(refused).toSorted(([, a], [, b]) => b - a),
  ]
  const outcomes = [
    ['delivered', delivered] as const,
    ['deferred', deferred] as const,
    ...Object.entries(failed).map(([reason, count]) => [`failed: ${reason}`, count] as const),
    ...Object.entries(replies).map(([reply, count]) => [reply, count] as const),
  ]
  const rows = (entries: readonly (readonly [string, number])[]) =>
    entries.filter(([, count]) => count > 0).map(([name, count]) => [name, formatCount(count)])
  const options = { numbers: [1], empty: 'Nothing in this time.' }
  return html`<div class="pair">${section('Answers to apps', table('Answers to apps', ['answer', 'requests'], rows(answers), options))}
${section('Relays', table('Outcomes and replies of relays', ['outcome or reply', 'count'], rows(outcomes), options))}
</div>`
}

function renderApps({ items }: Answer<'usage.list'>): Html {
  const rows = items
    .toSorted((a, b) => b.accepted - a.accepted)
    .map(({ slug, status, accepted, delivered, failed, expired, refused, dailyLimit }) => [
      html`<a href="/apps/${slug}">${slug}</a>`,
      statusMark(status),
      formatCount(delivered),
      share(delivered, delivered + failed + expired),
      formatCount(sumCounts(refused)),
      html`${meter(accepted, dailyLimit, `${accepted} of ${dailyLimit} emails`)} ${share(accepted, dailyLimit)}`,
    ])
  return table('Apps', ['app', 'status', 'delivered', 'rate', 'refused', 'daily limit'], rows, {
    numbers: [2, 3, 4],
  })
}
