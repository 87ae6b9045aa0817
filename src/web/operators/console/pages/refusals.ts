/** Refused requests: the newest of an app, and one by its id. */
import { parseAllowedUrl } from '../../../../domain/app/allowed-entry.ts'
import { formatCount } from '../../../../domain/counts.ts'
import { refusalsMax } from '../../../../domain/request/refused-request.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { withoutIssues } from '../form.ts'
import { age, copied, facts, linkButton, section, shortId, table, time } from '../parts.ts'
import { describeIssue, nameRefusal, renderRefusalName } from '../refusal-titles.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { allowButton } from './allow-entry.ts'

type Refused = Answer<'refusal.list'>['items']

const testAddress = (slug: string, origin: string): string =>
  `/apps/${slug}/links?url=${encodeURIComponent(`${origin}/?token=any`)}#tester`

/** Refusals that are alike share a row. */
export function refusalsTable({ slug }: AppResource, refusals: Refused, { may, now }: Visit): Html {
  const mayChange = may('operator')
  const isCut = refusals.length >= refusalsMax
  const alike = Map.groupBy(refusals, ({ code, origin, key, issues }) => [code, origin, key, ...issues].join(' '))
  const rows = [...alike.values()].flatMap((group) => {
    const [newest] = group
    if (newest === undefined) return []
    const { at, code, issues, key, origin, requestId } = newest
    const test =
      code === 'url_not_allowed' && origin !== null
        ? html`<br><a href="${testAddress(slug, origin)}">Test this link</a>`
        : none
    return [
      [
        html`<a href="/refusals/${requestId}">${age(at, now)}</a>`,
        html`${renderRefusalName(code)}${issues.length === 0 ? none : html`<br><span class="soft">${issues.map(describeIssue).join('; ')}</span>`}`,
        html`${origin ?? '–'}${test}`,
        `${formatCount(group.length)}${isCut ? '+' : ''}`,
        html`${shortId(key)}${mayChange ? html` <a href="/apps/${slug}/keys?revoke=${key}#confirm">Revoke…</a>` : none}`,
      ],
    ]
  })
  const heads = ['Last', 'Answer', 'Link origin', 'Count', 'Key']
  const empty = 'No recent refusals. Refused requests appear here even if your auth library hides the error.'
  const shown = table('Refused requests', heads, rows, { numbers: [3], empty })
  return refusals.length < refusalsMax
    ? shown
    : html`${shown}<p class="soft">Only the newest ${refusalsMax} are kept.</p>`
}

/** The fields of the settings whose limits refuse requests. */
const limitFields: Readonly<Record<string, string>> = {
  daily_limit_reached: 'daily',
  recipient_rate_limited: 'recipientPerHour',
  key_rate_limited: 'keyPerMinute',
}

export async function showRefusal(visit: Visit): Promise<PageAnswer> {
  const refusal = await visit.get('refusal.show', { params: { request: visit.params.request ?? '' } })
  const app = await visit.get('app.show', { params: { app: refusal.app } })
  const { code, issues, key, message, origin, requestId, status } = refusal
  const title = nameRefusal(code)
  const limit = limitFields[code]
  const isLink = code === 'url_not_allowed' && origin !== null
  const isNew = isLink && !app.allowedUrls.includes(origin) && parseAllowedUrl(origin).ok
  const body = html`<p class="crumbs"><a href="/apps">Apps</a> › <a href="/apps/${app.slug}">${app.slug}</a> › refused request</p>
<h1>${title}</h1>
<p class="lead">${withoutIssues(message)}</p>
<p>No email was sent. The app got this answer, and may have asked its user to try again.</p>
<div class="actions after">${
    isLink
      ? html`${isNew && visit.may('operator') ? allowButton(app, origin) : none}${linkButton(testAddress(app.slug, origin), 'Test this link')}`
      : none
  }${limit === undefined ? none : linkButton(`/apps/${app.slug}/settings#settings-${limit}`, 'Show the limit')}</div>
${section(
  'The request',
  facts([
    ['Answer', html`${status} <code>${code}</code>`],
    [
      'Issues',
      issues.length === 0
        ? null
        : html`<ul>${issues.map((issue) => html`<li>${describeIssue(issue)} <code class="soft">${issue}</code></li>`)}</ul>`,
    ],
    ['Link origin', origin],
    ['When', html`${age(refusal.at, visit.now)} <span class="soft">${time(refusal.at)}</span>`],
    ['App', html`<a href="/apps/${app.slug}">${app.name}</a>`],
    ['Key', html`${shortId(key)} <a href="/emails?key=${key}">Its emails</a>`],
    ['Request', copied(requestId)],
  ]),
)}
<p class="soft">Nothing else about the request is kept.</p>`
  return { title, body, nav: 'apps' }
}
