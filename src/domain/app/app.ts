/**
 * An app and its settings: who sends, what links may be sent, how the emails look, what
 * limits hold. Unsafe settings are refused here, when they are set, with every fault named.
 */

import { hasControls } from '../controls.ts'
import type { AppId } from '../id.ts'
import { type Parsed, parsed } from '../parsed.ts'
import { type EmailAddress, parseEmailAddress } from '../request/email-address.ts'
import { emailTypes } from '../request/email-request.ts'
import type { Issue } from '../request/rejection.ts'
import { type AllowedUrl, parseAllowedUrl, parseAppScheme } from './allowed-url.ts'
import {
  checkDestination,
  type HostedLinkPolicy,
  type HostedLinkSettings,
  hostedLinkModes,
} from './hosted-link.ts'
import { type AppLimits, defaultLimits } from './limit.ts'

export type AppStatus = 'active' | 'disabled'

/** Settings as an operator gives them and the store keeps them: plain JSON. */
export type AppSettings = HostedLinkSettings & {
  readonly name: string
  readonly from: { readonly name: string; readonly address: string }
  readonly envelopeFrom?: string
  readonly replyTo?: string
  readonly supportContact?: string
  readonly allowedUrls: readonly string[]
  readonly appSchemes: readonly string[]
  readonly allowLocalhost: boolean
  /** Where a hosted page sends people whose device lacks the app: https. */
  readonly fallbackUrl?: string
  readonly branding: {
    readonly logoUrl?: string
    readonly accentColour?: string
    readonly addressLine?: string
  }
  readonly locale: string
  readonly limits: AppLimits
}

/** An app as the store returns it. `version` changes with every change of its settings or status. */
export type App = {
  readonly id: AppId
  readonly slug: string
  readonly version: number
  readonly status: AppStatus
  readonly createdAt: number
  readonly settings: AppSettings
}

export const defaultSettings = {
  allowedUrls: [],
  appSchemes: [],
  allowLocalhost: false,
  hostedLinks: 'auto',
  linkDestinations: {},
  branding: {},
  locale: 'en',
  limits: defaultLimits,
} as const

/** What judging a link needs of the settings, parsed once per version of the app. */
export type AppPolicy = HostedLinkPolicy & { readonly fromAddress: EmailAddress }

/** Checks settings and brings the allow-list to its normal form. */
export function parseAppSettings(settings: AppSettings, locales: readonly string[]): Parsed<AppSettings> {
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
    issues.push({ field: 'locale', code: 'unknown_locale', message: `Known locales: ${locales.join(', ')}.` })
  }
  const schemes = new Set(appSchemes.map((entry) => entry.scheme))
  const { allowLocalhost } = settings
  issues.push(...checkHostedLinks(settings, { allowedUrls, appSchemes, allowLocalhost, schemes }))
  if (issues.length > 0) return { ok: false, issues }
  return parsed({ ...settings, allowedUrls: texts(allowedUrls), appSchemes: texts(appSchemes) })
}

const texts = (entries: readonly AllowedUrl[]) => [...new Set(entries.map((entry) => entry.text))]

/**
 * The parsed form of settings that were checked when they were set. An entry that no longer keeps
 * the rules (the list of public suffixes grows) is left out, so that it allows nothing.
 */
export function appPolicy({ settings, slug }: Pick<App, 'settings' | 'slug'>): AppPolicy {
  const kept = <T>(result: Parsed<T>): T[] => (result.ok ? [result.value] : [])
  const appSchemes = settings.appSchemes.flatMap((text) => kept(parseAppScheme(text)))
  const { allowLocalhost, hostedLinks, linkDestinations } = settings
  return {
    slug,
    hostedLinks,
    linkDestinations,
    allowLocalhost,
    allowedUrls: settings.allowedUrls.flatMap((text) => kept(parseAllowedUrl(text))),
    appSchemes,
    schemes: new Set(appSchemes.map((entry) => entry.scheme)),
    fromAddress: settings.from.address as EmailAddress,
  }
}

export const parseSlug = (slug: string): Parsed<string> =>
  /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/.test(slug) && !/^app-/.test(slug)
    ? parsed(slug)
    : {
        ok: false,
        issues: [
          {
            field: 'slug',
            code: 'malformed_slug',
            message: 'A slug is 1 to 40 of a-z, 0-9 and inner hyphens.',
          },
        ],
      }

/** A slug made from an app's name, or null where nothing usable is left of it. */
export function slugFrom(name: string): string | null {
  const plain = name.normalize('NFKD').toLowerCase().replace(/\p{M}/gu, '')
  const slug = plain
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-+|-+$/g, '')
  return slug === '' ? null : slug
}

function checkSender(settings: AppSettings): Issue[] {
  const issues: Issue[] = []
  const text = (field: string, value: string, max: number) => {
    if (value.trim() === '' || value.length > max || hasControls(value)) {
      issues.push({
        field,
        code: 'malformed_text',
        message: `1 to ${max} characters, not blank, without control characters.`,
      })
    }
  }
  text('name', settings.name, 100)
  text('from', settings.from.name, 100)
  if (settings.supportContact !== undefined) text('supportContact', settings.supportContact, 200)
  const addresses = {
    from: settings.from.address,
    replyTo: settings.replyTo,
    envelopeFrom: settings.envelopeFrom,
  }
  for (const [field, value] of Object.entries(addresses)) {
    const address = value === undefined ? undefined : parseEmailAddress(value, field)
    if (address?.ok === false) issues.push(...address.issues)
  }
  return issues
}

function checkBranding(branding: AppSettings['branding']): Issue[] {
  const issues: Issue[] = []
  const add = (field: string, code: string, message: string) => issues.push({ field, code, message })
  const { logoUrl, accentColour, addressLine } = branding
  if (
    logoUrl !== undefined &&
    (!/^https:\/\/[\x21-\x7e]{1,2000}$/.test(logoUrl) || URL.parse(logoUrl) === null)
  ) {
    add('branding.logoUrl', 'insecure_logo', 'The logo needs an https URL.')
  }
  if (accentColour !== undefined && !/^#[0-9a-f]{6}$/i.test(accentColour)) {
    add('branding.accentColour', 'malformed_colour', 'Write the colour as #rrggbb.')
  }
  if (addressLine !== undefined && (addressLine.length > 200 || hasControls(addressLine))) {
    add('branding.addressLine', 'malformed_text', 'At most 200 characters, without control characters.')
  }
  return issues
}

function checkHostedLinks(settings: AppSettings, policy: Parameters<typeof checkDestination>[1]): Issue[] {
  const issues: Issue[] = []
  if (!hostedLinkModes.includes(settings.hostedLinks)) {
    const message = `One of ${hostedLinkModes.join(', ')}.`
    issues.push({ field: 'hostedLinks', code: 'unknown_mode', message })
  }
  for (const [type, destination] of Object.entries(settings.linkDestinations)) {
    const field = `linkDestinations.${type}`
    const known = emailTypes.some((name) => name === type)
    const fault = known ? checkDestination(destination, policy) : `The types are ${emailTypes.join(', ')}.`
    if (fault !== null) issues.push({ field, code: 'destination_invalid', message: fault })
  }
  const { fallbackUrl } = settings
  if (fallbackUrl !== undefined && !isHttpsUrl(fallbackUrl)) {
    issues.push({
      field: 'fallbackUrl',
      code: 'insecure_fallback',
      message: 'The fallback needs an https URL.',
    })
  }
  return issues
}

const isHttpsUrl = (text: string): boolean =>
  /^https:\/\/[\x21-\x7e]{1,2000}$/.test(text) && URL.parse(text)?.username === ''

function checkLimits(limits: AppLimits): Issue[] {
  const maxima = { keyPerMinute: 6_000_000, recipientPerHour: 1_000_000, daily: 1_000_000_000 }
  return Object.entries(maxima).flatMap(([name, max]) => {
    const value = limits[name as keyof AppLimits]
    const fits = Number.isInteger(value) && value >= 1 && value <= max
    return fits
      ? []
      : [{ field: `limits.${name}`, code: 'malformed_limit', message: `A whole number from 1 to ${max}.` }]
  })
}
