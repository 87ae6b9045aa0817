/** The list of apps, and the first page of one: how its mail goes, what was refused, the last emails. */

import { hasEnded } from '../../../../domain/bearer.ts'
import { heldDays } from '../../../../domain/bounds.ts'
import { counted, formatCount, sumCounts } from '../../../../domain/counts.ts'
import { hourMs, minuteMs } from '../../../../domain/duration.ts'
import { codePlaces } from '../../../../domain/request/email-content.ts'
import { allRefusalsMax } from '../../../../domain/request/refused-request.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { isStop } from '../../../../management/service/condition.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { emailTypeNames, readEmailType } from '../../email-types.ts'
import { chooseRange, emailsChart, ranges, reportsChart } from '../activity-charts.ts'
import { emailInput, newForm, readTexts } from '../form.ts'
import { languageOrApp, readLanguage } from '../language-choices.ts'
import { button, contentBegin, linkButton, meter, region, section, statusMark, tabs } from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { renderAppTable } from './app-table.ts'
import { renderEmails } from './email-rows.ts'
import { countWaiting, renderProblems } from './problems.ts'
import { refusalsTable } from './refusals.ts'

export async function listApps(visit: Visit): Promise<PageAnswer> {
  const [usage, status] = await Promise.all([visit.get('usage.list', {}), visit.get('status.show', {})])
  const create = visit.may('admin') && visit.seesAll ? linkButton('/new-app', 'New app') : none
  const body = html`<div class="title"><h1>Apps</h1>${create}</div>
${region('stop', renderProblems(status.attention.filter(isStop), '', { isShort: true }))}
${region('apps', section('Today (UTC)', renderAppTable(usage, status)))}`
  return { title: 'Apps', body, nav: 'apps', live: 'service' }
}

/** The app of the address; a page of its own if there is none. */
export async function findApp(visit: Visit): Promise<AppResource> {
  return visit.get('app.show', { params: { app: visit.params.app ?? '' } })
}

const appTabs = [
  'Overview',
  'Links',
  'Hosted links',
  'Look',
  'Keys',
  'Connect',
  'Domain',
  'Webhooks',
  'Settings',
] as const
type AppTab = (typeof appTabs)[number]

type HeadOptions = Pick<Visit, 'may' | 'seesAll'> & {
  /** How many emails are held, where the page knows. */
  readonly held?: number
  /** A button beside the name. */
  readonly action?: Html
}

/** The head of every page of an app. */
export function appHead(app: AppResource, current: AppTab, options: HeadOptions): Html {
  const { slug, name, status } = app
  const entries = appTabs.map(
    (tab) =>
      [tab, tab === 'Overview' ? `/apps/${slug}` : `/apps/${slug}/${tab.toLowerCase().replace(' ', '-')}`] as const,
  )
  return html`<p class="crumbs"><a href="/apps">Apps</a> › ${slug} · <a href="/audit?app=${slug}">History</a></p>
<div class="title"><h1>${name}</h1>${status === 'active' ? none : statusMark(status)}${options.action ?? none}</div>${tabs(`Pages of ${name}`, entries, current)}${contentBegin}${status === 'active' ? none : renderDisabled(app, options)}`
}

/** Without a working key, no request of the app is taken. */
function renderKeyless({ slug, status }: AppResource, { items, next }: Answer<'key.list'>, { now }: Visit): Html {
  // A longer list has some.
  return status !== 'active' || next !== null || items.some((key) => !hasEnded(key, now))
    ? none
    : html`<div class="note"><p><b>This app has no working key</b>, so it cannot send.</p>${linkButton(`/apps/${slug}/keys`, 'Create a key')}</div>`
}

function renderDisabled({ slug, status }: AppResource, { may, held, seesAll }: HeadOptions): Html {
  const mail = held === undefined ? 'its mail is held' : `${counted(held, 'email is', 'emails are')} held`
  const isSuspended = status === 'suspended'
  const mayLift = isSuspended ? may('admin') && seesAll : may('operator')
  const lift = mayLift ? button(`/apps/${slug}/status`, 'Enable', { fields: { status: 'active' }, kind: 'main' }) : none
  const who = isSuspended && !mayLift ? ' Only an admin of the whole service can enable it again.' : ''
  return html`<section class="disabled-app" aria-label="${isSuspended ? 'Suspended' : 'Disabled'}"><p><b>This app is ${status}.</b> Its keys are refused, and ${mail}; held mail is cancelled after ${heldDays} days.${who} <a href="/audit?app=${slug}">Who ${status} it, and when</a></p>${lift}</section>`
}

const lastEmails = 5

const testForm = newForm('test-email', {
  to: {
    label: 'To',
    attributes: html`required ${emailInput} placeholder="you@example.com" autocomplete="email"`,
    hint: 'Queued like any other email from the app, but its link does not work.',
  },
  type: { label: 'Email', choices: emailTypeNames },
  locale: { label: 'Language', choices: languageOrApp },
})

export const showApp = (visit: Visit): Promise<PageAnswer> => appPage(visit, null)

async function appPage(visit: Visit, error: OperationError | null): Promise<PageAnswer> {
  const app = await findApp(visit)
  const params = { app: app.slug }
  const range = chooseRange(visit.query)
  const [{ attention, nodes, outages, queue }, usage, activity, { items: refusals }, { items: emails }, keys] =
    await Promise.all([
      visit.get('status.show', {}),
      visit.get('usage.list', {}),
      visit.get('activity.show', { query: { app: app.slug, ...range.query(visit.now) } }),
      visit.get('refusal.list', { query: { app: app.slug, limit: allRefusalsMax } }),
      visit.get('email.list', { query: { app: app.slug, limit: lastEmails } }),
      visit.get('key.list', { params }),
    ])
  const today = usage.items.find(({ slug }) => slug === app.slug)
  const shown = testForm.show({ type: 'magic_link', ...(error && readTexts(visit.form)) }, error)
  const test = html`<form method="post" action="/apps/${app.slug}/test-email" class="stack">
${shown.field('to')}
${shown.field('type')}
${shown.field('locale')}
<div class="actions"><button class="main">Send</button></div></form>`
  // The head says what is held.
  const ofApp = attention.filter(({ apps, kind }) => apps.includes(app.slug) && kind !== 'mail_held')
  const own = attention.filter((each) => ofApp.includes(each) || (each.apps.length === 0 && each.urgent))
  const disabled = new Set(app.status === 'active' ? [] : [app.id])
  const pause = { disabled, stops: attention.filter(isStop) }
  // A form that was refused keeps its entries.
  const offersTest = visit.may('operator') && (app.status === 'active' || error !== null)
  const held = countWaiting(queue, app.slug)
  const action = offersTest ? linkButton('#test-email', 'Send a test email') : none
  const body = html`${appHead(app, 'Overview', { ...visit, held, action })}${shown.problem}
${region('attention', html`${renderProblems(own, `/apps/${app.slug}`)}${renderKeyless(app, keys, visit)}`)}
${region('numbers', await renderLastHour(app, visit, queue))}
${tabs(
  'Time of the chart',
  ranges.map(({ name, label }) => [label, `/apps/${app.slug}?range=${name}`]),
  range.label,
)}
${region('chart', html`${emailsChart(activity, range, { nodes, outages, now: visit.now })}${reportsChart(activity, range, visit.now)}`)}
${region('refused', section('Refused requests', await refusalsTable(app, refusals, visit), { note: html`<a href="/refusals?app=${app.slug}">All refused requests</a>` }))}
${region('emails', section('Last emails', renderEmails(emails, visit, { withApp: false, pause }), { note: html`<a href="/emails?app=${app.slug}">All emails</a>` }))}
<div class="pair">${region('limits', section('Limits', renderLimits(app, today)))}
${offersTest ? html`<div id="test-email">${section('Send a test email', test)}</div>` : none}</div>`
  return {
    ...{ title: app.name, body, nav: 'apps', live: 'service' },
    ...(error && { status: toHttpStatus(error) }),
  }
}

/** How much waits; the last hour, and the one before. */
async function renderLastHour(
  { slug }: AppResource,
  { get, now }: Visit,
  queue: Answer<'status.show'>['queue'],
): Promise<Html> {
  const from = new Date(now - 2 * hourMs + minuteMs).toISOString()
  const { items } = await get('activity.show', { query: { app: slug, step: 'minute', from } })
  const begin = now - hourMs
  type Item = (typeof items)[number]
  const tile = (label: string, pick: (item: Item) => number, address: string) => {
    const sum = (isIn: (at: number) => boolean) =>
      items.filter(({ at }) => isIn(Date.parse(at))).reduce((all, item) => all + pick(item), 0)
    const [last, before] = [sum((at) => at > begin), sum((at) => at <= begin)]
    return html`<a class="tile" href="${address}"><span class="label">${label}</span><b>${formatCount(last)}</b>${last + before === 0 ? none : html`<span class="soft">${formatCount(before)} in the hour before</span>`}</a>`
  }
  // Most services hear of none.
  const hasBounced = items.some(({ bounced }) => sumCounts(bounced) > 0)
  const emails = (state: string) => `/emails?app=${slug}&state=${state}&within=60`
  return html`<div class="tiles">
<a class="tile" href="/emails?app=${slug}"><span class="label">Waiting</span><b>${formatCount(countWaiting(queue, slug))}</b><span class="soft">now</span></a>
${tile('Delivered, last hour', (item) => item.delivered, emails('delivered'))}
${tile('Failed', (item) => sumCounts(item.failed), emails('failed'))}
${tile('Expired', (item) => item.expired, emails('expired'))}
${hasBounced ? tile('Bounced', (item) => sumCounts(item.bounced), emails('bounced')) : none}
${tile('Deferred attempts', (item) => item.deferred, `/emails?app=${slug}&state=deferred`)}
${tile('Refused requests', (item) => sumCounts(item.refused), `/refusals?app=${slug}`)}
</div>`
}

function renderLimits({ limits }: AppResource, today: Answer<'usage.list'>['items'][number] | undefined): Html {
  const accepted = today?.accepted ?? 0
  const describeRefused = (code: string) => {
    const count = today?.refused[code] ?? 0
    return count === 0 ? none : html` · <b>${formatCount(count)} refused today</b>`
  }
  return html`<dl>
<dt>Emails a day</dt>
<dd>${formatCount(accepted)} of ${formatCount(limits.daily)} today (UTC) ${meter(accepted, limits.daily, 'Emails today')}${describeRefused('daily_limit_reached')}</dd>
<dt>Per recipient</dt>
<dd>${formatCount(limits.recipientPerHour)} an hour${describeRefused('recipient_rate_limited')}</dd>
<dt>Per key</dt>
<dd>${formatCount(limits.keyPerMinute)} requests a minute${describeRefused('key_rate_limited')}</dd>
</dl>`
}

export async function sendTestEmail(visit: Visit): Promise<PageAnswer> {
  const { form, params } = visit
  const locale = readLanguage(form.get('locale'))
  const type = readEmailType(form.get('type'))
  const code = codePlaces.find((place) => place === form.get('code'))
  const body = { to: form.get('to') ?? '', type, ...(locale && { locale }), ...(code && { code }) }
  const sent = await visit.call('app.test_email', { params: { app: params.app ?? '' }, body })
  if (!sent.ok && sent.error.code === 'not_found') throw new PageFailed(sent.error)
  if (!sent.ok) return appPage(visit, sent.error)
  return { redirect: `/emails/${sent.value.email}` }
}
