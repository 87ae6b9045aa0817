/**
 * The settings of an app: its sender, the links it may send, how its emails look, its limits.
 * Unsafe settings are refused when they are set, with every issue listed.
 */
import { deceptive, isDeceptive } from '../controls.ts'
import { bounceLocalMax, fitsReference, isBounceBase } from '../delivery/reference.ts'
import { checkHooks } from '../hooks/check-settings.ts'
import { type HookSettings, hookSystemNames } from '../hooks/hook-settings.ts'
import { type Parsed, parsed } from '../parsed.ts'
import { parseEmailAddress } from '../request/email-address.ts'
import { emailTypes } from '../request/email-request.ts'
import type { Issue } from '../request/rejection.ts'
import { isWebhookUrl } from '../webhooks/webhook.ts'
import { type AllowedUrl, parseAllowedUrl, parseAppScheme } from './allowed-url.ts'
import { checkDestination, type HostedLinkSettings, hostedLinkModes } from './hosted-link.ts'
import { type AppLimits, defaultLimits } from './limit.ts'
import { checkSenderDomains, parseSenderDomain } from './sender-domains.ts'

/** Settings as an operator gives them and the store keeps them: plain JSON. */
export type AppSettings = HostedLinkSettings & {
  readonly name: string
  readonly from: { readonly name: string; readonly address: string }
  /** The domains that its `from` and `envelopeFrom` may have; an admin of the service, or DNS, gives them. */
  readonly senderDomains: readonly string[]
  readonly envelopeFrom?: string
  readonly replyTo?: string
  readonly supportContact?: string
  readonly allowedUrls: readonly string[]
  readonly appSchemes: readonly string[]
  readonly allowLocalhost: boolean
  /** Whether emails show the one-time codes of requests; otherwise codes are ignored. */
  readonly allowCodes: boolean
  /** Whether a newer email cancels an older one that waits, with the same kind of link. */
  readonly supersede: boolean
  /** Where the app is notified of emails that bounced, failed or were suppressed. */
  readonly webhookUrl?: string
  /** For auth servers that post to the app. */
  readonly hooks?: HookSettings
  /** The https page that a hosted page offers to devices without the app. */
  readonly fallbackUrl?: string
  readonly branding: {
    readonly logoUrl?: string
    readonly accentColour?: string
    readonly addressLine?: string
  }
  readonly locale: string
  readonly limits: AppLimits
}

export const defaultSettings = {
  senderDomains: [],
  allowedUrls: [],
  appSchemes: [],
  allowLocalhost: false,
  allowCodes: false,
  supersede: true,
  hostedLinks: 'auto',
  linkDestinations: {},
  branding: {},
  locale: 'en',
  limits: defaultLimits,
} as const

/** Checks settings and brings the allow-list to its normal form. */
export function parseAppSettings(settings: AppSettings, locales: readonly string[]): Parsed<AppSettings> {
  const tooLarge = checkSize(settings)
  if (tooLarge !== null) return { ok: false, issues: [tooLarge] }
  const issues: Issue[] = []
  const keep = <T>(result: Parsed<T>): T[] => {
    if (result.ok) return [result.value]
    issues.push(...result.issues)
    return []
  }
  const allowedUrls = settings.allowedUrls.flatMap((text) => keep(parseAllowedUrl(text)))
  const appSchemes = settings.appSchemes.flatMap((text) => keep(parseAppScheme(text)))
  issues.push(...checkSender(settings), ...checkBranding(settings.branding), ...checkLimits(settings.limits))
  if (!locales.includes(settings.locale)) {
    issues.push({ field: 'locale', code: 'unknown_locale', message: `Choose one of ${locales.join(', ')}.` })
  }
  const schemes = new Set(appSchemes.map((entry) => entry.scheme))
  const senderDomains = settings.senderDomains.flatMap((text) => keep(parseSenderDomain(text)))
  issues.push(...checkSenderDomains({ ...settings, senderDomains }))
  const { allowLocalhost } = settings
  const links = { allowedUrls, appSchemes, allowLocalhost, schemes }
  issues.push(...checkHostedLinks(settings, links), ...checkHooks(settings.hooks ?? {}, links))
  if (issues.length > 0) return { ok: false, issues }
  const lists = { allowedUrls: texts(allowedUrls), appSchemes: texts(appSchemes), senderDomains }
  return parsed(inOrder({ ...settings, ...lists }))
}

/** Bounds what each change adds to the audit, and what lists of apps have to read. */
const settingsMax = 16 * 1024

function checkSize(settings: AppSettings): Issue | null {
  const sizes = Object.entries(settings).map(([field, value]) => ({
    field,
    size: JSON.stringify(value ?? null).length,
  }))
  if (sizes.reduce((sum, { size }) => sum + size, 0) <= settingsMax) return null
  const [largest] = sizes.toSorted((a, b) => b.size - a.size)
  const message = `The settings of an app have at most ${settingsMax} characters in all; this one is the largest.`
  return { field: largest?.field ?? 'name', code: 'too_large', message }
}

/** The same settings with their names in one order, so that equal settings are equal JSON. */
function inOrder(settings: AppSettings): AppSettings {
  const { from, linkDestinations, branding, limits } = settings
  return {
    name: settings.name,
    from: { name: from.name, address: from.address },
    senderDomains: [...new Set(settings.senderDomains)].toSorted(),
    ...optional(settings, ['envelopeFrom', 'replyTo', 'supportContact']),
    allowedUrls: settings.allowedUrls,
    appSchemes: settings.appSchemes,
    allowLocalhost: settings.allowLocalhost,
    allowCodes: settings.allowCodes,
    supersede: settings.supersede,
    hostedLinks: settings.hostedLinks,
    linkDestinations: optional(linkDestinations, emailTypes),
    ...optional(settings, ['webhookUrl']),
    ...(settings.hooks !== undefined && { hooks: optional(settings.hooks, hookSystemNames) }),
    ...optional(settings, ['fallbackUrl']),
    branding: optional(branding, ['logoUrl', 'accentColour', 'addressLine']),
    locale: settings.locale,
    limits: {
      keyPerMinute: limits.keyPerMinute,
      recipientPerHour: limits.recipientPerHour,
      daily: limits.daily,
    },
  }
}

const optional = <T extends object, K extends keyof T>(values: T, names: readonly K[]): Pick<T, K> =>
  Object.fromEntries(
    names.filter((name) => values[name] !== undefined).map((name) => [name, values[name]]),
  ) as Pick<T, K>

const texts = (entries: readonly AllowedUrl[]) => [...new Set(entries.map((entry) => entry.text))]

function checkSender(settings: AppSettings): Issue[] {
  const issues: Issue[] = []
  const checkText = (field: string, value: string, max: number) => {
    if (value.trim() === '' || value.length > max || isDeceptive(value)) {
      const message = `1 to ${max} characters, not blank, without ${deceptive}.`
      issues.push({ field, code: 'malformed_text', message })
    }
  }
  checkText('name', settings.name, 100)
  checkText('from.name', settings.from.name, 100)
  if (/[<>]|\S@\S/.test(settings.from.name)) {
    const message = 'A name without an address: many programs show the name alone.'
    issues.push({ field: 'from.name', code: 'address_in_name', message })
  }
  const { supportContact } = settings
  if (supportContact !== undefined && !isSupportContact(supportContact)) {
    const message = 'An email address, or an https page, of at most 200 characters.'
    issues.push({ field: 'supportContact', code: 'malformed_contact', message })
  }
  const addresses = {
    'from.address': settings.from.address,
    replyTo: settings.replyTo,
    envelopeFrom: settings.envelopeFrom,
  }
  for (const [field, value] of Object.entries(addresses)) {
    const address = value === undefined ? undefined : parseEmailAddress(value, field)
    if (address?.ok === false) issues.push(...address.issues)
  }
  if (settings.webhookUrl !== undefined && !isWebhookUrl(settings.webhookUrl)) {
    const message = 'An https URL of at most 2000 characters, without user, password and fragment.'
    issues.push({ field: 'webhookUrl', code: 'malformed_webhook_url', message })
  }
  const { envelopeFrom } = settings
  if (envelopeFrom !== undefined && isBounceBase(envelopeFrom) && !fitsReference(envelopeFrom)) {
    const message = `With a + in front of the @, at most ${bounceLocalMax} characters in front of the +.`
    issues.push({ field: 'envelopeFrom', code: 'too_long', message })
  }
  return issues
}

const isSupportContact = (text: string): boolean =>
  text.length <= 200 && (parseEmailAddress(text, 'supportContact').ok || isHttpsUrl(text))

const isHttpsUrl = (text: string): boolean =>
  /^https:\/\/[\x21-\x7e]{1,2000}$/.test(text) && URL.parse(text)?.username === ''

function checkBranding(branding: AppSettings['branding']): Issue[] {
  const issues: Issue[] = []
  const add = (field: string, code: string, message: string) => issues.push({ field, code, message })
  const { logoUrl, accentColour, addressLine } = branding
  if (logoUrl !== undefined && !isHttpsUrl(logoUrl)) {
    add('branding.logoUrl', 'insecure_logo', 'The logo needs an https URL.')
  }
  if (accentColour !== undefined && !/^#[0-9a-f]{6}$/i.test(accentColour)) {
    add('branding.accentColour', 'malformed_colour', 'Write the colour as #rrggbb.')
  }
  if (addressLine !== undefined && (addressLine.length > 200 || isDeceptive(addressLine))) {
    add('branding.addressLine', 'malformed_text', `At most 200 characters, without ${deceptive}.`)
  }
  return issues
}

function checkHostedLinks(settings: AppSettings, policy: Parameters<typeof checkDestination>[1]): Issue[] {
  const issues: Issue[] = []
  const add = (field: string, code: string, message: string) => issues.push({ field, code, message })
  if (!hostedLinkModes.includes(settings.hostedLinks)) {
    add('hostedLinks', 'unknown_mode', `Must be one of ${hostedLinkModes.join(', ')}.`)
  }
  for (const [type, destination] of Object.entries(settings.linkDestinations)) {
    const known = emailTypes.some((name) => name === type)
    const fault = known ? checkDestination(destination, policy) : `The types are ${emailTypes.join(', ')}.`
    if (fault !== null) add(`linkDestinations.${type}`, 'destination_invalid', fault)
  }
  const { fallbackUrl } = settings
  if (fallbackUrl !== undefined && !isHttpsUrl(fallbackUrl)) {
    add('fallbackUrl', 'insecure_fallback', 'The fallback needs an https URL.')
  }
  return issues
}

const limitMaxima: AppLimits = {
  keyPerMinute: 6_000_000,
  recipientPerHour: 1_000_000,
  daily: 1_000_000_000,
}

function checkLimits(limits: AppLimits): Issue[] {
  return Object.entries(limitMaxima).flatMap(([name, max]) => {
    const value = limits[name as keyof AppLimits]
    const fits = Number.isInteger(value) && value >= 1 && value <= max
    const message = `A whole number from 1 to ${max}.`
    return fits ? [] : [{ field: `limits.${name}`, code: 'malformed_limit', message }]
  })
}
