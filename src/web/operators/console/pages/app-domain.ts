/** The domain of an app's From address: its signing keys with their records, and the check of its DNS. */
import { proofRecord } from '../../../../domain/app/sender-domains.ts'
import { formatZoneLine } from '../../../../domain/dns/dkim-record.ts'
import type { AppId } from '../../../../domain/id.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { newForm, problem, readTexts } from '../form.ts'
import type { Notice } from '../notices.ts'
import { age, button, confirmation, copied, copyButton, linkButton, mark, section, table } from '../parts.ts'
import { type PageAnswer, toHttpStatus, type Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'

type Shown = Answer<'domain.show'>
type Key = Shown['keys'][number]
type LastCheck = NonNullable<Shown['lastCheck']>

type DomainPageState = { readonly error?: OperationError }

export const showDomain = async (visit: Visit): Promise<PageAnswer> => domainPage(visit, await findApp(visit), {})

async function domainPage(visit: Visit, app: AppResource, { error }: DomainPageState): Promise<PageAnswer> {
  const shown = await visit.get('domain.show', { params: { app: app.slug } })
  const check = visit.may('operator')
    ? button(`/apps/${app.slug}/domain/check#check`, 'Check now', { kind: 'main' })
    : html`<p class="soft">An operator can check it.</p>`
  const body = html`${appHead(app, 'Domain', visit)}
${problem(error ?? null)}${confirmRemoval(app, shown, visit)}
${section(
  `DNS of ${shown.domain}`,
  html`<div id="check"><p class="soft">Receiving servers check DNS to see whether mail from this domain is genuine.</p>${shown.lastCheck === null ? check : renderLines(shown.lastCheck, check, visit)}${renderZone(shown)}</div>`,
)}
${section('Sender domains', renderDomains(app, visit, error ?? null))}
${section('Signing keys (DKIM)', html`${renderKeys(app, shown, visit)}${renderAdd(app, visit)}`)}`
  return {
    ...{ title: `Domain of ${app.name}`, body, nav: 'apps' },
    ...(error && { status: toHttpStatus(error) }),
  }
}

const proveForm = newForm('prove', {
  domain: {
    label: 'Domain',
    attributes: html`required spellcheck="false" autocomplete="off" placeholder="acme.example"`,
    hint: 'Subdomains count as domains of their own.',
  },
})

/** The domains that the app may send from, and how its people add one by themselves. */
function renderDomains(app: AppResource, visit: Visit, error: OperationError | null): Html {
  const rows = app.senderDomains.map((domain) => [domain])
  const list = table('Sender domains', ['Domain'], rows, { empty: 'None yet.' })
  if (!visit.may('operator')) return list
  const isRefused = visit.form.has('domain')
  const shown = proveForm.show(isRefused ? readTexts(visit.form) : {}, isRefused ? error : null)
  const { name, value } = proofRecord(app.id as AppId, 'DOMAIN')
  return html`<p class="soft">The sender and bounce addresses must be in one of these domains. An admin of the whole service adds one by setting an address in it. To add your own, publish this TXT record:</p>
<dl><dt>Name</dt><dd><code>${name}</code></dd><dt>TXT value</dt><dd>${copied(value)}</dd></dl>${list}
<form method="post" action="/apps/${app.slug}/domain/prove" class="filters">
${shown.field('domain')}
<button>Check the record</button></form>`
}

const checkNames: Readonly<Record<LastCheck['lines'][number]['check'], string>> = {
  ...{ dkim: 'DKIM', spf: 'SPF', dmarc: 'DMARC', alignment: 'Alignment', mx: 'MX' },
  bounce_domain: 'Bounce domain',
  link_domain: 'Link domain',
}
const tones = { ok: 'quiet', warn: 'wait', fail: 'bad', unknown: 'off' } as const
const resultNames = { ok: 'ok', warn: 'warning', fail: 'failed', unknown: 'unknown' } as const

function renderLines({ at, lines }: LastCheck, check: Html, { now }: Visit): Html {
  const rows = lines.map(({ check: name, found, message, name: asked, publish, result }) => [
    html`<b>${checkNames[name]}</b><br><span class="soft">${asked}</span>`,
    mark(tones[result], resultNames[result]),
    html`${message}${found === null || result === 'ok' ? none : html`<br><span class="reply">${found}</span>`}${publish === null ? none : renderRecord(publish)}`,
  ])
  return html`<p>Checked ${age(at, now)}.</p>${table('DNS', ['Record', 'Result', 'Finding'], rows)}${check}`
}

/** The records of the keys, and those that the check suggests, for a zone file. */
function renderZone({ keys, lastCheck }: Shown): Html {
  const ofKeys = keys.filter(({ state }) => state !== 'retired').map(({ record }) => record)
  const others = lastCheck?.lines.filter(({ check }) => check !== 'dkim') ?? []
  const suggested = others.flatMap(({ publish }) => publish ?? [])
  const records = new Map([...ofKeys, ...suggested].map((record) => [`${record.name} ${record.value}`, record]))
  if (records.size === 0) return none
  const zone = [...records.values()].map(formatZoneLine).join('\n')
  return html`<details><summary>All records, for a zone file</summary><pre>${zone}</pre>${copyButton(zone, 'Copy the records')}</details>`
}

const shownMax = 48

const renderRecord = ({ name, type, value }: Key['record']): Html =>
  html`<dl><dt>Name</dt><dd>${copied(name)}</dd><dt>${type} value</dt><dd>${copied(value, value.length > shownMax ? `${value.slice(0, shownMax)}…` : value)}</dd></dl>`

const states = { pending: 'wait', active: 'good', retired: 'off' } as const
const next = {
  pending: 'Publish this record, then activate the key.',
  active: 'Signs the mail. Keep its record.',
  retired: 'Another key signs. Keep this record for 7 days, then remove it, and the key.',
} as const

function renderKeys(app: AppResource, { apps, domain, keys }: Shown, visit: Visit): Html {
  const others = apps.filter((slug) => slug !== app.slug)
  const shared = others.length === 0 ? '' : ` ${others.join(', ')} ${others.length === 1 ? 'shares' : 'share'} them.`
  const mayChange = maySign(visit)
  const rows = keys.map((key) => [
    html`<b>${key.selector}</b><br><span class="soft">${key.algorithm}</span>`,
    html`${mark(states[key.state], key.state)}<br>${age(key.changedAt, visit.now)}`,
    html`${next[key.state]}${renderRecord(key.record)}`,
    ...(mayChange ? [renderActions(app, key)] : []),
  ])
  const empty = `Postern does not sign mail from ${domain}. If your relay does not sign it either, add a key.`
  const heads = ['Key', 'State', 'Record to publish', ...(mayChange ? [''] : [])]
  return html`<p class="soft">These keys sign the mail from ${domain}.${shared}</p>${table('Signing keys', heads, rows, { empty })}`
}

/** Apps of one domain share its keys. */
const maySign = ({ may, seesAll }: Visit): boolean => may('admin') && seesAll

function renderActions({ slug }: AppResource, { selector, state }: Key): Html {
  const to = `/apps/${slug}/domain`
  const activate = state === 'active' ? none : button(`${to}/keys/${selector}/activate`, 'Activate')
  return html`<div class="actions">${activate}${linkButton(`${to}?remove=${selector}#confirm`, 'Remove…')}</div>`
}

function renderAdd({ slug }: AppResource, visit: Visit): Html {
  if (!maySign(visit)) return html`<p class="soft">An admin of the whole service can add keys.</p>`
  const add = (algorithm: string, label: string) =>
    button(`/apps/${slug}/domain/keys`, label, { fields: { algorithm } })
  return html`<div class="actions">${add('rsa', 'Add a key')}${add('ed25519', 'Add an Ed25519 key')}</div>
<p class="soft">All receivers verify RSA. Few verify Ed25519 yet, so add it alongside RSA, not instead.</p>`
}

function confirmRemoval({ slug }: AppResource, { domain, keys }: Shown, visit: Visit): Html {
  const key = keys.find(({ selector }) => selector === visit.query.get('remove'))
  if (key === undefined || !maySign(visit)) return none
  const { selector, state } = key
  const effect = state === 'active' ? ` It signs the mail from ${domain}, which is then not signed by it.` : ''
  const form = button(`/apps/${slug}/domain/keys/${selector}/remove`, 'Remove the key', { kind: 'danger' })
  return confirmation(`Remove the key ${selector}?${effect}`, form, `/apps/${slug}/domain`)
}

export async function checkDomain(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const checked = await visit.call('domain.check', { params: { app: app.slug } })
  return checked.ok ? { redirect: `/apps/${app.slug}/domain#check` } : domainPage(visit, app, { error: checked.error })
}

export async function proveDomain(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const body = { domain: visit.form.get('domain')?.trim() ?? '' }
  const proved = await visit.call('domain.prove', { params: { app: app.slug }, body })
  if (!proved.ok) return domainPage(visit, app, { error: proved.error })
  return { redirect: `/apps/${app.slug}/domain`, notice: 'domain_proved' }
}

export async function addKey(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const algorithm = visit.form.get('algorithm') === 'ed25519' ? 'ed25519' : 'rsa'
  const added = await visit.call('domain.add_key', { params: { app: app.slug }, body: { algorithm } })
  return answerChange(visit, app, added, 'key_added')
}

export async function activateKey(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const params = { app: app.slug, selector: visit.params.selector ?? '' }
  return answerChange(visit, app, await visit.call('domain.activate_key', { params, body: {} }), 'key_activated')
}

export async function removeKey(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const params = { app: app.slug, selector: visit.params.selector ?? '' }
  return answerChange(visit, app, await visit.call('domain.remove_key', { params }), 'key_removed')
}

const answerChange = (
  visit: Visit,
  app: AppResource,
  result: { readonly ok: true } | { readonly ok: false; readonly error: OperationError },
  notice: Notice,
): Promise<PageAnswer> | PageAnswer =>
  result.ok ? { redirect: `/apps/${app.slug}/domain`, notice } : domainPage(visit, app, { error: result.error })
