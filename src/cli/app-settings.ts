/** The settings of an app as options of `app create` and `app update`. */
import { type Command, Option } from 'commander'
import { type HostedLinkMode, hostedLinkModes } from '../domain/app/hosted-link.ts'
import { defaultLimits } from '../domain/app/limit.ts'
import type { AppSettings } from '../domain/app/settings.ts'
import { collect } from './options.ts'
import { UsageError } from './output.ts'
import type { SettingsChange } from './settings-change.ts'

export type SettingOptions = {
  name?: string
  from?: string
  senderDomain?: string[]
  removeSenderDomain?: string[]
  envelopeFrom?: string
  replyTo?: string
  support?: string
  allowUrl?: string[]
  removeAllowUrl?: string[]
  appScheme?: string[]
  removeAppScheme?: string[]
  allowLocalhost?: boolean
  allowCodes?: boolean
  supersede?: boolean
  webhookUrl?: string
  hookPage?: string[]
  hookLife?: string[]
  hookVerifyUrl?: string
  hookOrganisation?: string[]
  hostedLinks?: HostedLinkMode
  linkDestination?: string[]
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

function parseWhole(value: string): number {
  if (!/^\d{1,10}$/.test(value)) throw new UsageError(`"${value}" is not a whole number`)
  return Number(value)
}

export function addSettingOptions(command: Command): Command {
  const described = command
    .optionsGroup('Sender:')
    .option(
      '--envelope-from <address>',
      'bounce address (default: POSTERN_BOUNCE_ADDRESS, or the sender); with a + in front of the @, one for each email',
    )
    .option(
      '--sender-domain <domain>',
      'allow addresses of this domain (repeatable); for an admin of the whole service, those of --from and --envelope-from are added automatically',
      collect,
    )
    .option('--reply-to <address>', 'Reply-To address')
    .option('--support <contact>', 'contact shown in each email, e.g. support@acme.test')
    .optionsGroup('Links that may be sent:')
    .option('--allow-url <url>', 'allow an origin, origin/path or origin/prefix/* (repeatable)', collect)
    .option('--app-scheme <scheme>', 'allow a custom scheme, e.g. acme or acme://auth (repeatable)', collect)
    .option('--allow-localhost', 'allow links to localhost and 127.0.0.1 (development)')
    .addOption(new Option('--no-allow-localhost', 'disallow links to localhost again'))
    .addOption(
      new Option('--hosted-links <mode>', 'which emails link to a Postern page instead').choices(
        hostedLinkModes,
      ),
    )
    .option('--link-destination <type=url>', 'what that page opens, by email type (repeatable)', collect)
    .option('--fallback-url <url>', 'https page for devices without the app')
    .optionsGroup('Codes:')
    .option('--allow-codes', 'show the one-time codes of requests beside their links')
    .addOption(new Option('--no-allow-codes', 'ignore the codes of requests again'))
    .optionsGroup('Newer emails:')
    .option(
      '--supersede',
      'when a newer email with the same kind of link comes, cancel older ones that still wait (default)',
    )
    .addOption(new Option('--no-supersede', 'send older emails as well'))
    .optionsGroup('Webhooks:')
    .option('--webhook-url <url>', 'where the app is notified of emails that bounced or failed; https')
    .optionsGroup('Auth servers that post to the app:')
    .option(
      '--hook-page <system.kind=url>',
      'page for a kind of message, or default; empty for none (repeatable)',
      collect,
    )
    .option('--hook-life <system.kind=seconds>', 'life of its link or code (repeatable)', collect)
    .option('--hook-organisation <system=name>', 'shown in invitations that name none (repeatable)', collect)
    .option('--hook-verify-url <url>', "where Supabase's own links lead: https://…/auth/v1/verify")
    .optionsGroup('Look:')
    .option('--logo-url <url>', 'https URL of the logo')
    .option('--accent-colour <#rrggbb>', 'colour of the button')
    .option('--address-line <text>', 'footer line of each email')
    .option(
      '--locale <language>',
      'language of the emails, such as de or pt-BR; "postern languages" lists them',
    )
  return addLimitOptions(described).optionsGroup('Other:')
}

function addLimitOptions(command: Command): Command {
  const { keyPerMinute, recipientPerHour, daily } = defaultLimits
  return command
    .optionsGroup('Limits:')
    .option('--key-per-minute <n>', `requests per key per minute (default: ${keyPerMinute})`, parseWhole)
    .option(
      '--recipient-per-hour <n>',
      `emails per recipient per hour (default: ${recipientPerHour})`,
      parseWhole,
    )
    .option('--daily <n>', `emails per day in UTC (default: ${daily})`, parseWhole)
}

export function parseFrom(text: string): AppSettings['from'] {
  const match = /^\s*"?([^"<>]*?)"?\s*<([^<>\s]+)>\s*$/.exec(text)
  if (match?.[1] && match[2]) return { name: match[1], address: match[2] }
  throw new UsageError('--from must look like "Acme <auth@acme.test>"')
}

/** Options that were not given are left out. */
const given = <K extends string, T>(key: K, value: T | undefined) =>
  value === undefined ? {} : ({ [key]: value } as Record<K, T>)

/** An empty text removes an optional setting. */
const removable = <K extends string>(key: K, value: string | undefined) =>
  given(key, value === '' ? null : value)

export function toChange(options: SettingOptions): SettingsChange {
  return {
    ...given('name', options.name),
    ...given('from', options.from === undefined ? undefined : parseFrom(options.from)),
    ...removable('envelopeFrom', options.envelopeFrom),
    ...removable('replyTo', options.replyTo),
    ...removable('supportContact', options.support),
    ...removable('fallbackUrl', options.fallbackUrl),
    ...given('allowLocalhost', options.allowLocalhost),
    ...given('allowCodes', options.allowCodes),
    ...given('supersede', options.supersede),
    ...removable('webhookUrl', options.webhookUrl),
    ...given('locale', options.locale),
    hooks: readHooks(options),
    ...given('hostedLinks', options.hostedLinks),
    addSenderDomains: options.senderDomain ?? [],
    removeSenderDomains: options.removeSenderDomain ?? [],
    addAllowedUrls: options.allowUrl ?? [],
    removeAllowedUrls: options.removeAllowUrl ?? [],
    addAppSchemes: options.appScheme ?? [],
    removeAppSchemes: options.removeAppScheme ?? [],
    linkDestinations: Object.fromEntries((options.linkDestination ?? []).map(parseDestination)),
    removeLinkDestinations: options.removeLinkDestination ?? [],
    branding: {
      ...removable('logoUrl', options.logoUrl),
      ...removable('accentColour', options.accentColour),
      ...removable('addressLine', options.addressLine),
    },
    limits: {
      ...given('keyPerMinute', options.keyPerMinute),
      ...given('recipientPerHour', options.recipientPerHour),
      ...given('daily', options.daily),
    },
  }
}

function parseDestination(text: string): [type: string, url: string] {
  const [type = '', ...url] = text.split('=')
  if (url.length === 0) throw new UsageError('--link-destination must look like magic_link=acme://auth/magic')
  return [type, url.join('=')]
}

/** The place in the settings of a system that each option changes, and its text; '' removes it. */
function readHooks(options: SettingOptions): NonNullable<SettingsChange['hooks']> {
  const { hookLife = [], hookOrganisation = [], hookPage = [], hookVerifyUrl } = options
  return [
    ...hookPage.map((text) => ({ ...parseKind('--hook-page', text), setting: 'pages' as const })),
    ...hookLife.map((given) => {
      const life = parseKind('--hook-life', given)
      if (!/^\d{0,9}$/.test(life.text)) throw new UsageError('--hook-life is a whole number of seconds')
      return { ...life, setting: 'lifeSeconds' as const }
    }),
    ...hookOrganisation.map((text) => {
      const [system = '', ...name] = text.split('=')
      return { system, kind: null, setting: 'organisationName' as const, text: name.join('=') }
    }),
    ...(hookVerifyUrl === undefined
      ? []
      : [{ system: 'supabase', kind: null, setting: 'verifyUrl' as const, text: hookVerifyUrl }]),
  ]
}

function parseKind(option: string, given: string) {
  const [, system = '', kind = '', text = ''] = /^([a-z]+)\.([^=]+)=(.*)$/.exec(given) ?? []
  if (system === '') throw new UsageError(`${option} must look like supabase.signup=…, or kratos.default=…`)
  return { system, kind, text }
}
