/** Hosted links of an app: which emails carry a link to a page of Postern, and what its button opens. */
import { hostedLinkModes } from '../../../../domain/app/hosted-link.ts'
import { chooseLinkPlace } from '../../../../domain/app/link-domain.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { html } from '../../../../templates/html.ts'
import { emailTypeNames } from '../../email-types.ts'
import { type Fields, type FormField, newForm } from '../form.ts'
import { renderFrames, section } from '../parts.ts'
import { type PageAnswer, toHttpStatus, type Visit } from '../visit.ts'
import { renderLinkDomain } from './app-link-domain.ts'
import { appHead, findApp } from './apps.ts'
import { optional, saveApp, showAgain, versionField } from './change.ts'

type Modes = Readonly<Record<(typeof hostedLinkModes)[number], string>>

export const hostedLinkNames: Modes = {
  off: 'Never: every email contains its own link',
  auto: 'For links that open a mobile app',
  'app-schemes': 'For links that open a mobile app; refused rather than sent without',
  always: 'For every link; refused rather than sent without',
}

/** Without `POSTERN_LINKS_BASE_URL`. */
const modesNotSetUp: Modes = {
  off: 'Never: every email contains its own link',
  auto: 'For links that open a mobile app, once hosted links are set up',
  'app-schemes': 'For links that open a mobile app: these requests are refused now',
  always: 'Always: every request is refused now',
}

const nameModes = (names: Modes) => hostedLinkModes.map((mode) => [mode, names[mode]] as const)

const destinations: Readonly<Record<string, FormField>> = Object.fromEntries(
  emailTypeNames.map(([type, label]) => [
    `opens-${type}`,
    {
      label: `${label}: the button opens`,
      faults: [`linkDestinations.${type}`],
      attributes: html`placeholder="the link that the app sent" spellcheck="false" autocomplete="off"`,
    },
  ]),
)

const hostedForm = newForm<string>('hosted', {
  hostedLinks: {
    label: 'Use hosted links',
    choices: nameModes(hostedLinkNames),
  },
  ...destinations,
  fallbackUrl: {
    label: 'Page for devices without the app',
    attributes: html`placeholder="https://acme.example/get" spellcheck="false"`,
  },
  newEmailUrl: {
    label: 'Page for a new email, if a link has expired',
    attributes: html`placeholder="https://app.acme.example/sign-in" spellcheck="false"`,
  },
})

const savedTexts = (app: AppResource): Fields => ({
  hostedLinks: app.hostedLinks,
  ...Object.fromEntries(emailTypeNames.map(([type]) => [`opens-${type}`, app.linkDestinations[type] ?? ''])),
  fallbackUrl: app.fallbackUrl ?? '',
  newEmailUrl: app.newEmailUrl ?? '',
})

export const showHostedLinks = async (visit: Visit): Promise<PageAnswer> =>
  hostedPage(visit, await findApp(visit), null)

function hostedPage(
  visit: Visit,
  app: AppResource,
  refused: OperationError | null,
  ofDomain: OperationError | null = null,
): PageAnswer {
  const { may, shell } = visit
  const [form, domainForm] = ofDomain === null ? [visit.form, noForm] : [noForm, visit.form]
  const disabled = !may('operator')
  const { fields, error } = showAgain(savedTexts(app), form, refused)
  const shown = hostedForm.show(fields, error)
  const fault = error ?? ofDomain
  const body = html`${appHead(app, 'Hosted links', visit)}
${shown.problem}
${section(
  'Hosted links',
  html`<p class="soft">The email links to a Postern page instead, and the button there opens the app. This works in every mail program, and link scanners cannot use up the token. ${shell.linksUrl === null ? 'Hosted links need POSTERN_LINKS_BASE_URL, which is not set.' : html`The pages are served at ${chooseLinkPlace((app.useLinkDomain && app.linkDomain) || null, shell.linksUrl).baseUrl}.`}</p>
<form method="post" action="/apps/${app.slug}/hosted-links" class="stack">${versionField(app, form, error)}
${shown.field('hostedLinks', { disabled, ...(shell.linksUrl === null && { choices: nameModes(modesNotSetUp) }) })}
${emailTypeNames.map(([type]) => shown.field(`opens-${type}`, { disabled }))}
${shown.field('fallbackUrl', { disabled })}
${shown.field('newEmailUrl', { disabled })}
${disabled ? html`<p class="soft">An operator can change this.</p>` : html`<div class="actions"><button class="main">Save</button></div>`}</form>`,
)}
${renderLinkDomain(visit, app, { given: domainForm, refused: ofDomain })}
${section('The page', html`<p class="soft">As saved, for a sign-in link, also if the app uses no hosted links.</p>${renderFrames(`/apps/${app.slug}/hosted-links/page`, views)}`)}`
  return {
    title: `Hosted links of ${app.name}`,
    body,
    nav: 'apps',
    ...(fault && { status: toHttpStatus(fault) }),
  }
}

/** The two forms of the page have a version each, so what was sent with one is not shown in the other. */
const noForm = new URLSearchParams()

const views = [
  ['Phone, light', 'page phone light'],
  ['Phone, dark', 'page phone dark'],
] as const

/** The page of a hosted link alone, for a frame. */
export async function showHostedPage(visit: Visit): Promise<PageAnswer> {
  const params = { app: visit.params.app ?? '' }
  const { page } = await visit.get('app.preview', { params, body: { type: 'magic_link' } })
  return { frame: page ?? html`<p>Allow a link first: then the page can open it.</p>`.text }
}

export async function saveHosted(visit: Visit): Promise<PageAnswer> {
  const { form } = visit
  const app = await findApp(visit)
  const linkDestinations = Object.fromEntries(
    emailTypeNames.map(([type]) => [type, optional(form.get(`opens-${type}`))]),
  )
  const body = {
    hostedLinks: form.get('hostedLinks') ?? app.hostedLinks,
    linkDestinations,
    fallbackUrl: optional(form.get('fallbackUrl')),
    newEmailUrl: optional(form.get('newEmailUrl')),
  }
  const error = await saveApp(visit, app, body)
  if (error !== null) return hostedPage(visit, await findApp(visit), error)
  return { redirect: `/apps/${app.slug}/hosted-links`, notice: 'saved' }
}

export async function saveLinkDomain(visit: Visit): Promise<PageAnswer> {
  const { form } = visit
  const app = await findApp(visit)
  const body = { linkDomain: optional(form.get('linkDomain')), useLinkDomain: form.get('useLinkDomain') === 'yes' }
  const error = await saveApp(visit, app, body)
  if (error !== null) return hostedPage(visit, await findApp(visit), null, error)
  return { redirect: `/apps/${app.slug}/hosted-links`, notice: 'saved' }
}
