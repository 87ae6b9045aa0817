/** The links that an app may send, and the tester, which asks the same rules that judge a request. */
import {
  entryCharactersMax,
  normalEntries,
  parseAllowedUrl,
  parseAppScheme,
} from '../../../../domain/app/allowed-url.ts'
import { hostedLinkModes } from '../../../../domain/app/hosted-link.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { emailTypeNames, readEmailType } from '../../email-type-names.ts'
import { button, checkbox, field, hiddenFields, inForm, problem, section, select, table } from '../parts.ts'
import { type PageAnswer, toHttpStatus, type Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'
import { type Fields, optional, saveApp, showAgain, versionField } from './change.ts'

type Check = Answer<'app.check_link'>

/** `tested`: the link of the form and its verdict, without its token. */
type LinkPageState = {
  readonly error?: OperationError | null
  readonly tested?: { readonly link: string; readonly check: Check }
}

export const showLinks = async (visit: Visit): Promise<PageAnswer> =>
  linksPage(visit, await findApp(visit), {})

function linksPage(
  visit: Visit,
  app: AppResource,
  { error: refused = null, tested }: LinkPageState,
): PageAnswer {
  const mayChange = visit.may('operator')
  const { fields, error } = showAgain(hostedFields(app), visit.form, refused && inForm(refused, fieldFor))
  const body = html`${appHead(app, 'Links')}
${problem(error)}
${section(
  'Allowed links',
  html`<p class="soft">Emails of ${app.name} may carry these links, and no others.</p>
${renderEntries(app, visit, { mayChange, error })}`,
)}
${section('Would this link be sent?', renderTester(app, visit, { tested, error }))}
${mayChange ? section('Hosted links', hostedForm(app, visit, { fields, error })) : none}`
  return {
    title: `Links of ${app.name}`,
    body,
    nav: 'apps',
    ...(error && { status: toHttpStatus(error) }),
  }
}

/** The id of the form's field for a field of the settings. */
const fieldFor = (field: string): string =>
  field === 'allowedUrls' || field === 'appSchemes' ? `add-${field}` : field.replace('.', '-')

type Kind = 'allowedUrls' | 'appSchemes'

function renderEntries(
  app: AppResource,
  { form }: Visit,
  { mayChange, error }: { readonly mayChange: boolean; readonly error: OperationError | null },
): Html {
  const path = `/apps/${app.slug}/links`
  const listRows = (kind: Kind) =>
    app[kind].map((entry) => [
      html`<code>${entry}</code>`,
      mayChange ? button(`${path}/remove`, `Remove`, { fields: { kind, entry } }) : none,
    ])
  const heads = ['entry', 'change']
  const add = (kind: Kind, label: string, placeholder: string, hint: string) =>
    mayChange
      ? html`<form method="post" action="${path}/add" class="filters">${hiddenFields({ kind })}
${field('entry', {
  id: `add-${kind}`,
  label,
  hint,
  value: form.get('kind') === kind ? (form.get('entry') ?? '') : '',
  attributes: html`required maxlength="${entryCharactersMax}" placeholder="${placeholder}" spellcheck="false" autocapitalize="none"`,
  error,
})}
<button>Add</button></form>`
      : none
  return html`${table('Web links', heads, listRows('allowedUrls'), { empty: 'No web link is allowed yet.' })}
${add('allowedUrls', 'Site, path or part of a site', 'https://app.acme.example/auth/*', 'An origin, one path, or a prefix that ends in /*. A host may begin with *. for one label.')}
<h3>App schemes</h3>
${table('App schemes', heads, listRows('appSchemes'), { empty: 'No scheme of a mobile app is allowed.' })}
${add('appSchemes', 'Scheme of a mobile app', 'acme://auth', 'A scheme alone allows all its links.')}`
}

function renderTester(
  { slug }: AppResource,
  { form, query }: Visit,
  { tested, error }: { readonly tested: LinkPageState['tested']; readonly error: OperationError | null },
): Html {
  const link = tested?.link ?? query.get('url') ?? ''
  return html`<div id="tester"><form method="post" action="/apps/${slug}/links/test#tester" class="filters">
${select('type', emailTypeNames, { label: 'Email', value: form.get('type') ?? 'magic_link' })}
${field('url', {
  label: 'Link',
  value: link,
  attributes: html`required spellcheck="false" autocomplete="off" maxlength="10000" placeholder="https://app.acme.example/auth?token=any"`,
  hint: 'Any text will do as the token; do not paste a real one.',
  error,
})}
<button class="main">Test</button></form>${tested === undefined ? none : renderVerdict(tested.check)}</div>`
}

function renderVerdict({ allowed, appStatus, entries, hosted, refusal }: Check): Html {
  const rows = entries.map(({ entry, differs }) => [
    html`<code>${entry === '--allow-localhost' ? 'links to localhost' : entry}</code>`,
    differs === null
      ? html`<span class="mark good">● fits</span>`
      : html`<span class="mark bad">✕ the ${differs} differs</span>`,
  ])
  const compared = entries.length === 0 ? none : table('Compared with each entry', ['entry', 'result'], rows)
  if (refusal !== null)
    return html`<div class="verdict bad" role="status"><p><b>✕ Refused: ${refusal.code}</b></p><p>${refusal.message}</p>
${refusal.issues.map(({ message }) => html`<p>${message}</p>`)}${compared}</div>`
  if (!allowed)
    return html`<div class="verdict bad" role="status">
<p><b>✕ Refused: the app is ${appStatus}</b></p>
<p>The link itself is allowed.</p>
${compared}</div>`
  const how = hosted
    ? 'It is carried by a page of Postern (a hosted link), which opens it.'
    : 'It stands in the email as it is.'
  return html`<div class="verdict good" role="status"><p><b>● Allowed</b></p><p>${how}</p>${compared}</div>`
}

/** The query may hold a token: it is not shown again. */
function withoutToken(link: string): string {
  const [path = ''] = link.split(/[?#]/, 1)
  return path === link ? link : `${path}?token=…`
}

export async function testLink(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const url = visit.form.get('url') ?? ''
  const body = { url, type: readEmailType(visit.form.get('type')) }
  const check = await visit.call('app.check_link', { params: { app: app.slug }, body })
  if (!check.ok) return linksPage(visit, app, { error: check.error })
  return linksPage(visit, app, { tested: { link: withoutToken(url), check: check.value } })
}

const readKind = (visit: Visit): Kind =>
  visit.form.get('kind') === 'appSchemes' ? 'appSchemes' : 'allowedUrls'

/** The entries in their normal form, which people need not know. */
export async function addLink(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const kind = readKind(visit)
  const entries = [...app[kind], (visit.form.get('entry') ?? '').trim()]
  const parse = kind === 'allowedUrls' ? parseAllowedUrl : parseAppScheme
  const error = await saveApp(visit, app, { [kind]: normalEntries(entries, parse) })
  if (error !== null) return linksPage(visit, app, { error })
  return { redirect: `/apps/${app.slug}/links`, notice: 'saved' }
}

export async function removeLink(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const kind = readKind(visit)
  const entry = visit.form.get('entry')
  const error = await saveApp(visit, app, { [kind]: app[kind].filter((other) => other !== entry) })
  if (error !== null) return linksPage(visit, app, { error })
  return { redirect: `/apps/${app.slug}/links`, notice: 'saved' }
}

const modes: Readonly<Record<(typeof hostedLinkModes)[number], string>> = {
  off: 'off: every email carries its own link',
  auto: 'auto: for links that open a mobile app, or with a destination below',
  'app-schemes': 'app schemes: for links that open a mobile app',
  always: 'always',
}

const hostedFields = (app: AppResource): Fields => ({
  hostedLinks: app.hostedLinks,
  ...Object.fromEntries(
    emailTypeNames.map(([type]) => [`linkDestinations-${type}`, app.linkDestinations[type] ?? '']),
  ),
  fallbackUrl: app.fallbackUrl ?? '',
})

function hostedForm(
  app: AppResource,
  { form }: Visit,
  { fields, error }: { readonly fields: Fields; readonly error: OperationError | null },
): Html {
  const destinations = emailTypeNames.map(([type, label]) =>
    field(`linkDestinations-${type}`, {
      label: `${label} opens`,
      value: fields[`linkDestinations-${type}`] ?? '',
      attributes: html`placeholder="the link itself" spellcheck="false"`,
      error,
    }),
  )
  const isSent = form.has('hostedLinks') && error?.code !== 'version_mismatch'
  return html`<p class="soft">An email then carries a link to a page of Postern, whose button opens the app. It works in every mail program, and link scanners use up no token.</p>
<form method="post" action="/apps/${app.slug}/links/hosted" class="stack">${versionField(app)}
${select(
  'hostedLinks',
  hostedLinkModes.map((mode) => [mode, modes[mode]] as const),
  { label: 'Use hosted links', value: fields.hostedLinks ?? '', error },
)}
${destinations}
${field('fallbackUrl', { label: 'Page for devices without the app', value: fields.fallbackUrl ?? '', error })}
${checkbox('allowLocalhost', 'Allow links to localhost and 127.0.0.1 (development)', isSent ? form.get('allowLocalhost') === 'yes' : app.allowLocalhost)}
<div class="actions"><button class="main">Save</button></div></form>`
}

export async function saveHosted(visit: Visit): Promise<PageAnswer> {
  const { form } = visit
  const app = await findApp(visit)
  const linkDestinations = Object.fromEntries(
    emailTypeNames.map(([type]) => [type, optional(form.get(`linkDestinations-${type}`))]),
  )
  const body = {
    hostedLinks: form.get('hostedLinks') ?? app.hostedLinks,
    linkDestinations,
    fallbackUrl: optional(form.get('fallbackUrl')),
    allowLocalhost: form.get('allowLocalhost') === 'yes',
  }
  const error = await saveApp(visit, app, body)
  if (error !== null) return linksPage(visit, await findApp(visit), { error })
  return { redirect: `/apps/${app.slug}/links`, notice: 'saved' }
}
