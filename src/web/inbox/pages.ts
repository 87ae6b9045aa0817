/** The pages of the inbox: a list, and one email with its link, its parts and its attempts. */

import type { CapturedEmail } from '../../delivery/relay/capture-relay.ts'
import type { EmailRecord } from '../../store/operator-store.ts'
import { type Html, html } from '../../templates/html.ts'

export const views = ['html', 'text', 'headers', 'raw'] as const
export type View = (typeof views)[number]

function page(title: string, newest: string, body: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title}</title>
<link rel="stylesheet" href="/inbox.css">
<link rel="icon" href="data:,">
<script src="/inbox.js" defer></script>
</head>
<body data-newest="${newest}">
<header><a href="/">Postern inbox</a><span>Emails that this dev server captured. None was sent.</span></header>
<main>${body}</main>
</body>
</html>
`.text
}

const time = (ms: number): Html => {
  const iso = new Date(ms).toISOString()
  return html`<time datetime="${iso}">${iso.replace('T', ' ').slice(0, 19)} UTC</time>`
}

export function listPage(emails: readonly CapturedEmail[]): string {
  const rows = emails.map(
    (email) => html`<li><a href="/email/${email.id}">
<span class="to">${email.to}</span><span class="subject">${email.subject}</span>
<span class="meta"><b>${email.app}</b> · ${email.type} · ${time(email.receivedAt)}</span></a></li>
`,
  )
  const empty = html`<p class="empty">No email yet. Send one with the <code>curl</code> line that the server printed. It appears here within seconds.</p>`
  const body = emails.length === 0 ? empty : html`<ul class="list">${rows}</ul>`
  return page('Inbox', emails[0]?.id ?? '', html`<h1>Inbox</h1>${body}`)
}

export function emailPage(email: CapturedEmail, record: EmailRecord | null, view: View): string {
  const tabs = views.map((name) => {
    const current = name === view ? html` aria-current="page"` : html``
    return html`<a href="/email/${email.id}?view=${name}"${current}>${name === 'html' ? 'HTML' : name}</a>`
  })
  const body = html`<h1>${email.subject}</h1>
<dl>
<dt>To</dt><dd>${email.to}</dd>
<dt>From</dt><dd>${email.sender}</dd>
<dt>App</dt><dd>${email.app}, ${email.type}</dd>
<dt>Link</dt><dd><a class="link" href="${email.url}" target="_blank" rel="noreferrer">${email.url}</a></dd>
<dt>Expires</dt><dd>${time(email.expiresAt)} <span data-expires="${email.expiresAt}"></span></dd>
<dt>Attempts</dt><dd>${attempts(record)}</dd>
</dl>
<nav>${tabs}</nav>
${viewOf(email, view)}`
  return page(email.subject, '', body)
}

function attempts(record: EmailRecord | null): Html {
  if (record === null || record.trail.length === 0) return html`not recorded yet`
  const lines = record.trail.map(
    (attempt) =>
      html`<li>${time(attempt.at)} ${attempt.outcome}${attempt.reply === undefined ? '' : `: ${attempt.reply.text}`}</li>`,
  )
  return html`<ol>${lines}</ol>`
}

function viewOf(email: CapturedEmail, view: View): Html {
  switch (view) {
    case 'html':
      return html`<iframe title="The email" src="/email/${email.id}/html" sandbox="allow-popups allow-popups-to-escape-sandbox"></iframe>`
    case 'text':
      return html`<pre>${email.text}</pre>`
    case 'headers':
      return html`<pre>${headersOf(email)}</pre>`
    case 'raw':
      return html`<pre>${email.raw.toString('utf8')}</pre>`
    default:
      return view satisfies never
  }
}

function headersOf({ raw }: CapturedEmail): string {
  const text = raw.toString('utf8')
  return text.slice(0, text.indexOf('\r\n\r\n'))
}

export const stylesheet = `
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6472;--line:#dfe3e8;--back:#f6f7f9;--card:#fff;--link:#1d4ed8}
@media (prefers-color-scheme:dark){:root{--ink:#f1f3f5;--soft:#a9b2bf;--line:#343a43;--back:#111317;--card:#1c1f24;--link:#93b4ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
header{display:flex;flex-wrap:wrap;gap:4px 16px;align-items:baseline;padding:14px 20px;border-bottom:1px solid var(--line);background:var(--card)}
header a{font-weight:700;color:inherit;text-decoration:none}header span{color:var(--soft);font-size:14px}
main{max-width:960px;margin:0 auto;padding:20px}h1{font-size:22px;line-height:1.3;margin:4px 0 16px;overflow-wrap:anywhere}
a{color:var(--link)}a:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.list{list-style:none;margin:0;padding:0;border:1px solid var(--line);border-radius:10px;overflow:hidden;background:var(--card)}
.list li+li{border-top:1px solid var(--line)}
.list a{display:grid;gap:2px;padding:12px 16px;color:inherit;text-decoration:none}.list a:hover{background:var(--back)}
.to{font-weight:600;overflow-wrap:anywhere}.meta{color:var(--soft);font-size:14px}
.empty{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:6px 16px;margin:0 0 20px}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
ol{margin:0;padding-left:20px}.link{word-break:break-all}
nav{display:flex;gap:4px;border-bottom:1px solid var(--line);margin-bottom:12px}
nav a{padding:8px 14px;color:var(--soft);text-decoration:none;text-transform:capitalize;border-bottom:2px solid transparent}
nav a[aria-current]{color:var(--ink);border-color:var(--link);font-weight:600}
iframe{width:100%;height:760px;border:1px solid var(--line);border-radius:10px;background:var(--card)}
pre{margin:0;padding:16px;border:1px solid var(--line);border-radius:10px;background:var(--card);white-space:pre-wrap;overflow-wrap:anywhere;font-size:14px}
@media (max-width:480px){main{padding:16px}dl{grid-template-columns:1fr;gap:2px}dd{margin-bottom:8px}}
`

// Shows new mail while the page is visible, and how long a link is still valid.
export const script = `
const newest = document.body.dataset.newest
if (location.pathname === '/') setInterval(async () => {
  if (document.hidden) return
  const [first] = await (await fetch('/api/inbox')).json()
  if ((first ? first.id : '') !== newest) location.reload()
}, 2000)
const left = document.querySelector('[data-expires]')
const units = [[86400, 'days'], [3600, 'hours'], [60, 'min'], [1, 's']]
const show = () => {
  const seconds = Math.floor((Number(left.dataset.expires) - Date.now()) / 1000)
  const [size, name] = units.find(([size]) => seconds >= 2 * size) ?? [1, 's']
  left.textContent = seconds <= 0 ? '(expired)' : '(in ' + Math.floor(seconds / size) + ' ' + name + ')'
}
if (left) { show(); setInterval(show, 1000) }
`
