/** The links that an app may send, and the tester, which asks the same rules that judge a request. */
import {
  entryCharactersMax,
  normalEntries,
  parseAllowedUrl,
  parseAppScheme,
} from '../../../../domain/app/allowed-entry.ts'
import { allRefusalsMax } from '../../../../domain/request/refused-request.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { emailTypeNames, readEmailType } from '../../email-types.ts'
import { type Form, newForm, readTexts, withoutIssues } from '../form.ts'
import { button, confirmation, hiddenFields, linkButton, section, table } from '../parts.ts'
import { type PageAnswer, toHttpStatus, type Visit } from '../visit.ts'
import { allowButton, withScheme } from './allow-entry.ts'
import { renderSwitch, type SwitchName } from './app-switches.ts'
import { appHead, findApp } from './apps.ts'
import { saveApp } from './change.ts'

type Check = Answer<'app.check_link'>
type Kind = 'allowedUrls' | 'appSchemes'

/** `tested`: a link and its verdict. */
type LinkPageState = {
  readonly error?: OperationError
  readonly tested?: { readonly link: string; readonly check: Check; readonly isOffered: boolean }
}

const entryAttributes = html`required maxlength="${entryCharactersMax}" spellcheck="false" autocapitalize="none" autocomplete="off"`

const addForms: Readonly<Record<Kind, Form<'entry'>>> = {
  allowedUrls: newForm('add-link', {
    entry: {
      label: 'Allow another link',
      faults: ['allowedUrls'],
      attributes: html`${entryAttributes} placeholder="https://app.acme.example/auth/*"`,
      hint: html`A whole site: <code>https://app.acme.example</code>. A part of it: <code>https://app.acme.example/auth/*</code>. Any subdomain: <code>https://*.acme.example</code>.`,
    },
  }),
  appSchemes: newForm('add-scheme', {
    entry: {
      label: 'Allow a mobile app scheme',
      faults: ['appSchemes'],
      attributes: html`${entryAttributes} placeholder="acme://auth"`,
      hint: html`<code>acme</code> allows every link with that scheme, <code>acme://auth</code> only those under it.`,
    },
  }),
}

const testForm = newForm('test', {
  type: { label: 'Email', choices: emailTypeNames },
  url: {
    label: 'Link',
    attributes: html`required spellcheck="false" autocomplete="off" maxlength="10000" placeholder="https://app.acme.example/auth?token=any"`,
    hint: 'Any text will do as the token; do not paste a real one.',
  },
})

/** A link in the address is tested at once. */
export async function showLinks(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const url = visit.query.get('url')
  return url === null ? linksPage(visit, app, {}) : testPage(visit, app, url)
}

export const testLink = async (visit: Visit): Promise<PageAnswer> =>
  testPage(visit, await findApp(visit), visit.form.get('url') ?? '')

async function testPage(visit: Visit, app: AppResource, url: string): Promise<PageAnswer> {
  const body = { url, type: readEmailType(visit.form.get('type')) }
  const params = { app: app.slug }
  const check = await visit.call('app.check_link', { params, body })
  if (!check.ok) return linksPage(visit, app, { error: check.error })
  // Anybody can make an address with a link in it: one to allow was typed here, or sent by the app.
  const origin = URL.parse(url)?.origin
  const isOffered =
    visit.form.has('url') ||
    (
      await visit.get('refusal.list', { query: { app: app.slug, code: 'url_not_allowed', limit: allRefusalsMax } })
    ).items.some((refusal) => refusal.origin === origin)
  return linksPage(visit, app, { tested: { link: withoutToken(url), check: check.value, isOffered } })
}

/** The query may hold a token: its values are not shown again. The link can be tested again as it is. */
function withoutToken(link: string): string {
  const [path = '', query] = link.split(/[?#]/, 2)
  if (query === undefined) return link
  // A text without a value may be the token itself.
  const names = query.split('&').map((text) => (text.includes('=') ? text.slice(0, text.indexOf('=')) : 'token'))
  return `${path}?${names.map((name) => `${name}=any`).join('&')}`
}

async function linksPage(visit: Visit, app: AppResource, { error, tested }: LinkPageState): Promise<PageAnswer> {
  const mayChange = visit.may('operator')
  const sent = visit.form.get('kind')
  const errorOf = (form: string) => (form === (sent ?? 'test') ? (error ?? null) : null)
  const tester = testForm.show(
    { type: readEmailType(visit.form.get('type')), url: tested?.link ?? visit.form.get('url') ?? '' },
    errorOf('test'),
  )
  const add = (kind: Kind) => {
    const shown = addForms[kind].show(errorOf(kind) === null ? {} : readTexts(visit.form), errorOf(kind))
    const form = html`<form method="post" action="/apps/${app.slug}/links/add" class="filters">${hiddenFields({ kind })}
${shown.field('entry')}
<button>Allow</button></form>`
    return { problem: shown.problem, form: mayChange ? form : none }
  }
  const [links, schemes] = [add('allowedUrls'), add('appSchemes')]
  const body = html`${appHead(app, 'Links', visit)}
${renderAllowed(app, visit)}${await renderRemoved(app, visit)}${tester.problem}${links.problem}${schemes.problem}${renderRemoval(app, visit)}
${section(
  'Would this link be sent?',
  html`<div id="tester"><form method="post" action="/apps/${app.slug}/links/test#tester" class="filters">
${tester.field('url')}
${tester.field('type')}
<button class="main">Test</button></form>${tested === undefined ? none : renderVerdict(app, tested, mayChange)}</div>`,
)}
${section(
  'Allowed links',
  html`<p class="soft">Emails from ${app.name} may contain only these links.</p>
${renderEntries(app, { kind: 'allowedUrls', mayChange })}${links.form}`,
)}
${section('Mobile apps', html`${renderEntries(app, { kind: 'appSchemes', mayChange })}${schemes.form}`)}
${section('One-time codes', renderSwitch('allowCodes', app, mayChange))}
${section('Older emails', renderSwitch('supersede', app, mayChange))}
${section('Development', renderSwitch('allowLocalhost', app, mayChange))}`
  return {
    title: `Links of ${app.name}`,
    body,
    nav: 'apps',
    ...(error && { status: toHttpStatus(error) }),
  }
}

const titles: Readonly<Record<Kind, readonly [title: string, empty: string]>> = {
  allowedUrls: ['Allowed links', 'No link is allowed yet, so no email can be sent.'],
  appSchemes: ['Mobile app schemes', 'No mobile app scheme is allowed.'],
}

function renderEntries(
  app: AppResource,
  { kind, mayChange }: { readonly kind: Kind; readonly mayChange: boolean },
): Html {
  const [title, empty] = titles[kind]
  const rows = app[kind].map((entry) => [
    html`<code>${entry}</code>`,
    ...(mayChange
      ? [
          linkButton(
            `/apps/${app.slug}/links?${new URLSearchParams({ kind, remove: entry })}#confirm`,
            'Remove…',
            entry,
          ),
        ]
      : []),
  ])
  return table(title, mayChange ? ['Entry', ''] : ['Entry'], rows, { empty })
}

/** A setting that its button switches. */
const setSwitch =
  (name: SwitchName) =>
  async (visit: Visit): Promise<PageAnswer> => {
    const app = await findApp(visit)
    const error = await saveApp(visit, app, { [name]: visit.form.get('allow') === 'yes' })
    if (error !== null) return linksPage(visit, app, { error })
    return { redirect: `/apps/${app.slug}/links`, notice: 'saved' }
  }

export const setLocalhost = setSwitch('allowLocalhost')
export const setCodes = setSwitch('allowCodes')
export const setSupersede = setSwitch('supersede')

const readKind = (text: string | null): Kind => (text === 'appSchemes' ? 'appSchemes' : 'allowedUrls')

function renderRemoval(app: AppResource, { may, query }: Visit): Html {
  const kind = readKind(query.get('kind'))
  const entry = app[kind].find((known) => known === query.get('remove'))
  if (entry === undefined || !may('operator')) return none
  return confirmation(
    html`Remove <code>${entry}</code>? From then on, requests with matching links are refused.`,
    button(`/apps/${app.slug}/links/remove`, 'Remove it', { fields: { kind, entry }, kind: 'danger' }),
    `/apps/${app.slug}/links`,
  )
}

/** The entry that was just allowed, with a way back. An address cannot make one up. */
function renderAllowed(app: AppResource, { may, query }: Visit): Html {
  const kind = readKind(query.get('kind'))
  const entry = app[kind].find((known) => known === query.get('allowed'))
  if (entry === undefined || !may('operator')) return none
  const undo = button(`/apps/${app.slug}/links/remove`, 'Undo', { fields: { kind, entry } })
  return html`<div class="notice" role="status"><span><code>${entry}</code> is allowed, starting with the next request.</span>${undo}</div>`
}

/** The entry that was just removed, with a way back; only what the newest change of the app removed. */
async function renderRemoved(app: AppResource, { call, may, query }: Visit): Promise<Html> {
  const kind = readKind(query.get('kind'))
  const entry = query.get('removed') ?? ''
  if (entry === '' || app[kind].includes(entry) || !may('operator')) return none
  const newest = await call('audit.list', { query: { app: app.slug, limit: 1 } })
  const removed = newest.ok ? newest.value.items[0]?.before?.[kind] : undefined
  if (!Array.isArray(removed) || !removed.includes(entry)) return none
  const undo = button(`/apps/${app.slug}/links/add`, 'Undo', { fields: { kind, entry } })
  return html`<div class="notice" role="status"><span><code>${entry}</code> was removed: matching links are refused from now on.</span>${undo}</div>`
}

/** The entries that would allow a link: its page, and its whole site. */
function suggestEntries(app: AppResource, link: string): string[] {
  const [path = ''] = link.split(/[?#]/, 1)
  const url = URL.parse(path)
  const wanted = url === null ? [] : [`${url.origin}${url.pathname}`, url.origin]
  const entries = wanted.flatMap((entry) => {
    const result = parseAllowedUrl(entry)
    return result.ok ? [result.value.text] : []
  })
  return [...new Set(entries)].filter((entry) => !app.allowedUrls.includes(entry))
}

function renderVerdict(
  app: AppResource,
  { link, check, isOffered }: NonNullable<LinkPageState['tested']>,
  mayChange: boolean,
): Html {
  const { allowed, appStatus, entries, hosted, refusal } = check
  const rows = entries.map(({ entry, differs }) => [
    html`<code>${entry === '--allow-localhost' ? 'links to localhost' : entry}</code>`,
    differs === null
      ? html`<span class="mark good">matches</span>`
      : html`<span class="mark bad">different ${differs}</span>`,
  ])
  const compared = entries.length === 0 ? none : table('Compared with each entry', ['Entry', 'Result'], rows)
  if (refusal !== null) {
    const maySuggest = refusal.code === 'url_not_allowed' && mayChange && isOffered
    const suggested = maySuggest ? suggestEntries(app, link) : []
    return html`<div class="verdict bad" role="status"><p><b>✕ It would be refused.</b> ${withoutIssues(refusal.message)}</p>
${refusal.issues.map(({ message }) => html`<p>${message}</p>`)}
${suggested.length === 0 ? none : html`<div class="actions">${suggested.map((entry) => allowButton(app, entry, link))}</div>`}
${compared}</div>`
  }
  if (!allowed)
    return html`<div class="verdict bad" role="status">
<p><b>✕ It would be refused: the app is ${appStatus}.</b> The link itself is allowed.</p>
${compared}</div>`
  const how = hosted
    ? 'The email links to a Postern page (a hosted link), which opens it.'
    : 'The email contains it unchanged.'
  return html`<div class="verdict good" role="status"><p><b>✓ It would be sent.</b> ${how}</p>${compared}</div>`
}

/** The entries in their normal form, which people need not know. */
export async function addLink(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const kind = readKind(visit.form.get('kind'))
  const parse = kind === 'allowedUrls' ? parseAllowedUrl : parseAppScheme
  const text = (visit.form.get('entry') ?? '').trim()
  const entry = kind === 'allowedUrls' ? withScheme(text) : text
  const read = parse(entry)
  const error = await saveApp(visit, app, { [kind]: normalEntries([...app[kind], entry], parse) })
  if (error !== null) return linksPage(visit, app, { error })
  const allowed = read.ok ? read.value.text : entry
  const url = visit.form.get('url')
  const tested = url === null ? {} : { url }
  // No Undo: it would remove an entry that was there before.
  if (app[kind].includes(allowed))
    return { redirect: `/apps/${app.slug}/links?${new URLSearchParams(tested)}`, notice: 'link_known' }
  return { redirect: `/apps/${app.slug}/links?${new URLSearchParams({ kind, allowed, ...tested })}` }
}

export async function removeLink(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const kind = readKind(visit.form.get('kind'))
  const entry = visit.form.get('entry') ?? ''
  // Somebody else removed it, or the form is not one of these pages.
  if (!app[kind].includes(entry)) return { redirect: `/apps/${app.slug}/links` }
  const error = await saveApp(visit, app, { [kind]: app[kind].filter((other) => other !== entry) })
  if (error !== null) return linksPage(visit, app, { error })
  return { redirect: `/apps/${app.slug}/links?${new URLSearchParams({ kind, removed: entry })}` }
}
