/** The list of apps, and today's page of one: limits, what was refused, the last emails. */

import { formatCount, sumCounts } from '../../../../domain/counts.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { emailTypeNames, readEmailType } from '../../email-type-names.ts'
import { emailsChart, type Range, ranges } from '../activity-charts.ts'
import {
  age,
  field,
  linkButton,
  meter,
  problem,
  region,
  section,
  select,
  share,
  statusMark,
  table,
  tabs,
} from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { renderEmails } from './emails.ts'

export async function listApps(visit: Visit): Promise<PageAnswer> {
  const { items } = await visit.get('usage.list', {})
  const rows = items.map(({ slug, name, status, accepted, delivered, failed, expired, refused }) => [
    html`<a href="/apps/${slug}">${slug}</a>`,
    name,
    statusMark(status),
    formatCount(accepted),
    share(delivered, delivered + failed + expired),
    formatCount(sumCounts(refused)),
  ])
  const create = visit.may('admin') && visit.seesAll ? linkButton('/new-app', 'New app') : none
  const heads = ['app', 'name', 'status', 'accepted today', 'delivered', 'refused']
  const empty = 'No apps yet. An app is one product that sends sign-in mail.'
  const body = html`<div class="title"><h1>Apps</h1>${create}</div>
${region('apps', section('Today (UTC)', table('Apps', heads, rows, { numbers: [3, 4, 5], empty })))}`
  return { title: 'Apps', body, nav: 'apps', live: 'service' }
}

/** The app of the address; a page of its own if there is none. */
export async function findApp(visit: Visit): Promise<AppResource> {
  return visit.get('app.show', { params: { app: visit.params.app ?? '' } })
}

const appTabs = ['Today', 'Links', 'Look', 'Keys', 'Settings'] as const
type AppTab = (typeof appTabs)[number]

/** The head of every page of an app. */
export function appHead({ slug, name, status }: AppResource, current: AppTab): Html {
  const entries = appTabs.map(
    (tab) => [tab, tab === 'Today' ? `/apps/${slug}` : `/apps/${slug}/${tab.toLowerCase()}`] as const,
  )
  return html`<p class="crumbs"><a href="/apps">Apps</a> › ${slug}</p>
<div class="title"><h1>${name}</h1>${statusMark(status)}</div>${tabs(`Pages of ${name}`, entries, current)}`
}

const lastEmails = 5
const range: Range = ranges[1]

export const showApp = (visit: Visit): Promise<PageAnswer> => appPage(visit, null)

async function appPage(visit: Visit, error: OperationError | null): Promise<PageAnswer> {
  const app = await findApp(visit)
  const params = { app: app.slug }
  const { items: usage } = await visit.get('usage.list', {})
  const today = usage.find(({ slug }) => slug === app.slug)
  const activity = await visit.get('activity.show', { query: { app: app.slug, ...range.query(visit.now) } })
  const refusals = (await visit.get('refusal.list', { params })).items
  const { items: emails } = await visit.get('email.list', { query: { app: app.slug, limit: lastEmails } })
  const body = html`${appHead(app, 'Today')}
<div class="pair">${region('limits', section('Limits', renderLimits(app, today)))}
${visit.may('operator') ? section('Send a test email', testForm(app, visit, error)) : none}</div>
${region('chart', emailsChart(activity, range, visit.now))}
${region('refused', section('Refused lately', refusalsTable(app, refusals, visit)))}
${region('emails', section('Last emails', renderEmails(emails, visit, { withApp: false }), { note: html`<a href="/emails?app=${app.slug}">All emails</a>` }))}`
  return {
    ...{ title: app.name, body, nav: 'apps', live: 'service' },
    ...(error && { status: toHttpStatus(error) }),
  }
}

function renderLimits(
  { limits }: AppResource,
  today: Answer<'usage.list'>['items'][number] | undefined,
): Html {
  const accepted = today?.accepted ?? 0
  const refused = today?.refused ?? {}
  const of = (code: string) => formatCount(refused[code] ?? 0)
  return html`<dl>
<dt>Emails today (UTC)</dt>
<dd>${formatCount(accepted)} of ${formatCount(limits.daily)} ${meter(accepted, limits.daily, 'Emails of today')} · ${of('daily_limit_reached')} refused</dd>
<dt>To one recipient</dt>
<dd>${formatCount(limits.recipientPerHour)} an hour · ${of('recipient_rate_limited')} refused today</dd>
<dt>By one key</dt>
<dd>${formatCount(limits.keyPerMinute)} requests a minute · ${of('key_rate_limited')} refused today</dd>
</dl>`
}

function testForm({ slug }: AppResource, { form }: Visit, error: OperationError | null): Html {
  return html`${problem(error)}<form method="post" action="/apps/${slug}/test-email" class="stack">
${field('to', {
  label: 'To',
  value: form.get('to') ?? '',
  attributes: html`required type="email" placeholder="you@example.com" autocomplete="email"`,
  hint: 'It is queued like any email of the app, and its link leads nowhere.',
  error,
})}
${select('type', emailTypeNames, { label: 'Email', value: form.get('type') ?? 'magic_link' })}
<div class="actions"><button class="main">Send</button></div></form>`
}

export async function sendTestEmail(visit: Visit): Promise<PageAnswer> {
  const { form, params } = visit
  const body = { to: form.get('to') ?? '', type: readEmailType(form.get('type')) }
  const sent = await visit.call('app.test_email', { params: { app: params.app ?? '' }, body })
  if (!sent.ok && sent.error.code === 'not_found') throw new PageFailed(sent.error)
  if (!sent.ok) return appPage(visit, sent.error)
  return { redirect: `/emails/${sent.value.email}` }
}

type Refused = Answer<'refusal.list'>['items']

/** Refusals that are alike stand in one row. */
function refusalsTable({ slug }: AppResource, refusals: Refused, { now }: Visit): Html {
  const alike = Map.groupBy(refusals, ({ code, origin, key, issues }) =>
    [code, origin, key, ...issues].join(' '),
  )
  const rows = [...alike.values()].flatMap((group) => {
    const [newest] = group
    if (newest === undefined) return []
    const { at, code, issues, key, origin, requestId, status } = newest
    const test =
      code === 'url_not_allowed' && origin !== null
        ? html`<a href="/apps/${slug}/links?url=${encodeURIComponent(`${origin}/?token=any`)}#tester">Test it</a>`
        : none
    return [
      [
        age(at, now),
        html`${status} ${code}${issues.length === 0 ? none : html`<br><span class="soft">${issues.join('; ')}</span>`}`,
        html`${origin ?? '–'} ${test}`,
        formatCount(group.length),
        html`<a href="/apps/${slug}/keys">${key.slice(-6)}</a>`,
        html`<a href="/refusals/${requestId}">${requestId.slice(-8)}</a>`,
      ],
    ]
  })
  const heads = ['last', 'answer', 'origin of the link', 'times', 'key', 'request']
  const empty =
    'No request was refused lately. A library that hides errors shows nothing to its users: their refused requests appear here.'
  return table('Refused requests', heads, rows, { numbers: [3], empty })
}

export async function showRefusal(visit: Visit): Promise<PageAnswer> {
  const refusal = await visit.get('refusal.show', { params: { request: visit.params.request ?? '' } })
  const app = await visit.get('app.show', { params: { app: refusal.app } })
  const body = html`<p class="crumbs"><a href="/apps">Apps</a> › <a href="/apps/${app.slug}">${app.slug}</a> › refused request</p>
<h1>${refusal.status} ${refusal.code}</h1>
<p class="lead">${refusal.message}</p>
${section(
  'The request',
  html`<dl><dt>Request</dt><dd><code>${refusal.requestId}</code></dd><dt>When</dt><dd>${age(refusal.at, visit.now)}</dd>
<dt>App</dt>
<dd><a href="/apps/${app.slug}">${app.name}</a></dd>
<dt>Key</dt>
<dd><a href="/apps/${app.slug}/keys">${refusal.key}</a></dd>
${refusal.origin === null ? none : html`<dt>Origin of the link</dt><dd>${refusal.origin}</dd>`}
${refusal.issues.length === 0 ? none : html`<dt>Issues</dt><dd>${refusal.issues.join('; ')}</dd>`}</dl>
<p class="soft">The rest of the link and the recipient are not kept. The answer that the app got names what was wrong with the link.</p>`,
)}
${refusal.code === 'url_not_allowed' ? linkButton(`/apps/${app.slug}/links?url=${encodeURIComponent(`${refusal.origin ?? ''}/?token=any`)}#tester`, 'Test links of this app') : none}`
  return { title: refusal.code, body, nav: 'apps' }
}
