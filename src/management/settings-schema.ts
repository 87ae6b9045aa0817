/**
 * The settings of an app as JSON: the schema of an app's answers, of a whole replacement (PUT) and of a merge
 * patch (RFC 7396). The schemas hold types alone: the rules are those of `domain/app/settings.ts`, which
 * reports every fault.
 */

import { type TProperties, type TSchema, Type } from 'typebox'
import type { AppStatus } from '../domain/app/app.ts'
import { parseAppSettings } from '../domain/app/check-settings.ts'
import { withAddressDomains } from '../domain/app/sender-domains.ts'
import type { Setting, SettingGroup } from '../domain/app/setting.ts'
import { type AppSettings, defaultSettings, settingEntries } from '../domain/app/settings.ts'
import { settingsTable } from '../domain/app/settings-table.ts'
import { ruleCharactersMax } from '../domain/auth-hooks/smtp/link-rule.ts'
import { ruleTargets } from '../domain/auth-hooks/smtp/mail-system.ts'
import { type Issue, type Parsed, parsed, refused } from '../domain/parsed.ts'
import { languageTags } from '../templates/locales/locales.ts'
import { appStatus, closed } from './operation/schema.ts'

/** Types alone: `parseAppSettings` has the rules, and reports every fault. */
function toSchema(entry: Setting | SettingGroup): TSchema {
  if ('fields' in entry) return closed(toSchemas(Object.entries(entry.fields)))
  const schema = toValueSchema(entry)
  return entry.isOptional ? Type.Optional(schema) : schema
}

const toSchemas = (entries: readonly (readonly [string, Setting | SettingGroup])[]): TProperties =>
  Object.fromEntries(entries.map(([name, entry]) => [name, toSchema(entry)]))

function toValueSchema({ kind, choices = [], description, example, keys = [] }: Setting): TSchema {
  const about = description === undefined ? {} : { description }
  const text = (more = {}) => Type.String({ ...(example !== undefined && { examples: [example] }), ...more })
  const perKey = (value: TSchema) => closed(Object.fromEntries(keys.map((key) => [key, Type.Optional(value)])))
  switch (kind) {
    case 'text':
      return text(about)
    case 'switch':
      return Type.Boolean(about)
    case 'whole':
      return Type.Integer({ examples: [100], ...about })
    case 'list':
      return Type.Array(text(), about)
    case 'choice':
      return Type.Enum([...choices], about)
    case 'map':
      return perKey(text())
    case 'authHooks':
      return perKey(authHookSchema)
    case 'ownWords':
      return perKey(ownWordsSchema)
    default:
      return kind satisfies never
  }
}

const perKind = (value: TSchema) => Type.Record(Type.String({ maxLength: 100 }), value)
const authHookSchema = closed({
  verifyUrl: Type.Optional(Type.String({ examples: ['https://REF.supabase.co/auth/v1/verify'] })),
  pages: Type.Optional(perKind(Type.String({ examples: ['https://app.acme.test/code'] }))),
  lifeSeconds: Type.Optional(perKind(Type.Integer())),
  organisationName: Type.Optional(Type.String({ examples: ['Acme'] })),
  rules: Type.Optional(
    Type.Record(Type.String({ maxLength: ruleCharactersMax }), Type.Enum([...ruleTargets]), {
      description: 'For a system that sends over SMTP: the type of an email, or `ignored`, by a rule for its link.',
    }),
  ),
  ignoredHosts: Type.Optional(
    Type.Array(Type.String(), { description: 'Hosts of links in its messages that say nothing, such as a logo.' }),
  ),
})

const ownWordsSchema = Type.Record(
  Type.String(),
  closed({
    subject: Type.String({ examples: ['Your link for {app}'] }),
    text: Type.String({ examples: ['Press the button to sign in. See you in a moment!'] }),
    signOff: Type.Optional(Type.String({ examples: ['The {app} team'] })),
  }),
)

/** In the order in which they are kept and answered. */
export const settingsFields = toSchemas(settingEntries)

const status = appStatus()

/**
 * The fields of an app's answer that are no settings. A PUT takes and ignores it, so that what GET answered
 * can be sent back.
 */
const readOnly = Object.fromEntries(
  ['id', 'version', 'createdAt', 'updatedAt'].map((name) => [
    name,
    Type.Optional(Type.Unknown({ readOnly: true, description: 'Ignored.' })),
  ]),
)

const optional = (fields: TProperties): TProperties =>
  Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, Type.Optional(field)]))

/** A whole app. Fields that are left out have their defaults. */
export type AppBody = Pick<AppSettings, 'name' | 'from'> &
  Partial<Omit<AppSettings, 'limits'>> & {
    readonly limits?: Partial<AppSettings['limits']>
    readonly status?: AppStatus
    readonly slug?: string
  }
export const AppBody = Type.Unsafe<AppBody>(
  closed({
    ...optional(settingsFields),
    ...toSchemas(settingEntries.filter(([name]) => name === 'name' || name === 'from')),
    limits: Type.Optional(closed(optional(toSchemas(Object.entries(settingsTable.limits.fields))))),
    status: Type.Optional(status),
    slug: Type.Optional(Type.String({ description: 'If given, it must match the slug in the path.' })),
    ...readOnly,
  }),
)

/** Null may stand at any depth: the merged settings are checked as a whole. */
const toPatchSchema = (fields: TProperties): TProperties =>
  Object.fromEntries(
    Object.entries(fields).map(([key, field]) => {
      const inner = 'properties' in field ? closed(toPatchSchema(field.properties as TProperties)) : field
      return [key, Type.Optional(Type.Union([inner, Type.Null()]))]
    }),
  )

/** Some fields of an app. Null removes an optional field, and gives another one its default. */
export const AppPatch: TSchema = closed({
  ...toPatchSchema({ ...settingsFields, status }),
  authHooks: Type.Optional(Type.Unknown({ description: 'Merged at every depth.' })),
  words: Type.Optional(Type.Unknown({ description: 'Merged at every depth.' })),
})

/** Merges a patch into a value (RFC 7396). */
export function mergePatch(value: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged = new Map(Object.entries(isObject(value) ? value : {}))
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) merged.delete(key)
    else merged.set(key, mergePatch(merged.get(key), change))
  }
  return Object.fromEntries(merged)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const webhookNeedsHttps: Issue = {
  field: 'webhookUrl',
  code: 'insecure_webhook_url',
  message: 'Use https. http is for receivers in the private network, which POSTERN_APP_WEBHOOKS_PRIVATE=yes allows.',
}

/**
 * The settings of a whole app. Every entry must be in its normal form, so that what is read is what was
 * written.
 * @param facts.allowsPrivateWebhooks whether webhooks may go into the private network, also by http
 * @param facts.givesDomains whether the domains of the addresses become sender domains: an admin of the whole
 *   service need not name them twice
 */
export function parseSettings(
  body: AppBody,
  facts: { readonly allowsPrivateWebhooks: boolean; readonly givesDomains: boolean },
): Parsed<AppSettings> {
  const { allowsPrivateWebhooks, givesDomains } = facts
  if (!allowsPrivateWebhooks && body.webhookUrl?.startsWith('http:')) return refused(webhookNeedsHttps)
  const given = { ...body, limits: { ...defaultSettings.limits, ...body.limits } } as Partial<AppSettings>
  const whole = { ...defaultSettings, ...given } as AppSettings
  const settings = givesDomains ? { ...whole, senderDomains: withAddressDomains(whole) } : whole
  const result = parseAppSettings(settings, languageTags)
  if (!result.ok) return result
  const odd = (['allowedUrls', 'appSchemes'] as const).find(
    (field) => JSON.stringify(settings[field]) !== JSON.stringify(result.value[field]),
  )
  if (odd === undefined) return parsed(result.value)
  const message = `Write each entry once and in its normal form: ${JSON.stringify(result.value[odd])}.`
  return refused({ field: odd, code: 'not_normal_form', message })
}
