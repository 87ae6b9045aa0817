/** The settings of an app for an auth server, as a form. */
import { parseAllowedUrl } from '../../../../domain/app/allowed-entry.ts'
import type { AuthHook, SystemSettings } from '../../../../domain/auth-hooks/auth-hook.ts'
import { type AuthHookName, systemSettings } from '../../../../domain/auth-hooks/auth-hook-settings.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource } from '../../../../management/resources.ts'
import { html, none } from '../../../../templates/html.ts'
import { newForm, readTexts } from '../form.ts'
import { facts } from '../parts.ts'
import type { Visit } from '../visit.ts'
import { hostedLinkNames } from './app-hosted-links.ts'
import { optional, showAgain, versionField } from './change.ts'

const settingsForm = newForm('hook', {
  verifyUrl: {
    label: 'Verify URL',
    faults: ['authHooks'],
    attributes: html`type="url" spellcheck="false" placeholder="https://REF.supabase.co/auth/v1/verify"`,
    hint: 'The address of the auth server’s own links. It must be on the allow-list. Empty: links open the page below.',
  },
  page: {
    label: 'Page of the app',
    attributes: html`type="url" spellcheck="false" placeholder="https://app.acme.example/code"`,
    hint: 'Receives the token (or, if there is none, the code) as ?token=. It must be on the allow-list.',
  },
  life: {
    label: 'Lifetime of a link or code, in seconds',
    attributes: html`inputmode="numeric" autocomplete="off"`,
    hint: 'Empty: what the message says, or the auth server’s default.',
  },
  rules: {
    label: 'Rules for other links',
    attributes: html`spellcheck="false" placeholder="/welcome/*=email_verification"`,
    hint: 'RULE=TYPE, separated by spaces, for links that the messages below do not have. The type may be `ignored`.',
  },
  ignoredHosts: {
    label: 'Ignored hosts',
    attributes: html`spellcheck="false" placeholder="www.acme.example"`,
    hint: 'Hosts of logos and help pages in its messages, separated by spaces. A message with a link to any other host is refused.',
  },
  organisationName: {
    label: 'Organisation',
    hint: 'Shown in invitations that name none. Empty: the name of the app.',
  },
})
type SettingName = 'verifyUrl' | 'page' | 'life' | 'rules' | 'ignoredHosts' | 'organisationName'

/** The fields of a system, by the settings that it takes. */
const fieldNames: Readonly<Record<keyof SystemSettings, SettingName>> = {
  verifyUrl: 'verifyUrl',
  pages: 'page',
  lifeSeconds: 'life',
  rules: 'rules',
  ignoredHosts: 'ignoredHosts',
  organisationName: 'organisationName',
}

function toTexts(settings: SystemSettings) {
  const {
    ignoredHosts = [],
    lifeSeconds = {},
    organisationName = '',
    pages = {},
    rules = {},
    verifyUrl = '',
  } = settings
  const { default: life } = lifeSeconds
  return {
    verifyUrl,
    page: pages.default ?? '',
    life: life === undefined ? '' : String(life),
    rules: Object.entries(rules)
      .map(([rule, type]) => `${rule}=${type}`)
      .join(' '),
    ignoredHosts: ignoredHosts.join(' '),
    organisationName,
  }
}

type SettingsParts = { readonly visit: Visit; readonly error: OperationError | null }

export function renderSettings(app: AppResource, system: AuthHook, { visit, error }: SettingsParts) {
  const saved = toTexts(systemSettings(app.authHooks ?? {}, system.name))
  const { fields, error: shownError } = showAgain(saved, visit.form, error && nameFields(error, system.name))
  const { field, problem } = settingsForm.show(fields, shownError)
  const disabled = !visit.may('operator')
  const isRefused = error?.issues?.some(({ code }) => code === 'destination_invalid') ?? false
  const given = [fields.verifyUrl ?? '', fields.page ?? ''].filter((address) => address !== '')
  const canAllow = isRefused && given.every((address) => parseAllowedUrl(address).ok)
  const allow = canAllow ? html`<button name="allow" value="yes">Allow these addresses and save</button>` : none
  const save = disabled ? none : html`<div class="actions"><button class="main">Save</button>${allow}</div>`
  const form = html`${facts([
    ['Codes', html`${app.allowCodes ? 'shown' : 'ignored'} <a href="/apps/${app.slug}/links">Change</a>`],
    ['Hosted links', html`${hostedLinkNames[app.hostedLinks]} <a href="/apps/${app.slug}/hosted-links">Change</a>`],
  ])}
<form method="post" action="/apps/${app.slug}/connect/${system.name}/settings" class="columns">${versionField(app, visit.form, error)}
${system.takes.map((setting) => field(fieldNames[setting], { disabled }))}
${save}</form>`
  return { form, problem }
}

/** The faults by the fields of the form. */
function nameFields(error: OperationError, name: AuthHookName): OperationError {
  const places: Readonly<Record<string, SettingName>> = {
    [`authHooks.${name}.verifyUrl`]: 'verifyUrl',
    [`authHooks.${name}.pages.default`]: 'page',
    [`authHooks.${name}.lifeSeconds.default`]: 'life',
    [`authHooks.${name}.organisationName`]: 'organisationName',
    [`authHooks.${name}.ignoredHosts`]: 'ignoredHosts',
  }
  const rules = `authHooks.${name}.rules`
  const place = (field: string) => places[field] ?? (field.startsWith(rules) ? 'rules' : field)
  const issues = error.issues?.map((issue) => ({ ...issue, field: place(issue.field) }))
  return { ...error, ...(issues && { issues }) }
}

/** The settings that the form has; `saved` are those before. */
export function readSettingsForm(visit: Visit, saved: SystemSettings) {
  const texts = readTexts(visit.form)
  const text = (field: SettingName) => optional(texts[field] ?? null)
  const life = text('life')
  const hosts = (texts.ignoredHosts ?? '').split(/[\s,]+/).filter((host) => host !== '')
  return {
    verifyUrl: text('verifyUrl'),
    pages: { default: text('page') },
    // 0, which no life may be, for what is no whole number.
    lifeSeconds: { default: life === null ? null : /^\d{1,9}$/.test(life) ? Number(life) : 0 },
    organisationName: text('organisationName'),
    rules: toRules(texts.rules ?? '', saved.rules),
    ignoredHosts: hosts.length === 0 ? null : hosts,
  }
}

/** The merge patch of the rules: those that are gone are null. */
function toRules(text: string, saved: SystemSettings['rules'] = {}): Readonly<Record<string, string | null>> {
  const removed = Object.fromEntries(Object.keys(saved).map((rule) => [rule, null]))
  const rules = text.split(/\s+/).filter((each) => each !== '')
  const at = (each: string) => each.lastIndexOf('=')
  return { ...removed, ...Object.fromEntries(rules.map((each) => [each.slice(0, at(each)), each.slice(at(each) + 1)])) }
}
