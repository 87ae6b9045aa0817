/** The pages of the inbox: a list with a search, and one email with its link, its parts and its attempts. */

import type { CapturedEmail } from '../../../../delivery/relay/capture-relay.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { nameEmailType } from '../../email-type-names.ts'
import { age, copied, facts, field, linkButton, region, section, tabs, time } from '../parts.ts'
import type { PageAnswer, Visit } from '../visit.ts'

const views = [
  ['email', 'Email'],
  ['dark', 'Dark'],
  ['phone', 'Phone'],
  ['phone-dark', 'Phone, dark'],
  ['text', 'Text'],
  ['headers', 'Headers'],
  ['raw', 'Raw'],
] as const
type View = (typeof views)[number][0]

const iso = (ms: number): string => new Date(ms).toISOString()

export function listPage(emails: readonly CapturedEmail[], { now, query }: Visit): PageAnswer {
  const wanted = (query.get('q') ?? '').trim().toLowerCase()
  const found = emails.filter(({ to, subject, app, type }) =>
    [to, subject, app, type].some((text) => text.toLowerCase().includes(wanted)),
  )
  const rows = found.map(
    ({ id, to, subject, app, type, receivedAt }) => html`<li><a href="/inbox/${id}">
<span class="to">${to}</span><span class="subject">${subject}</span>
<span class="soft"><b>${app}</b> · ${nameEmailType(type)} · ${age(iso(receivedAt), now)}</span></a></li>
`,
  )
  const first = html`<p class="empty">No email yet. Send one: with the <code>curl</code> line that the server printed, or with the test form of <a href="/apps">an app</a>. It appears here by itself.</p>`
  const list =
    emails.length === 0
      ? first
      : found.length === 0
        ? html`<p class="empty">No email has these words in its address, subject or app.</p>`
        : html`<ul class="inbox">${rows}</ul>`
  const body = html`<div class="title"><h1>Inbox</h1></div>
<p class="soft">Emails that this dev server captured. None was sent.</p>
<form method="get" action="/inbox" class="filters" data-auto>
${field('q', { label: 'Search', value: query.get('q') ?? '', attributes: html`type="search" placeholder="address, subject, app"` })}
<button>Search</button>
</form>
${region('list', list)}`
  return { title: 'Inbox', body, nav: 'inbox', live: 'inbox' }
}

export async function emailPage(email: CapturedEmail, visit: Visit): Promise<PageAnswer> {
  const view = views.find(([name]) => name === visit.query.get('view'))?.[0] ?? 'email'
  const record = await visit.call('email.show', { params: { email: email.id } })
  const trail = record.ok ? record.value.trail : []
  const attempts = trail.map(
    ({ at, outcome, reply }) =>
      html`<li>${time(at)} ${outcome}${reply === undefined ? none : html`: ${reply}`}</li>`,
  )
  const entries = views.map(([name, label]) => [label, `/inbox/${email.id}?view=${name}`] as const)
  const label = views.find(([name]) => name === view)?.[1] ?? ''
  const body = html`<p class="crumbs"><a href="/inbox">Inbox</a> › ${email.id}</p>
<div class="title"><h1>${email.subject}</h1>${linkButton(`/emails/${email.id}`, 'Its record')}</div>
${section(
  'Email',
  html`${facts([
    ['To', email.to],
    ['From', email.sender],
    ['App', html`${email.app}, ${nameEmailType(email.type)}`],
    [
      'Link',
      html`<a class="link" href="${email.url}" target="_blank" rel="noreferrer">${email.url}</a>${copied(email.url, 'the link')}`,
    ],
    [
      'Expires',
      html`${time(iso(email.expiresAt))} <span class="soft">(${age(iso(email.expiresAt), visit.now)})</span>`,
    ],
    ['Attempts', attempts.length === 0 ? 'not recorded yet' : html`<ol>${attempts}</ol>`],
  ])}`,
)}
${tabs('Views of the email', entries, label)}
${renderView(email, view)}`
  return { title: email.subject, body, nav: 'inbox' }
}

const frameClasses: Partial<Record<View, string>> = {
  email: 'desktop light',
  dark: 'desktop dark',
  phone: 'phone light',
  'phone-dark': 'phone dark',
}

function renderView(email: CapturedEmail, view: View): Html {
  switch (view) {
    case 'text':
      return html`<pre>${email.text}</pre>`
    case 'headers':
      return html`<pre>${readHeaders(email)}</pre>`
    case 'raw':
      return html`<pre>${email.raw.toString('utf8')}</pre>`
    default:
      return html`<iframe class="email ${frameClasses[view] ?? ''}" title="The email" src="/inbox/${email.id}/html" sandbox="allow-popups allow-popups-to-escape-sandbox"></iframe>`
  }
}

function readHeaders({ raw }: CapturedEmail): string {
  const text = raw.toString('utf8')
  return text.slice(0, text.indexOf('\r\n\r\n'))
}
