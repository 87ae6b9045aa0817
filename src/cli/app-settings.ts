/**
 * The settings of an app as flags of the command line: declared once for `create` and `update`,
 * applied to what the app has, and checked as a whole.
 */
import { type Command, Option } from 'commander'
import { type AppSettings, parseAppSettings } from '../domain/app/app.ts'
import { type HostedLinkMode, hostedLinkModes } from '../domain/app/hosted-link.ts'
import { locales } from '../templates/emails/render-email.ts'
import { CommandFailed, UsageError } from './output.ts'

export type SettingFlags = {
  name?: string
  from?: string
  envelopeFrom?: string
  replyTo?: string
  support?: string
  allowUrl: string[]
  removeAllowUrl?: string[]
  appScheme: string[]
  removeAppScheme?: string[]
  allowLocalhost?: boolean
  hostedLinks?: HostedLinkMode
  linkDestination: string[]
  removeLinkDestination?: string[]
  fallbackUrl?: string
  logoUrl?: string
  accentColour?: string
  addressLine?: string
  locale?: string
  keyPerMinute?: number
  recipientPerHour?: number
  daily?: number
}

export const collect = (value: string, all: string[]) => [...all, value]

function whole(value: string): number {
  if (!/^\d{1,10}$/.test(value)) throw new UsageError(`"${value}" is not a whole number`)
  return Number(value)
}

export function addSettingFlags(command: Command): Command {
  return command
    .option('--envelope-from <address>', 'where bounces go, if not the sender')
    .option('--reply-to <address>', 'where answers go')
    .option('--support <contact>', 'shown in each email, e.g. an address')
    .option(
      '--allow-url <url>',
      'a link that may be sent: origin, origin/path or origin/prefix/* (repeatable)',
      collect,
      [],
    )
    .option(
      '--app-scheme <scheme>',
      'a custom scheme that may be sent, e.g. acme or acme://auth (repeatable)',
      collect,
      [],
    )
    .option('--allow-localhost', 'allow links to localhost and 127.0.0.1 (development)')
    .addOption(new Option('--no-allow-localhost', 'take that back'))
    .addOption(
      new Option('--hosted-links <mode>', 'which emails carry a link to our page').choices(hostedLinkModes),
    )
    .option(
      '--link-destination <type=url>',
      'what the page opens for a type of email (repeatable)',
      collect,
      [],
    )
    .option('--fallback-url <url>', 'https URL for devices without the app')
    .option('--logo-url <url>', 'https URL of the logo')
    .option('--accent-colour <#rrggbb>', 'colour of the button')
    .option('--address-line <text>', 'below each email')
    .option('--locale <language>', `language of the emails: ${Object.keys(locales).join(', ')}`)
    .option('--key-per-minute <n>', 'requests per key and minute', whole)
    .option('--recipient-per-hour <n>', 'emails per recipient and hour', whole)
    .option('--daily <n>', 'emails per day (UTC)', whole)
}

function parseFrom(text: string): AppSettings['from'] {
  const match = /^\s*"?([^"<>]*?)"?\s*<([^<>\s]+)>\s*$/.exec(text)
  if (match?.[1] && match[2]) return { name: match[1], address: match[2] }
  throw new UsageError('--from must look like "Acme <auth@acme.test>"')
}

const given = <K extends string, T>(key: K, value: T | undefined) =>
  value === undefined ? {} : ({ [key]: value } as Record<K, T>)

export function applyFlags(base: AppSettings, flags: SettingFlags): AppSettings {
  const without = (all: readonly string[], gone: readonly string[] = []) =>
    all.filter((entry) => !gone.includes(entry))
  return {
    ...base,
    ...given('name', flags.name),
    ...(flags.from === undefined ? {} : { from: parseFrom(flags.from) }),
    ...given('envelopeFrom', flags.envelopeFrom),
    ...given('replyTo', flags.replyTo),
    ...given('supportContact', flags.support),
    ...given('allowLocalhost', flags.allowLocalhost),
    ...given('locale', flags.locale),
    ...given('hostedLinks', flags.hostedLinks),
    ...given('fallbackUrl', flags.fallbackUrl),
    linkDestinations: destinations(base.linkDestinations, flags),
    allowedUrls: [...without(base.allowedUrls, flags.removeAllowUrl), ...flags.allowUrl],
    appSchemes: [...without(base.appSchemes, flags.removeAppScheme), ...flags.appScheme],
    branding: {
      ...base.branding,
      ...given('logoUrl', flags.logoUrl),
      ...given('accentColour', flags.accentColour),
      ...given('addressLine', flags.addressLine),
    },
    limits: {
      ...base.limits,
      ...given('keyPerMinute', flags.keyPerMinute),
      ...given('recipientPerHour', flags.recipientPerHour),
      ...given('daily', flags.daily),
    },
  }
}

function destinations(
  base: AppSettings['linkDestinations'],
  flags: SettingFlags,
): AppSettings['linkDestinations'] {
  const kept = Object.entries(base).filter(([type]) => !flags.removeLinkDestination?.includes(type))
  const added = flags.linkDestination.map((text) => {
    const [type = '', ...url] = text.split('=')
    if (url.length === 0)
      throw new UsageError('--link-destination must look like magic_link=acme://auth/magic')
    return [type, url.join('=')]
  })
  return Object.fromEntries([...kept, ...added])
}

/** Settings that keep their rules; refuses with every reason. */
export function checkSettings(settings: AppSettings): AppSettings {
  const parsed = parseAppSettings(settings, Object.keys(locales))
  if (parsed.ok) return parsed.value
  throw new CommandFailed(
    `these settings are refused:\n${parsed.issues.map((issue) => `  ${issue.field}: ${issue.message}`).join('\n')}`,
  )
}
