/**
 * How the emails of an app look: its settings, and each email in four frames, in light and dark, at the width
 * of a desk and of a phone. A preview is a form by GET, so unsaved settings stand in the address of the page
 * and of the frames.
 */

import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { contrast, defaultAccent, textOn } from '../../../../templates/colour.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { locales } from '../../../../templates/locales/locales.ts'
import { emailTypeNames, readEmailType } from '../../email-type-names.ts'
import { field, inForm, problem, section, select, tabs } from '../parts.ts'
import { type PageAnswer, PageFailed, toHttpStatus, type Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'
import { optional, saveApp, showAgain, versionField } from './change.ts'

const fieldNames = ['logoUrl', 'accentColour', 'addressLine', 'supportContact', 'locale'] as const
type Fields = Readonly<Record<(typeof fieldNames)[number], string>>

function savedFields({ branding, supportContact = '', locale }: AppResource): Fields {
  const { logoUrl = '', accentColour = '', addressLine = '' } = branding
  return { logoUrl, accentColour, addressLine, supportContact, locale }
}

/** The settings of the form; those of the app where the form says nothing. */
const toFields = (app: AppResource, given: URLSearchParams): Fields =>
  showAgain(savedFields(app), given, null).fields as Fields

const toSettings = ({ logoUrl, accentColour, addressLine, supportContact, locale }: Fields) => ({
  branding: {
    logoUrl: optional(logoUrl),
    accentColour: optional(accentColour),
    addressLine: optional(addressLine),
  },
  supportContact: optional(supportContact),
  locale,
})

export const showLook = async (visit: Visit): Promise<PageAnswer> =>
  lookPage(visit, await findApp(visit), visit.query, null)

async function lookPage(
  visit: Visit,
  app: AppResource,
  given: URLSearchParams,
  refused: OperationError | null,
): Promise<PageAnswer> {
  const type = readEmailType(given.get('type'))
  const shown = showAgain(savedFields(app), given, refused)
  const fields = shown.fields as Fields
  const params = { app: app.slug }
  const rendered = await visit.call('app.preview', { params, body: { type, settings: toSettings(fields) } })
  const error = shown.error ?? (rendered.ok ? null : inForm(rendered.error, fieldFor))
  const search = (name: string) => new URLSearchParams({ type: name, ...fields }).toString()
  const entries = emailTypeNames.map(
    ([name, label]) => [label, `/apps/${app.slug}/look?${search(name)}`] as const,
  )
  const current = emailTypeNames.find(([name]) => name === type)?.[1] ?? ''
  const body = html`${appHead(app, 'Look')}
${problem(error)}
${section('Branding', renderForm(app, { fields, type, error, mayChange: visit.may('operator') }))}
${tabs('Emails', entries, current)}
${rendered.ok ? renderFrames(`/apps/${app.slug}/look/email?${search(type)}`, rendered.value) : none}`
  return {
    title: `Look of ${app.name}`,
    body,
    nav: 'apps',
    ...(error && { status: toHttpStatus(error) }),
  }
}

/** The preview names fields below `settings`. */
const fieldFor = (field: string): string => field.replace(/^settings\./, '').replace(/^branding\./, '')

type FormParts = {
  readonly fields: Fields
  readonly type: string
  readonly error: OperationError | null
  readonly mayChange: boolean
}

function renderForm(app: AppResource, { fields, type, error, mayChange }: FormParts): Html {
  const path = `/apps/${app.slug}/look`
  const colour = fields.accentColour === '' ? defaultAccent : fields.accentColour
  const known = /^#[0-9a-f]{6}$/i.test(colour)
  const ratio = known ? contrast(colour, textOn(colour)).toFixed(1) : ''
  const hint = known ? `${colour} with its text: ${ratio} to 1` : 'As #rrggbb'
  const languages = Object.keys(locales).map((name) => [name, name] as const)
  const save = mayChange
    ? html`<button class="main" formmethod="post" formaction="${path}">Save</button>`
    : none
  return html`<form method="get" action="${path}" class="columns" data-preview>${versionField(app)}<input type="hidden" name="type" value="${type}">
${field('logoUrl', { label: 'Logo (https)', value: fields.logoUrl, error, hint: 'Shown at most 40 px high.' })}
${field('accentColour', { label: 'Colour of the button', value: fields.accentColour, error, hint })}
${field('addressLine', { label: 'Line below each email', value: fields.addressLine, error })}
${field('supportContact', {
  label: 'Support',
  value: fields.supportContact,
  error,
  hint: 'An address or https page for people who did not ask for the email.',
})}
${select('locale', languages, { label: 'Language', value: fields.locale, error })}
<div class="actions"><button>Preview</button>${save}</div></form>`
}

const views = [
  ['Desktop, light', 'desktop light'],
  ['Desktop, dark', 'desktop dark'],
  ['Phone, light', 'phone light'],
  ['Phone, dark', 'phone dark'],
] as const

function renderFrames(address: string, { subject, text }: { subject: string; text: string }): Html {
  const frames = views.map(
    ([label, classes]) =>
      html`<figure><figcaption>${label}</figcaption>
<iframe class="${classes}" title="${label}" src="${address}" sandbox="allow-popups allow-popups-to-escape-sandbox"></iframe></figure>`,
  )
  return html`<p><span class="soft">Subject</span> <b>${subject}</b></p><div class="frames">${frames}</div>
<details><summary>As plain text</summary><pre>${text}</pre></details>`
}

/** An email alone, for a frame. */
export async function showLookEmail(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const body = {
    type: readEmailType(visit.query.get('type')),
    settings: toSettings(toFields(app, visit.query)),
  }
  const rendered = await visit.call('app.preview', { params: { app: app.slug }, body })
  if (!rendered.ok) throw new PageFailed(rendered.error)
  return { frame: rendered.value.html }
}

export async function saveLook(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const error = await saveApp(visit, app, toSettings(toFields(app, visit.form)))
  if (error !== null) return lookPage(visit, await findApp(visit), visit.form, inForm(error, fieldFor))
  return { redirect: `/apps/${app.slug}/look?type=${readEmailType(visit.form.get('type'))}`, notice: 'saved' }
}
