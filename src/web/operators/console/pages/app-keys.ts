/**
 * The delivery keys of an app. A key's text stands in the answer to the form that makes it, and nowhere else.
 */

import { sampleLifeMs, sampleUrl } from '../../../../domain/app/sample-link.ts'
import { testDomain } from '../../../../domain/app/test-side.ts'
import { hasEnded } from '../../../../domain/bearer.ts'
import { dayMs } from '../../../../domain/duration.ts'
import { shortenId } from '../../../../domain/id.ts'
import { quoteForShell } from '../../../../domain/shell.ts'
import { listAll } from '../../../../management/list-all.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource, KeyResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { keyCharts, ranges } from '../activity-charts.ts'
import { newForm, readTexts } from '../form.ts'
import { age, copyButton, linkButton, mark, newSecret, section, shortId, table, time } from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'
import { makeOnce, onceField } from './change.ts'
import { graces, isReplaced, networksField, readNetworks, renderKeyQuestion } from './key-questions.ts'

/** `made`: a key that this request made. */
type KeyPageState = {
  readonly error?: OperationError
  /** The key whose networks were refused. */
  readonly changed?: string
  readonly made?: {
    readonly key: string
    readonly name: string | null
    readonly test: boolean
    readonly oldEnds?: string
  }
}

const expiries = [
  ['', 'Never'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
] as const

const newKeyForm = newForm('key', {
  name: {
    label: 'Name of a new key',
    faults: ['name_taken'],
    attributes: html`required maxlength="100" placeholder="production" autocomplete="off"`,
  },
  expires: { label: 'Expires', choices: expiries, faults: ['expiresAt'] },
  networks: networksField,
  test: {
    label: 'Sends',
    choices: [
      ['', 'Real mail'],
      ['true', `Tests, to ${testDomain} only`],
    ],
  },
})

export const showKeys = async (visit: Visit): Promise<PageAnswer> => keysPage(visit, await findApp(visit), {})

async function keysPage(visit: Visit, app: AppResource, { changed, error, made }: KeyPageState): Promise<PageAnswer> {
  const { query } = visit
  // A key that this request replaced at once has ended since.
  const now = visit.now + (made === undefined ? 0 : momentMs)
  const mayChange = visit.may('operator')
  const [, day] = ranges
  const [items, activity] = await Promise.all([
    listAll(visit.get, 'key.list', { params: { app: app.slug } }),
    visit.get('activity.show', { query: { app: app.slug, ...day.query(now) } }),
  ])
  // A key that was replaced has the name of the new one.
  const isShared = (name: string) => items.filter((other) => other.name === name).length > 1
  const names = new Map(
    items.flatMap(({ id, name }) =>
      name === null ? [] : [[id, isShared(name) ? `${name} (${shortenId(id)})` : name] as const],
    ),
  )
  const ended = items.filter((key) => hasEnded(key, now))
  const live = items.filter((key) => !hasEnded(key, now)).toReversed()
  const confirmed = live.find(({ id }) =>
    [query.get('revoke'), query.get('replace'), query.get('networks'), changed].includes(id),
  )
  const over = ended.find(({ id }) => id === query.get('revoke') || id === changed)
  const ofNew = changed === undefined || (confirmed ?? over) === undefined ? error : undefined
  const shown = newKeyForm.show(ofNew === undefined ? {} : readTexts(visit.form), ofNew)
  const form = html`<form method="post" action="/apps/${app.slug}/keys" class="filters">${onceField()}
${shown.field('name')}
${shown.field('expires')}
${shown.field('networks')}
${shown.field('test')}
<button class="main">Create a key</button></form>`
  const body = html`${appHead(app, 'Keys', visit)}
${shown.problem}${made === undefined ? none : renderNewKey(made, app, visit)}
${
  confirmed === undefined || !mayChange
    ? renderEnded(over, now)
    : renderKeyQuestion(app, confirmed, { changed, error, items, visit })
}
${section('Keys', html`${keysTable(app, live, visit)}${mayChange ? form : none}`)}
${keyCharts(activity, day, now, names)}
${
  ended.length === 0
    ? none
    : html`<details>
<summary>Revoked and expired keys (${ended.length})</summary>
${keysTable(app, ended, visit)}</details>`
}`
  const status = error === undefined ? (made === undefined ? 200 : 201) : toHttpStatus(error)
  return { title: `Keys of ${app.name}`, body, nav: 'apps', status }
}

/** A key that was looked for, and that no request can use any more. */
function renderEnded(key: KeyResource | undefined, now: number): Html {
  if (key === undefined) return none
  const end = key.revokedAt ?? key.expiresAt
  return html`<div class="note"><p><b>The key ${key.name ?? key.id} ${key.revokedAt === null ? 'expired' : 'was revoked'} ${age(end, now)}</b>, at ${time(end)}. Requests with it are refused. It is listed below among the revoked and expired keys.</p></div>`
}

/** The newest first: after a replacement, the new key stands above the old one. */
function keysTable({ slug }: AppResource, keys: readonly KeyResource[], visit: Visit): Html {
  const { may, now } = visit
  const change = (key: KeyResource): Html[] => {
    if (!may('operator')) return []
    if (hasEnded(key, now)) return [none]
    const to = (what: 'replace' | 'revoke' | 'networks') => `/apps/${slug}/keys?${what}=${key.id}#confirm`
    const replace =
      key.hook === null
        ? linkButton(to('replace'), 'Replace…', key.name ?? key.id)
        : linkButton(`/apps/${slug}/connect/${key.hook}`, 'Replace…', key.name ?? key.id)
    const others = [
      ['networks', 'Addresses…'],
      ['revoke', 'Revoke…'],
    ] as const
    return [
      html`<div class="actions">${replace}${others.map(([what, label]) => linkButton(to(what), label, key.name ?? key.id))}</div>`,
    ]
  }
  const rows = keys.map((key) => [
    html`<b>${key.name ?? 'unnamed'}</b>${key.test ? html` ${mark('wait', 'test key')}` : none}<br>${shortId(key.id)}`,
    html`${renderKeyStatus(key, keys, now)}${renderNetworks(key)}`,
    html`${age(key.createdAt, now)}<br><span class="soft">by ${key.createdBy}</span>`,
    html`${renderLastUse(key, now)}<br><a href="/emails?key=${key.id}">Show its emails<span class="hidden"> (${key.name ?? key.id})</span></a>`,
    ...change(key),
  ])
  const empty = 'No working key. Create one for each program that sends for this app.'
  const heads = ['Key', 'Status', 'Created', 'Last used (to the minute)', ...(may('operator') ? [''] : [])]
  return table('Keys', heads, rows, { empty })
}

const unusedMs = 90 * dayMs

function renderLastUse(key: KeyResource, now: number): Html {
  const isUnused = now - Date.parse(key.lastUsedAt ?? key.createdAt) > unusedMs
  return isUnused && !hasEnded(key, now)
    ? html`${age(key.lastUsedAt, now)} <span class="mark wait">unused</span>`
    : age(key.lastUsedAt, now)
}

const renderNetworks = ({ networks }: KeyResource): Html =>
  networks === null ? none : html`<br><span class="soft">from ${networks.join(', ') || 'no address'}</span>`

function renderKeyStatus(key: KeyResource, keys: readonly KeyResource[], now: number): Html {
  if (key.revokedAt !== null) return html`${mark('off', 'revoked')} ${age(key.revokedAt, now)}`
  if (key.expiresAt === null) return mark('quiet', 'active')
  if (hasEnded(key, now)) return html`${mark('off', 'expired')} ${age(key.expiresAt, now)}`
  return html`${isReplaced(key, keys) ? mark('wait', 'replaced') : mark('quiet', 'active')} until ${time(key.expiresAt)}`
}

export async function createKey(visit: Visit): Promise<PageAnswer> {
  const { form, now } = visit
  const app = await findApp(visit)
  const [days] = expiries.find(([value]) => value === form.get('expires')) ?? ['']
  const expiresAt = days === '' ? null : new Date(now + Number(days) * dayMs).toISOString()
  const name = (form.get('name') ?? '').trim() || null
  const body = { name, expiresAt, networks: readNetworks(form), test: form.get('test') === 'true' }
  const made = await makeOnce(visit, () => visit.call('key.create', { params: { app: app.slug }, body }))
  if (!made.ok) return keysPage(visit, app, { error: made.error })
  return keysPage(visit, app, { made: made.value })
}

/** A key that was replaced at once ended after the page was asked for. */
const momentMs = 10_000

/** The key, and how to send an email with it. */
function renderNewKey(
  { key, name, oldEnds, test }: NonNullable<KeyPageState['made']>,
  app: AppResource,
  { now, shell }: Visit,
): Html {
  const body = {
    to: test ? `delivered@${testDomain}` : shell.hasInbox ? 'you@example.com' : 'YOUR-ADDRESS',
    type: 'magic_link',
    url: sampleUrl(app) ?? 'https://app.acme.example/sign-in?token=example',
    expiresAt: new Date(now + sampleLifeMs).toISOString(),
  }
  const curl = `curl ${shell.apiUrl}/v1/email \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d ${quoteForShell(JSON.stringify(body))}`
  const client = `POSTERN_BASE_URL=${shell.apiUrl}
POSTERN_DELIVERY_KEY=${key}`
  const ends =
    oldEnds === undefined
      ? none
      : Date.parse(oldEnds) <= now + momentMs
        ? ' The old key is refused from now on.'
        : html` The old key works until ${time(oldEnds)}.`
  const text = html`It is shown only this once: Postern cannot show it again.${ends}`
  const examples = html`<p>${linkButton(`/apps/${app.slug}#test-email`, 'Send a test email')} ${linkButton(`/apps/${app.slug}/domain`, 'Check its DNS')}</p>
<details><summary>Send an email with curl</summary><pre>${curl}</pre>${copyButton(curl, 'Copy the command')}<p class="soft">The email is then under <a href="/emails?app=${app.slug}${test ? '&test=true' : ''}">Emails</a>.</p></details>
<details>
<summary>Send emails from an app</summary>
<p>The package <code>@postern/client</code> reads these variables. It has adapters for Better Auth, Auth.js, Convex, Supabase and own-auth.</p>
<pre>${client}</pre>${copyButton(client, 'Copy the variables')}
</details>`
  return newSecret(`Copy the key${name === null ? '' : ` “${name}”`} now`, text, key, examples)
}

export async function revokeKey(visit: Visit): Promise<PageAnswer> {
  const revoked = await visit.get('key.revoke', { params: { key: visit.params.key ?? '' } })
  const app = await visit.get('app.show', { params: { app: revoked.app } })
  return { redirect: `/apps/${app.slug}/keys`, notice: 'key_revoked' }
}

export async function saveNetworks(visit: Visit): Promise<PageAnswer> {
  const params = { key: visit.params.key ?? '' }
  const result = await visit.call('key.change', { params, body: { networks: readNetworks(visit.form) } })
  const app = await findApp(visit)
  if (!result.ok) return keysPage(visit, app, { error: result.error, changed: params.key })
  return { redirect: `/apps/${app.slug}/keys`, notice: 'saved' }
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
  const { key, name, oldExpiresAt, test } = made.value
  return keysPage(visit, app, { made: { key, name, test, oldEnds: oldExpiresAt } })
}
