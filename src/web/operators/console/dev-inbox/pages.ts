/** The inbox: the list with its search beside one email with its link, its parts and its attempts. */
import { type CapturedEmail, capturedMax } from '../../../../delivery/relay/capture-relay.ts'
import { formatSender } from '../../../../management/inbox/inbox-email.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { nameLanguage } from '../../../../templates/locales/locales.ts'
import { nameEmailType } from '../../email-types.ts'
import { newForm } from '../form.ts'
import { age, button, confirmation, copied, copyButton, facts, linkButton, region, tabs, time } from '../parts.ts'
import { nameRefusal } from '../refusal-titles.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { renderChecks } from './checks.ts'
import { matchesText } from './present.ts'

const views = [
  ['email', 'Email'],
  ['dark', 'Dark'],
  ['phone', 'Phone'],
  ['phone-dark', 'Phone, dark'],
  ['text', 'Text'],
  ['headers', 'Headers'],
  ['raw', 'Raw'],
  ['checks', 'Checks'],
] as const
type View = (typeof views)[number][0]

const iso = (ms: number): string => new Date(ms).toISOString()

const searchForm = newForm('inbox', {
  q: { label: 'Search', attributes: html`type="search" placeholder="address, subject, app"` },
})

type Mailbox = {
  /** Newest first. */
  readonly emails: readonly CapturedEmail[]
  /** The one that is open. */
  readonly email: CapturedEmail | null
  readonly curl: string | null
}

export async function mailboxPage(visit: Visit, mailbox: Mailbox): Promise<PageAnswer> {
  const { email, emails } = mailbox
  const { query } = visit
  const q = query.get('q') ?? ''
  const clear = emails.length === 0 ? none : linkButton('/inbox?confirm=delete#confirm', 'Delete all…')
  const asked =
    query.get('confirm') === 'delete' && emails.length > 0
      ? confirmation(
          'Delete all captured emails? Their records stay under Emails.',
          button('/inbox/delete-all', 'Delete all', { kind: 'danger' }),
          '/inbox',
        )
      : none
  const list = html`<div class="list"><form method="get" action="/inbox" class="filters" data-auto>
${searchForm.show({ q }).field('q')}<button data-auto>Search</button>
</form>
${region('list', await renderList(visit, mailbox, q))}</div>`
  const open = email === null ? renderEmpty(mailbox) : await renderEmail(email, visit)
  const body = html`<div class="title"><h1>Inbox</h1>${clear}</div>
${asked}
<div class="mailbox ${email === null ? '' : 'open'}">${list}<div class="mail">${open}</div></div>
<p class="soft">These emails were captured, not sent. The inbox keeps the newest ${capturedMax} until dev mode stops.</p>`
  return { title: email?.subject ?? 'Inbox', body, nav: 'inbox', live: 'inbox' }
}

async function renderList({ get, now }: Visit, { email, emails }: Mailbox, q: string): Promise<Html> {
  const found = emails.filter((each) => matchesText(each, q))
  const rows = found.map(
    ({
      id,
      to,
      subject,
      app,
      type,
      receivedAt,
      seen,
    }) => html`<li class="${seen ? '' : 'unread'}"><a href="/inbox/${id}"${id === email?.id ? html` aria-current="true"` : none}>
<span class="to">${to}</span><span class="subject"><bdi>${subject}</bdi></span>
<span class="soft">${app} · ${nameEmailType(type)} · ${age(iso(receivedAt), now)}</span></a></li>
`,
  )
  const refusals = q.trim() === '' ? await readRefusals(get) : []
  const refused = refusals.map(
    ({ at, code, origin, requestId, slug }) => html`<li class="refused"><a href="/refusals/${requestId}">
<span class="to">${nameRefusal(code)}</span>${origin === null ? none : html`<span class="subject">${origin}</span>`}
<span class="soft">${slug} · ${age(at, now)}</span></a></li>
`,
  )
  const shownRefusals =
    refused.length === 0 ? none : html`<h2 class="soft">Refused requests</h2><ul class="inbox">${refused}</ul>`
  const shown =
    found.length > 0
      ? html`<ul class="inbox">${rows}</ul>`
      : html`<p class="empty">${emails.length === 0 ? 'No email yet.' : 'No email matches.'}</p>`
  return html`${shown}${shownRefusals}`
}

const refusalsShown = 5

async function readRefusals(get: Visit['get']) {
  const { slugs } = await get('app.names', {})
  const { items } = await get('refusal.list', { query: { limit: refusalsShown } })
  return items.map((refusal) => ({ ...refusal, slug: slugs[refusal.app] ?? refusal.app }))
}

/** The place of an email, before one is open. */
function renderEmpty({ curl, emails }: Mailbox): Html {
  const send = html`<form method="post" action="/inbox/examples"><button class="${emails.length === 0 ? 'main' : ''}">Send one of each kind</button></form>`
  const line =
    curl === null ? none : html`<p>Or send one yourself:</p><pre>${curl}</pre>${copyButton(curl, 'Copy the command')}`
  return emails.length === 0
    ? html`<div class="card"><h2>No email yet</h2><p>Emails appear here as soon as they are captured.</p>${send}${line}</div>`
    : html`<div class="card"><p class="soft">Choose an email to read it.</p>${send}</div>`
}

async function renderEmail(email: CapturedEmail, visit: Visit): Promise<Html> {
  const view = views.find(([name]) => name === visit.query.get('view'))?.[0] ?? 'email'
  const record = await visit.call('email.show', { params: { email: email.id } })
  const trail = record.ok ? record.value.trail : []
  const attempts = trail.map(
    ({ at, outcome, reply }) =>
      html`<li>${time(at)} ${outcome === 'delivered' ? 'captured' : outcome}${reply === undefined || outcome === 'delivered' ? none : html`: ${reply}`}</li>`,
  )
  const entries = views.map(([name, label]) => [label, `/inbox/${email.id}?view=${name}`] as const)
  const label = views.find(([name]) => name === view)?.[1] ?? ''
  return html`<p class="back"><a href="/inbox">‹ All emails</a></p>
<div class="card"><div class="title"><h2><bdi>${email.subject}</bdi></h2><div class="actions">
${linkButton(`/emails/${email.id}`, 'Open record')}${button(`/inbox/${email.id}/delete`, 'Delete')}</div></div>
<p>To <b>${email.to}</b> <span class="soft">from ${formatSender(email)}</span></p>
<p><a class="link" href="${email.url}" target="_blank" rel="noreferrer">${email.url}</a> ${copyButton(email.url, 'Copy the link')}</p>
${email.code === null ? none : html`<p>Code ${copied(email.code)}</p>`}
<details><summary>Details</summary>${facts([
    ['App', html`${email.app}, ${nameEmailType(email.type)}`],
    ['Language', nameLanguage(email.language)],
    [
      'Expires',
      html`${time(iso(email.expiresAt))} <span class="soft">(${age(iso(email.expiresAt), visit.now)})</span>`,
    ],
    ['Attempts', attempts.length === 0 ? 'not recorded yet' : html`<ol>${attempts}</ol>`],
  ])}</details></div>
${tabs('Views of the email', entries, label)}
${renderView(email, view)}`
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
      return html`<p>${linkButton(`/inbox/${email.id}/raw`, 'Download as .eml')}</p><pre>${email.raw.toString('utf8')}</pre>`
    case 'checks':
      return renderChecks(email)
    default:
      return html`<iframe class="email ${frameClasses[view] ?? ''}" title="The email" src="/inbox/${email.id}/html" sandbox="allow-popups allow-popups-to-escape-sandbox"></iframe>`
  }
}

function readHeaders({ raw }: CapturedEmail): string {
  const text = raw.toString('utf8')
  return text.slice(0, text.indexOf('\r\n\r\n'))
}
