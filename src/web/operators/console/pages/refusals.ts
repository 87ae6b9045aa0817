/** Refused requests: their list, those of an app in short, and one by its id. */
import { parseAllowedUrl } from '../../../../domain/app/allowed-entry.ts'
import { formatCount } from '../../../../domain/counts.ts'
import { shortenId } from '../../../../domain/id.ts'
import { adviseOnIssue } from '../../../../domain/request/issue-advice.ts'
import { allRefusalsMax, refusalsMax } from '../../../../domain/request/refused-request.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { newForm, withoutIssues } from '../form.ts'
import {
  age,
  copied,
  facts,
  hiddenFields,
  linkButton,
  older,
  readFilters,
  region,
  section,
  shortTime,
  table,
  time,
  withFilters,
} from '../parts.ts'
import { describeIssue, keptCodes, nameRefusal, renderRefusalName } from '../refusal-titles.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { allowButton } from './allow-entry.ts'
import { readKeyNames, readSlugs, type Slugs } from './app-names.ts'
import { exportForm } from './export.ts'
import { periodFields, periodLinks, splitPeriod } from './period.ts'

type Refused = Answer<'refusal.list'>['items']

const any = ['', 'All'] as const

const filterForm = newForm('filter', {
  app: { label: 'App' },
  code: {
    label: 'Refusal',
    choices: [any, ...keptCodes.map((code) => [code, nameRefusal(code)] as const)],
  },
  ...periodFields,
})

const filterNames = ['app', 'code', 'key', 'recipient', 'within', 'from', 'to'] as const

const toAddress = (filters: Readonly<Record<string, string>>): string => withFilters('/refusals', filters)

export async function listRefusals(visit: Visit): Promise<PageAnswer> {
  const { query } = visit
  const whole = readFilters(query, filterNames)
  const cursor = query.get('cursor')
  const { filters, period } = splitPeriod(whole, visit.now, query.get('since'))
  const wanted = { ...filters, ...period }
  const [{ items, next }, slugs] = await Promise.all([
    visit.get('refusal.list', { query: { ...wanted, ...(cursor !== null && { cursor }) } as object }),
    readSlugs(visit),
  ])
  const { key, recipient, ...shown } = whole
  const { field } = filterForm.show(shown)
  const kept = hiddenFields({ ...(key && { key }), ...(recipient && { recipient }) })
  const apps = [...slugs.values()].map((slug) => [slug, slug] as const)
  const names = await readKeyNames(visit, [...items.map((item) => item.key), ...(key ? [key] : [])])
  const chips = [
    ...(recipient
      ? [html`<p class="chip">One address <a href="${toAddress({ ...shown, ...(key && { key }) })}">Show all</a></p>`]
      : []),
    ...(key
      ? [
          html`<p class="chip">With the key <b>${names.get(key) ?? key}</b> <a href="${toAddress({ ...shown, ...(recipient && { recipient }) })}">Show all</a></p>`,
        ]
      : []),
  ]
  const empty = next === null ? 'No refused request.' : 'None here; there are older ones.'
  const list = refusalsList(items, { visit, slugs, names, empty })
  const end = next === null ? null : toAddress({ ...whole, ...(period.since && { since: period.since }), cursor: next })
  const body = html`<h1>Refused requests</h1>
<p class="lead">No email was sent for these. Postern keeps the newest ${refusalsMax} of each app, and ${refusalsMax} that were over a limit.</p>
${chips}<form method="get" action="/refusals" class="filters" data-auto>
${field('app', { choices: [any, ...apps] })}
${field('code')}
${field('from')}
${field('to')}
${kept}<button data-auto>Show</button></form>
${periodLinks(whole, toAddress)}
${section(cursor === null ? 'Newest first' : 'Newest first, continued', html`${cursor === null ? region('list', list) : list}${items.length === 0 && end === null ? none : html`${older(end, 'End of the list.')}${exportForm('refusals', wanted)}`}`)}`
  return { title: 'Refused requests', body, nav: 'apps', ...(cursor === null && { live: 'service' }) }
}

type ListParts = {
  readonly visit: Visit
  readonly slugs: Slugs
  readonly names: ReadonlyMap<string, string>
  readonly empty?: string
}

type Group = { readonly first: Refused[number]; readonly count: number; readonly oldest: string }

/** Requests that were refused one after the other for the same reason share a row. */
function groupAlike(items: Refused): Group[] {
  const groups: Group[] = []
  const nameOf = ({ app, code, issues, key, origin }: Refused[number]) =>
    JSON.stringify([app, code, issues, key, origin])
  for (const item of items) {
    const last = groups.at(-1)
    if (last !== undefined && nameOf(last.first) === nameOf(item))
      groups.splice(-1, 1, { ...last, count: last.count + 1, oldest: item.at })
    else groups.push({ first: item, count: 1, oldest: item.at })
  }
  return groups
}

/** Newest first. */
export function refusalsList(items: Refused, { visit: { now }, slugs, names, empty = '' }: ListParts): Html {
  const rows = groupAlike(items).map(({ first: { app, at, code, issues, key, origin, requestId }, count, oldest }) => [
    html`<a href="/refusals/${requestId}">${shortTime(at, now)}</a>${count === 1 ? none : html`<br><span class="soft">and ${formatCount(count - 1)} more since ${shortTime(oldest, now)}</span>`}`,
    html`${renderRefusalName(code)}${renderIssues(issues)}`,
    slugs.get(app) ?? 'deleted app',
    origin ?? '–',
    nameKey(key, names),
  ])
  return table('Refused requests', ['At', 'Refusal', 'App', 'Link origin', 'Key'], rows, { empty })
}

const nameKey = (key: string, names: ReadonlyMap<string, string>): Html =>
  html`<span title="${key}">${names.get(key) ?? shortenId(key)}</span>`

const renderIssues = (issues: readonly string[]): Html =>
  issues.length === 0 ? none : html`<br><span class="soft">${issues.map(describeIssue).join('; ')}</span>`

const testAddress = (slug: string, origin: string): string =>
  `/apps/${slug}/links?url=${encodeURIComponent(`${origin}/?token=any`)}#tester`

function renderAdvice(issue: string): Html {
  const advice = adviseOnIssue(issue)
  return advice === null ? none : html`<br>To fix it: ${advice}.`
}

/** Whether an entry for the whole site would be new. */
const mayBeAllowed = ({ allowedUrls }: AppResource, origin: string): boolean =>
  !allowedUrls.includes(origin) && parseAllowedUrl(origin).ok

/** Issues that a setting on the page of links would remove. */
const linkSettings: Readonly<Record<string, string>> = {
  scheme_not_allowed: 'Allow a scheme or localhost…',
  codes_not_allowed: 'Allow codes…',
}

/** The refused requests of an app. Those that are alike share a row. */
export async function refusalsTable(app: AppResource, items: Refused, visit: Visit): Promise<Html> {
  const { slug } = app
  const { may, now } = visit
  const mayChange = may('operator')
  const names = await readKeyNames(
    visit,
    items.map(({ key }) => key),
  )
  const alike = Map.groupBy(items, ({ code, origin, key, issues }) => [code, origin, key, ...issues].join(' '))
  const rows = [...alike.values()].flatMap((group) => {
    const [newest] = group
    if (newest === undefined) return []
    const { at, code, issues, key, origin } = newest
    const test =
      code === 'url_not_allowed' && origin !== null
        ? html`<div class="actions">${linkButton(testAddress(slug, origin), mayChange && mayBeAllowed(app, origin) ? 'Test or allow…' : 'Test this link', origin)}</div>`
        : none
    return [
      [
        age(at, now),
        html`<a href="${toAddress({ app: slug, code, key })}">${nameRefusal(code)}</a> <code class="soft">${code}</code>${renderIssues(issues)}`,
        html`${origin ?? '–'}${test}`,
        `${formatCount(group.length)}${items.length >= allRefusalsMax ? '+' : ''}`,
        html`<a href="/apps/${slug}/keys">${nameKey(key, names)}</a>`,
      ],
    ]
  })
  const heads = ['Last', 'Refusal', 'Link origin', 'Count', 'Key']
  const empty = 'None lately. Refused requests appear here even if your auth library hides the error.'
  return table('Refused requests', heads, rows, { numbers: [3], empty })
}

/** The settings whose limits refuse requests, and what they count. */
const limits: Readonly<Record<string, readonly [setting: keyof AppResource['limits'], counts: string]>> = {
  daily_limit_reached: ['daily', 'emails a day'],
  recipient_rate_limited: ['recipientPerHour', 'emails an hour to one recipient'],
  key_rate_limited: ['keyPerMinute', 'requests a minute with one key'],
}

export async function showRefusal(visit: Visit): Promise<PageAnswer> {
  const refusal = await visit.get('refusal.show', { params: { request: visit.params.request ?? '' } })
  const app = await visit.get('app.show', { params: { app: refusal.app } })
  const { code, issues, key, message, origin, requestId, status } = refusal
  const names = await readKeyNames(visit, [key])
  const title = nameRefusal(code)
  const [limit, counts = ''] = limits[code] ?? []
  const isLink = code === 'url_not_allowed' && origin !== null
  // The path is not kept, and the whole site would be more than the app meant to allow.
  const isPath = issues.includes('url path_differs')
  const body = html`<p class="crumbs"><a href="/apps">Apps</a> › <a href="/apps/${app.slug}">${app.slug}</a> › <a href="${toAddress({ app: app.slug })}">Refused requests</a></p>
<h1>${title}</h1>
<p class="lead">${withoutIssues(message)}</p>
<p>No email was sent. The app got this answer, and may have asked its user to try again.</p>
<div class="actions after">${
    isLink
      ? isPath
        ? linkButton(`/apps/${app.slug}/links`, 'Show the allowed links')
        : html`${visit.may('operator') && mayBeAllowed(app, origin) ? allowButton(app, origin, undefined, '') : none}${linkButton(testAddress(app.slug, origin), 'Test this link')}`
      : none
  }${Object.entries(linkSettings).map(([issue, label]) => (issues.some((found) => found.includes(issue)) ? linkButton(`/apps/${app.slug}/links`, label) : none))}${limit === undefined ? none : linkButton(`/apps/${app.slug}/settings#settings-${limit}`, 'Change the limit')}</div>
${section(
  'The request',
  facts([
    ['Response', html`${status} <code>${code}</code>`],
    [
      'Issues',
      issues.length === 0
        ? null
        : html`<ul>${issues.map((issue) => html`<li>${describeIssue(issue)} <code class="soft">${issue}</code>${renderAdvice(issue)}</li>`)}</ul>`,
    ],
    ['Link origin', origin],
    ['Limit now', limit === undefined ? null : `${formatCount(app.limits[limit])} ${counts}`],
    ['When', html`${age(refusal.at, visit.now)} <span class="soft">${time(refusal.at)}</span>`],
    ['App', html`<a href="/apps/${app.slug}">${app.name}</a>`],
    [
      'Key',
      html`<b>${names.get(key) ?? 'unnamed'}</b> ${copied(key, shortenId(key))} <a href="/emails?key=${key}">Its emails</a> <a href="${toAddress({ key })}">Its refused requests</a>`,
    ],
    ['Request', copied(requestId)],
  ]),
)}
<p class="soft">Postern keeps nothing else about the request.</p>`
  return { title, body, nav: 'apps' }
}
