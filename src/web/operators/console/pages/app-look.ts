/**
 * How the emails of an app look: its settings, and each email in four frames, in light and dark, at the width
 * of a desk and of a phone. A preview is a form by GET, so unsaved settings stand in the address of the page
 * and of the frames.
 */

import { type CodePlace, codePlaces } from '../../../../domain/request/email-content.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { contrast, defaultAccent, textOn } from '../../../../templates/colour.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { languageTags, nameLanguage, readBy } from '../../../../templates/locales/locales.ts'
import { emailTypeNames, readEmailType } from '../../email-types.ts'
import { emailInput, type Fields, newForm } from '../form.ts'
import { languageChoices, languageOrApp, readLanguage } from '../language-choices.ts'
import { hiddenFields, linkButton, renderFrames, section, table, tabs } from '../parts.ts'
import { type PageAnswer, toHttpStatus, type Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'
import { formVersion, readSettings, saveApp, settingFields, showAgain, toSettingsPatch } from './change.ts'
import { readLastChanges } from './last-changes.ts'

const codeChoices = [
  ['', 'codes as the app allows'],
  ['none', 'no code'],
  ['beside', 'a code beside the link'],
  ['first', 'a code first'],
] as const

const formChoices = [
  ['', 'default: Sie, vous, tú, je'],
  ['formal', 'formal: Sie, vous, usted, u'],
  ['informal', 'informal: du, tu, tú, je'],
] as const

const paths = {
  logoUrl: 'branding.logoUrl',
  accentColour: 'branding.accentColour',
  addressLine: 'branding.addressLine',
  supportContact: 'supportContact',
  locale: 'locale',
  formOfAddress: 'formOfAddress',
} as const

const fields = settingFields(paths)
const lookForm = newForm('look', {
  ...fields,
  logoUrl: {
    ...fields.logoUrl,
    attributes: html`type="url" spellcheck="false" placeholder="https://acme.example/logo.png"`,
  },
  accentColour: {
    ...fields.accentColour,
    attributes: html`spellcheck="false" placeholder="${defaultAccent}" maxlength="7" data-colour`,
  },
  locale: { ...fields.locale, choices: languageChoices },
  formOfAddress: { ...fields.formOfAddress, choices: formChoices },
  in: { label: 'Preview in', choices: languageOrApp, hint: 'Not saved.' },
  code: { label: 'Preview with', choices: codeChoices, hint: 'Not saved. Invitations have no code.' },
})

/** The language of the preview and the place of its code, which are no settings. */
const toPreviewed = (given: URLSearchParams) => ({
  in: readLanguage(given.get('in')) ?? '',
  code: readPlace(given.get('code')) ?? '',
})

const readPlace = (text: string | null): CodePlace | undefined => codePlaces.find((place) => place === text)

/** The settings of the form; those of the app where the form says nothing. */
const toFields = (app: AppResource, given: URLSearchParams): Fields =>
  showAgain(readSettings(app, paths), given, null).fields

export const showLook = async (visit: Visit): Promise<PageAnswer> =>
  lookPage(visit, await findApp(visit), visit.query, null)

async function lookPage(
  visit: Visit,
  app: AppResource,
  given: URLSearchParams,
  refused: OperationError | null,
): Promise<PageAnswer> {
  const type = readEmailType(given.get('type'))
  const { fields: settings, error: notSaved } = showAgain(readSettings(app, paths), given, refused)
  const fields = { ...settings, ...toPreviewed(given) }
  const rendered = await visit.call('app.preview', {
    params: { app: app.slug },
    body: newPreview(type, fields),
  })
  const error = notSaved ?? (rendered.ok ? null : rendered.error)
  const shown = lookForm.show(fields, error, await readLastChanges(visit, app, paths))
  const version = formVersion(app, given, error)
  const search = (name: string) => new URLSearchParams({ type: name, version, ...fields }).toString()
  const path = `/apps/${app.slug}/look`
  const entries = emailTypeNames.map(([name, label]) => [label, `${path}?${search(name)}`] as const)
  const current = emailTypeNames.find(([name]) => name === type)?.[1] ?? ''
  const body = html`${appHead(app, 'Look', visit)}
${shown.problem}
${section('Branding', renderForm(app, shown, { fields, type, mayChange: visit.may('operator'), version }))}
${tabs('Emails', entries, current)}
${rendered.ok ? renderEmail(`${path}/email?${search(type)}`, rendered.value) : none}
<p>${linkButton(`/apps/${app.slug}/words?type=${type}&in=${fields.in || app.locale}`, 'Words of this email')}</p>
${visit.may('operator') && app.status === 'active' ? section('Send this email to yourself', renderSend(app, type, fields)) : none}
${renderLanguages(app, type)}`
  return {
    title: `Look of ${app.name}`,
    body,
    nav: 'apps',
    ...(error && { status: toHttpStatus(error) }),
  }
}

/** The body of a preview: the email and the settings, as they are in the form. */
const newPreview = (type: ReturnType<typeof readEmailType>, fields: Fields) => {
  const locale = readLanguage(fields.in ?? null)
  const code = readPlace(fields.code ?? null)
  return { type, settings: toSettingsPatch(fields, paths), ...(locale && { locale }), ...(code && { code }) }
}

const sendForm = newForm('send', {
  to: {
    label: 'To',
    attributes: html`required ${emailInput} placeholder="you@example.com" autocomplete="email"`,
    hint: 'Uses the saved settings; its link does not work.',
  },
})

/** Goes to the form of the app's own page, with the type and language that are shown here. */
function renderSend({ slug }: AppResource, type: string, fields: Fields): Html {
  return html`<form method="post" action="/apps/${slug}/test-email" class="filters">${hiddenFields({ type, locale: fields.in ?? '', code: fields.code ?? '' })}
${sendForm.show({}).field('to')}
<button>Send</button></form>`
}

function renderLanguages({ locale, slug }: AppResource, type: string): Html {
  const rows = languageTags.map((tag) => [
    html`<a href="/apps/${slug}/look?type=${type}&in=${tag}" lang="${tag}">${nameLanguage(tag)}</a> <span class="soft">${tag}${tag === locale ? ", the app's" : ''}</span>`,
    readBy(tag).join(', ') || 'nobody yet',
  ])
  const heads = ['Preview in', 'Read by native speakers']
  return html`<details class="card"><summary>All ${languageTags.length} languages</summary>
<p class="soft">A request chooses a language with <code>locale</code>. To correct or add one, see docs/languages.md.</p>
${table('Languages', heads, rows, { empty: '' })}</details>`
}

type FormParts = {
  readonly fields: Fields
  readonly type: string
  readonly mayChange: boolean
  readonly version: string
}

function renderForm(
  app: AppResource,
  { field }: ReturnType<typeof lookForm.show>,
  { fields, type, mayChange, version }: FormParts,
): Html {
  const path = `/apps/${app.slug}/look`
  const disabled = !mayChange
  const colour = fields.accentColour || defaultAccent
  const hint = /^#[0-9a-f]{6}$/i.test(colour)
    ? `Contrast with its text ${contrast(colour, textOn(colour)).toFixed(1)}:1`
    : 'Written as #rrggbb'
  const save = mayChange
    ? html`<div class="actions"><button>Preview</button><button class="main" formmethod="post" formaction="${path}">Save</button></div>`
    : html`<p class="soft">An operator can change this.</p>`
  return html`<form method="get" action="${path}" class="columns" data-preview>${hiddenFields({ type, version })}
${field('logoUrl', { disabled })}
${field('accentColour', { hint, disabled })}
${field('addressLine', { disabled })}
${field('supportContact', { disabled })}
${field('locale', { disabled })}
${field('formOfAddress', { disabled })}
${field('in')}
${field('code')}
${save}</form>`
}

const views = [
  ['Phone, light', 'phone light'],
  ['Phone, dark', 'phone dark'],
  ['Desktop, light', 'desktop light'],
  ['Desktop, dark', 'desktop dark'],
] as const

const renderEmail = (address: string, { subject, text }: { subject: string; text: string }): Html =>
  html`<p><span class="soft">Subject</span> <b><bdi>${subject}</bdi></b></p>${renderFrames(address, views)}
<details><summary>As plain text</summary><pre>${text}</pre></details>`

/** An email alone, for a frame. */
export async function showLookEmail(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const fields = { ...toFields(app, visit.query), ...toPreviewed(visit.query) }
  const body = newPreview(readEmailType(visit.query.get('type')), fields)
  const params = { app: app.slug }
  const rendered = await visit.call('app.preview', { params, body })
  if (rendered.ok) return { frame: rendered.value.html }
  // While somebody types, a setting may be invalid: the frame shows those that are saved.
  const { settings: _, ...saved } = body
  return { frame: (await visit.get('app.preview', { params, body: saved })).html }
}

export async function saveLook(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const error = await saveApp(visit, app, toSettingsPatch(toFields(app, visit.form), paths))
  if (error !== null) return lookPage(visit, await findApp(visit), visit.form, error)
  const shown = new URLSearchParams({
    type: readEmailType(visit.form.get('type')),
    ...toPreviewed(visit.form),
  })
  return { redirect: `/apps/${app.slug}/look?${shown}`, notice: 'saved' }
}
