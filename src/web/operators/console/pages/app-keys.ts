/**
 * The delivery keys of an app. A key's text stands in the answer to the form that makes it, and nowhere else.
 */

import { hasEnded } from '../../../../domain/bearer.ts'
import { dayMs, describeDuration } from '../../../../domain/duration.ts'
import { quoteForShell } from '../../../../domain/shell.ts'
import { listAll } from '../../../../management/operation/list-all.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource, KeyResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import {
  age,
  button,
  confirmation,
  field,
  mark,
  newSecret,
  problem,
  section,
  select,
  table,
  time,
} from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'
import { makeOnce, onceField } from './change.ts'

/** `made`: a key that this request made. */
type KeyPageState = {
  readonly error?: OperationError
  readonly made?: { readonly key: string; readonly name: string | null; readonly oldEnds?: string }
}

export const showKeys = async (visit: Visit): Promise<PageAnswer> => keysPage(visit, await findApp(visit), {})

async function keysPage(visit: Visit, app: AppResource, { error, made }: KeyPageState): Promise<PageAnswer> {
  const items = await listAll(visit.get, 'key.list', { params: { app: app.slug } })
  const [ended, live] = [
    items.filter((key) => hasEnded(key, visit.now)),
    items.filter((key) => !hasEnded(key, visit.now)),
  ]
  const confirmed = live.find(
    ({ id }) => id === visit.query.get('revoke') || id === visit.query.get('replace'),
  )
  const body = html`${appHead(app, 'Keys')}
${problem(error ?? null)}${made === undefined ? none : renderNewKey(made, app, visit)}
${confirmed === undefined || !visit.may('operator') ? none : renderConfirmation(app, confirmed, visit)}
${section('Keys', html`${keysTable(app, live, visit)}${visit.may('operator') ? newKeyForm(app, visit, error ?? null) : none}`)}
${
  ended.length === 0
    ? none
    : html`<details>
<summary>Keys that have ended (${ended.length})</summary>
${keysTable(app, ended, visit)}</details>`
}`
  const status = error === undefined ? (made === undefined ? 200 : 201) : toHttpStatus(error)
  return { title: `Keys of ${app.name}`, body, nav: 'apps', status }
}

function keysTable({ slug }: AppResource, keys: readonly KeyResource[], visit: Visit): Html {
  const { may, now } = visit
  const rows = keys.map((key) => [
    html`<b>${key.name ?? 'without a name'}</b><br><code class="soft">${key.id}</code>`,
    renderKeyStatus(key, visit),
    html`${age(key.createdAt, now)}<br><span class="soft">by ${key.createdBy}</span>`,
    html`${age(key.lastUsedAt, now)}<br><a href="/emails?key=${key.id}">its emails</a>`,
    hasEnded(key, visit.now) || !may('operator')
      ? none
      : html`<div class="actions"><a class="button" href="/apps/${slug}/keys?replace=${key.id}#confirm">Replace…</a><a class="button" href="/apps/${slug}/keys?revoke=${key.id}#confirm">Revoke…</a></div>`,
  ])
  const empty = 'No key yet. Each program that sends for this app has one of its own.'
  return table('Keys', ['key', 'status', 'created', 'last used', 'change'], rows, { empty })
}

function renderKeyStatus(key: KeyResource, visit: Visit): Html {
  if (key.revokedAt !== null) return html`${mark('off', '–', 'revoked')} ${age(key.revokedAt, visit.now)}`
  if (key.expiresAt === null) return mark('good', '●', 'active')
  return hasEnded(key, visit.now)
    ? html`${mark('off', '–', 'expired')} ${age(key.expiresAt, visit.now)}`
    : html`${mark('wait', '◐', 'active until')} ${time(key.expiresAt)}`
}

const expiries = [
  ['', 'never'],
  ['30', 'in 30 days'],
  ['90', 'in 90 days'],
  ['365', 'in a year'],
] as const

function newKeyForm({ slug }: AppResource, { form }: Visit, error: OperationError | null): Html {
  return html`<form method="post" action="/apps/${slug}/keys" class="filters">${onceField()}
${field('name', {
  label: 'Name of a new key',
  value: form.get('name') ?? '',
  attributes: html`required maxlength="100" placeholder="production"`,
  error,
})}
${select('expires', expiries, { label: 'It expires', value: form.get('expires') ?? '' })}
<button class="main">Create a key</button></form>`
}

export async function createKey(visit: Visit): Promise<PageAnswer> {
  const { form, now } = visit
  const app = await findApp(visit)
  const [days] = expiries.find(([value]) => value === form.get('expires')) ?? ['']
  const expiresAt = days === '' ? null : new Date(now + Number(days) * dayMs).toISOString()
  const body = { name: (form.get('name') ?? '').trim() || null, expiresAt }
  const made = await makeOnce(visit, () => visit.call('key.create', { params: { app: app.slug }, body }))
  if (!made.ok) return keysPage(visit, app, { error: made.error })
  return keysPage(visit, app, { made: made.value })
}

const exampleLifeMs = 900_000

/** The key, and how to send an email with it. */
function renderNewKey(
  { key, name, oldEnds }: NonNullable<KeyPageState['made']>,
  app: AppResource,
  { now, shell }: Visit,
): Html {
  const [entry = 'https://app.acme.example'] = app.allowedUrls
  const body = {
    to: 'you@example.com',
    type: 'magic_link',
    url: `${entry.replace('*.', 'www.').replace(/\/?\*?$/, '')}/sign-in?token=example`,
    expiresAt: new Date(now + exampleLifeMs).toISOString(),
  }
  const curl = `curl ${shell.apiUrl}/v1/email \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d ${quoteForShell(JSON.stringify(body))}`
  const client = `POSTERN_BASE_URL=${shell.apiUrl}
POSTERN_DELIVERY_KEY=${key}`
  const ends = oldEnds === undefined ? none : html` The old key works until ${time(oldEnds)}.`
  const text = html`It is shown this once; only its hash is kept.${ends}`
  const examples = html`<details><summary>Send an email with curl</summary><pre>${curl}</pre></details>
<details>
<summary>Send emails from an app</summary>
<p>The package <code>@postern/client</code> reads these variables. It has adapters for Better Auth, Auth.js, Convex, Supabase and own-auth.</p>
<pre>${client}</pre>
</details>`
  return newSecret(`Copy the key ${name ?? ''} now`, text, key, examples)
}

const graces = [
  ['0', 'at once'],
  ['3600', 'after 1 hour'],
  ['86400', 'after 1 day'],
  ['604800', 'after 7 days'],
] as const

function renderConfirmation(
  { slug }: AppResource,
  { id, lastUsedAt, name }: KeyResource,
  { now, query }: Visit,
): Html {
  const path = `/apps/${slug}/keys`
  const used =
    lastUsedAt === null
      ? 'It has never been used.'
      : `It was last used ${describeDuration(now - Date.parse(lastUsedAt))} ago.`
  if (query.get('revoke') === id) {
    const form = button(`${path}/${id}/revoke`, 'Revoke the key', { kind: 'danger' })
    return confirmation(
      `Revoke the key ${name ?? id}? ${used} Requests with it are refused at once. This cannot be undone.`,
      form,
      path,
    )
  }
  const form = html`<form method="post" action="${path}/${id}/replace" class="filters">${onceField()}
${select('grace', graces, { label: 'The old key stops working', value: '86400' })}
<button class="main">Replace the key</button>
</form>`
  return confirmation(
    `Replace the key ${name ?? id}? ${used} A new key of the same name is created, and shown once.`,
    form,
    path,
  )
}

export async function revokeKey(visit: Visit): Promise<PageAnswer> {
  const revoked = await visit.get('key.revoke', { params: { key: visit.params.key ?? '' } })
  const app = await visit.get('app.show', { params: { app: revoked.app } })
  return { redirect: `/apps/${app.slug}/keys`, notice: 'key_revoked' }
}

export async function replaceKey(visit: Visit): Promise<PageAnswer> {
  const grace = graces.find(([seconds]) => seconds === visit.form.get('grace'))?.[0] ?? '86400'
  const params = { key: visit.params.key ?? '' }
  const body = { graceSeconds: Number(grace) }
  const made = await makeOnce(visit, () => visit.call('key.replace', { params, body }))
  if (!made.ok && made.error.code === 'not_found') throw new PageFailed(made.error)
  const app = await visit.get('app.show', {
    params: { app: made.ok ? made.value.app : (visit.params.app ?? '') },
  })
  if (!made.ok) return keysPage(visit, app, { error: made.error })
  const { key, name, oldExpiresAt } = made.value
  return keysPage(visit, app, { made: { key, name, oldEnds: oldExpiresAt } })
}
