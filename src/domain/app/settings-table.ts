/**
 * The settings of an app, each declared once. Its type, default, place and JSON schema, the option of
 * `app create` and `app update`, the label of a form and the name in the audit derive from here
 * (`settings.ts`). Rules that need more than one value are in `check-settings.ts`.
 */
import { type TOptional, type TSchema, type TString, Type } from 'typebox'
import { deceptive, isDeceptive } from '../controls.ts'
import { counted } from '../counts.ts'
import { type HookSettings, hookSystemNames } from '../hooks/hook-settings.ts'
import { type EmailType, emailTypes } from '../request/email-request.ts'
import { isWebhookUrl } from '../webhooks/webhook.ts'
import { hostedLinkModes } from './hosted-link.ts'
import { defaultLimits } from './limit.ts'
import {
  fitsBounces,
  group,
  isAddress,
  isContact,
  isHttpsUrl,
  isNoAddress,
  isText,
  limit,
  option,
  optional,
  rule,
  setting,
  text,
} from './setting.ts'

const perKind = <Value extends TSchema>(value: Value) => Type.Record(Type.String({ maxLength: 100 }), value)
const hook = Type.Optional(
  Type.Object(
    {
      verifyUrl: Type.Optional(text('https://REF.supabase.co/auth/v1/verify')),
      pages: Type.Optional(perKind(text('https://app.acme.test/code'))),
      lifeSeconds: Type.Optional(perKind(Type.Integer())),
      organisationName: Type.Optional(text('Acme')),
    },
    { additionalProperties: false },
  ),
)
const hooks = Object.fromEntries(hookSystemNames.map((name) => [name, hook]))

const destinations = Object.fromEntries(
  emailTypes.map((type) => [type, Type.Optional(text('https://app.acme.test/auth/x'))]),
) as Record<EmailType, TOptional<TString>>

/** In the order in which they are kept and answered. */
export const settingsTable = {
  name: setting(text('Acme'), {
    label: 'Name',
    hint: 'Shown in every email and in the console.',
    role: 'admin',
    check: isText(100),
  }),
  from: group(
    {
      name: setting(text('Acme'), {
        label: 'Sender name',
        hint: 'The name in the From line.',
        check: (value, field) => [...isText(100)(value, field), ...isNoAddress(value, field)],
      }),
      address: setting(text('auth@acme.test'), { label: 'Sender address', check: isAddress }),
    },
    { role: 'admin' },
  ),
  envelopeFrom: optional(text('auth@acme.test'), {
    label: 'Bounce address',
    hint: 'Defaults to that of the service, or to the sender. With a + in front of the @, each email gets its own.',
    role: 'admin',
    check: (value, field) => [...isAddress(value, field), ...fitsBounces(value, field)],
    option: option(
      'Sender',
      '--envelope-from <address>',
      'bounce address (default: POSTERN_BOUNCE_ADDRESS, or the sender); with a + in front of the @, one for each email',
    ),
    line: ['envelope from'],
  }),
  senderDomains: setting(
    Type.Array(text('acme.test'), {
      description:
        'The domains that the addresses of `from` and `envelopeFrom` may have, without subdomains. An admin of the whole service sets them, also by setting an address; or they are proved in DNS.',
    }),
    {
      label: 'Sender domains',
      role: 'service',
      default: [],
      option: option(
        'Sender',
        '--sender-domain <domain>',
        'allow addresses of this domain (repeatable); for an admin of the whole service, those of --from and --envelope-from are added automatically',
        'remove a sender domain (repeatable)',
      ),
    },
  ),
  replyTo: optional(text('auth@acme.test'), {
    label: 'Reply-To',
    hint: 'Defaults to the sender address.',
    check: isAddress,
    option: option('Sender', '--reply-to <address>', 'Reply-To address'),
    line: ['reply to'],
  }),
  supportContact: optional(text('help@acme.test'), {
    label: 'Support contact',
    hint: 'An email address or an https page, for people who did not ask for the email.',
    check: isContact,
    option: option('Sender', '--support <contact>', 'contact shown in each email, e.g. support@acme.test'),
    line: ['support'],
  }),
  allowedUrls: setting(Type.Array(text('https://app.acme.test', 'https://app.acme.test/auth/*')), {
    label: 'Allowed links',
    default: [],
    option: option(
      'Links that may be sent',
      '--allow-url <url>',
      'allow an origin, origin/path or origin/prefix/* (repeatable)',
      'disallow a link (repeatable)',
    ),
    line: ['allowed urls'],
  }),
  appSchemes: setting(Type.Array(text('acme')), {
    label: 'Mobile app schemes',
    default: [],
    option: option(
      'Links that may be sent',
      '--app-scheme <scheme>',
      'allow a custom scheme, e.g. acme or acme://auth (repeatable)',
      'disallow a scheme (repeatable)',
    ),
    line: ['app schemes'],
  }),
  allowLocalhost: setting(Type.Boolean(), {
    label: 'Links to localhost',
    default: false,
    option: option(
      'Links that may be sent',
      '--allow-localhost',
      'allow links to localhost and 127.0.0.1 (development)',
      'disallow links to localhost again',
    ),
    line: ['localhost', (isOn) => (isOn ? 'allowed' : 'not allowed')],
  }),
  allowCodes: setting(
    Type.Boolean({
      description: 'Whether emails show the one-time codes of requests; otherwise codes are ignored.',
    }),
    {
      label: 'One-time codes',
      default: false,
      option: option(
        'Codes',
        '--allow-codes',
        'show the one-time codes of requests beside their links',
        'ignore the codes of requests again',
      ),
      line: ['codes', (isOn) => (isOn ? 'shown' : 'ignored')],
    },
  ),
  supersede: setting(
    Type.Boolean({
      description:
        'Whether a newer email cancels older ones to the same recipient that have waited for a second, of the same type and with the same link but for its token. Invitations are never cancelled.',
    }),
    {
      label: 'Older emails superseded',
      default: true,
      option: option(
        'Newer emails',
        '--supersede',
        'when a newer email with the same kind of link comes, cancel older ones that still wait (default)',
        'send older emails as well',
      ),
      line: ['older emails', (isOn) => (isOn ? 'superseded by newer ones' : 'sent as well')],
    },
  ),
  hostedLinks: setting(Type.Enum([...hostedLinkModes]), {
    label: 'Hosted links',
    default: 'auto',
    check: rule(
      (value) => hostedLinkModes.some((mode) => mode === value),
      'unknown_mode',
      `Must be one of ${hostedLinkModes.join(', ')}.`,
    ),
    option: option(
      'Links that may be sent',
      '--hosted-links <mode>',
      'which emails link to a Postern page instead',
    ),
    line: ['hosted links'],
  }),
  linkDestinations: setting(Type.Object(destinations, { additionalProperties: false }), {
    label: 'Destinations of hosted links',
    default: {},
    option: option(
      'Links that may be sent',
      '--link-destination <type=url>',
      'what that page opens, by email type (repeatable)',
      'remove a destination (repeatable)',
    ),
  }),
  fallbackUrl: optional(text('https://acme.test/get'), {
    label: 'Page for devices without the app',
    check: rule(isHttpsUrl, 'insecure_fallback', 'The fallback needs an https URL.'),
    option: option(
      'Links that may be sent',
      '--fallback-url <url>',
      'https page for devices without the app',
    ),
    line: ['fallback'],
  }),
  webhookUrl: optional(
    Type.String({
      examples: ['https://app.acme.test/postern'],
      description: 'Where the app is notified of emails that bounced, failed or were suppressed.',
    }),
    {
      label: 'Webhook address',
      role: 'service',
      check: rule(
        isWebhookUrl,
        'malformed_webhook_url',
        'An https URL of at most 2000 characters, without user, password and fragment.',
      ),
      option: option(
        'Webhooks',
        '--webhook-url <url>',
        'where the app is notified of emails that bounced or failed; https',
      ),
      line: ['webhooks'],
    },
  ),
  hooks: optional(Type.Unsafe<HookSettings>(Type.Object(hooks, { additionalProperties: false })), {
    label: 'Auth servers',
  }),
  branding: group(
    {
      logoUrl: optional(text('https://acme.test/logo.png'), {
        label: 'Logo (https)',
        hint: 'At most 40 px high in the email.',
        check: rule(isHttpsUrl, 'insecure_logo', 'The logo needs an https URL.'),
        option: option('Look', '--logo-url <url>', 'https URL of the logo'),
        line: ['logo'],
      }),
      accentColour: optional(text('#1d4ed8'), {
        label: 'Button colour',
        check: rule(
          (value) => /^#[0-9a-f]{6}$/i.test(value),
          'malformed_colour',
          'Write the colour as #rrggbb.',
        ),
        option: option('Look', '--accent-colour <#rrggbb>', 'colour of the button'),
        line: ['accent colour'],
      }),
      addressLine: optional(text('Acme, 1 Road'), {
        label: 'Footer line',
        hint: 'For example, the company and its address.',
        check: rule(
          (value) => value.length <= 200 && !isDeceptive(value),
          'malformed_text',
          `At most 200 characters, without ${deceptive}.`,
        ),
        option: option('Look', '--address-line <text>', 'footer line of each email'),
        line: ['address line'],
      }),
    },
    { default: {} },
  ),
  locale: setting(text('en', 'de'), {
    label: 'Language',
    hint: 'Used when a request names no language that Postern has.',
    default: 'en',
    option: option(
      'Look',
      '--locale <language>',
      'language of the emails, such as de or pt-BR; "postern languages" lists them',
    ),
    line: ['locale'],
  }),
  limits: group(
    {
      keyPerMinute: limit('keyPerMinute', 6_000_000, {
        label: 'Requests per key per minute',
        option: ['--key-per-minute <n>', 'requests per key per minute'],
        line: ['limits', (n) => `${counted(n, 'request')} a minute per key`],
      }),
      recipientPerHour: limit('recipientPerHour', 1_000_000, {
        label: 'Emails per recipient per hour',
        option: ['--recipient-per-hour <n>', 'emails per recipient per hour'],
        line: ['', (n) => `${counted(n, 'email')} an hour per recipient`],
      }),
      daily: limit('daily', 1_000_000_000, {
        label: 'Emails a day (UTC)',
        option: ['--daily <n>', 'emails per day in UTC'],
        line: ['', (n) => `${counted(n, 'email')} a day`],
      }),
    },
    { role: 'admin', default: defaultLimits },
  ),
}
