/**
 * The settings of an app as JSON: the schema of an app's answers, of a whole replacement (PUT) and of a merge
 * patch (RFC 7396). The schemas hold types alone: the rules are those of `domain/app/settings.ts`, which
 * reports every fault.
 */
import { type Static, type TProperties, type TSchema, Type } from 'typebox'
import { hostedLinkModes } from '../domain/app/hosted-link.ts'
import { withAddressDomains } from '../domain/app/sender-domains.ts'
import { type AppSettings, defaultSettings, parseAppSettings } from '../domain/app/settings.ts'
import { type Parsed, parsed, refused } from '../domain/parsed.ts'
import { emailTypes } from '../domain/request/email-request.ts'
import type { Issue } from '../domain/request/rejection.ts'
import { languageTags } from '../templates/locales/locales.ts'
import { appStatus, closed } from './operation/schema.ts'

const text = (...examples: string[]) => Type.String({ examples })
const address = () => text('auth@acme.test')
const limit = () => Type.Integer({ examples: [100] })

const destinations = Object.fromEntries(
  emailTypes.map((type) => [type, Type.Optional(text('https://app.acme.test/auth/x'))]),
) as Record<(typeof emailTypes)[number], ReturnType<typeof Type.Optional<ReturnType<typeof Type.String>>>>

const sender = { name: text('Acme'), address: address() }
const branding = {
  logoUrl: Type.Optional(text('https://acme.test/logo.png')),
  accentColour: Type.Optional(text('#1d4ed8')),
  addressLine: Type.Optional(text('Acme, 1 Road')),
}
const limits = { keyPerMinute: limit(), recipientPerHour: limit(), daily: limit() }

const perKind = <Value extends TSchema>(value: Value) => Type.Record(Type.String({ maxLength: 100 }), value)
const hook = Type.Optional(
  closed({
    verifyUrl: Type.Optional(text('https://REF.supabase.co/auth/v1/verify')),
    pages: Type.Optional(perKind(text('https://app.acme.test/code'))),
    lifeSeconds: Type.Optional(perKind(Type.Integer())),
    organisationName: Type.Optional(text('Acme')),
  }),
)
const hooks = { supabase: hook, kratos: hook, zitadel: hook, logto: hook }

/** In the order in which they are stored and answered. */
export const settingsFields = {
  name: text('Acme'),
  from: closed(sender),
  senderDomains: Type.Array(text('acme.test'), {
    description:
      'The domains that the addresses of `from` and `envelopeFrom` may have, without subdomains. An admin of the whole service sets them, also by setting an address; or they are proved in DNS.',
  }),
  envelopeFrom: Type.Optional(address()),
  replyTo: Type.Optional(address()),
  supportContact: Type.Optional(text('help@acme.test')),
  allowedUrls: Type.Array(text('https://app.acme.test', 'https://app.acme.test/auth/*')),
  appSchemes: Type.Array(text('acme')),
  allowLocalhost: Type.Boolean(),
  allowCodes: Type.Boolean({
    description: 'Whether emails show the one-time codes of requests; otherwise codes are ignored.',
  }),
  supersede: Type.Boolean({
    description:
      'Whether a newer email cancels older ones to the same recipient that have waited for a second, of the same type and with the same link but for its token. Invitations are never cancelled.',
  }),
  hostedLinks: Type.Enum([...hostedLinkModes]),
  linkDestinations: closed(destinations),
  webhookUrl: Type.Optional(
    Type.String({
      examples: ['https://app.acme.test/postern'],
      description: 'Where the app is notified of emails that bounced, failed or were suppressed.',
    }),
  ),
  hooks: Type.Optional(closed(hooks)),
  fallbackUrl: Type.Optional(text('https://acme.test/get')),
  branding: closed(branding),
  locale: text('en', 'de'),
  limits: closed(limits),
}

/** Settings that decide in whose name mail is sent, and how much: an app's own team may not change them. */
export const adminFields = [
  'name',
  'from',
  'envelopeFrom',
  'limits',
] as const satisfies readonly (keyof AppSettings)[]

/**
 * Settings that an admin of some apps may not change either: whose mail it is, and where Postern connects.
 */
export const serviceFields = ['senderDomains', 'webhookUrl'] as const satisfies readonly (keyof AppSettings)[]

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

const { name, from, ...defaulted } = settingsFields
const optional = <Fields extends TProperties>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, Type.Optional(field)])) as {
    [Name in keyof Fields]: ReturnType<typeof Type.Optional<Fields[Name]>>
  }

/** A whole app. Fields that are left out have their defaults. */
export const AppBody = closed({
  name,
  from,
  ...optional(defaulted),
  limits: Type.Optional(closed(optional(limits))),
  status: Type.Optional(status),
  slug: Type.Optional(Type.String({ description: 'If given, it must match the slug in the path.' })),
  ...readOnly,
})
export type AppBody = Static<typeof AppBody>

const toPatchSchema = (fields: TProperties): TProperties =>
  Object.fromEntries(
    Object.entries(fields).map(([key, field]) => [key, Type.Optional(Type.Union([field, Type.Null()]))]),
  )
const nested = { from: sender, branding, limits, linkDestinations: destinations }

/** Null may remove a setting at any depth of it: the merged settings are checked as a whole. */
const hooksPatch = Type.Optional(Type.Unknown({ description: 'Merged at every depth.' }))

/** Some fields of an app. Null removes an optional field, and gives another one its default. */
export const AppPatch: TSchema = closed({
  ...toPatchSchema({ ...settingsFields, status }),
  ...toPatchSchema(
    Object.fromEntries(Object.entries(nested).map(([key, fields]) => [key, closed(toPatchSchema(fields))])),
  ),
  hooks: hooksPatch,
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
  message:
    'Use https. http is for receivers in the private network, which POSTERN_WEBHOOKS_PRIVATE=yes allows.',
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
