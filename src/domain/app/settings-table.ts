/**
 * The settings of an app, each declared once. Its type, default, place and JSON schema, the option of
 * `app create` and `app update`, the label of a form and the name in the audit derive from here
 * (`settings.ts`). Rules that need more than one value are in `check-settings.ts`.
 */

import { authHookNames } from '../auth-hooks/auth-hooks.ts'
import { deceptive, isDeceptive } from '../controls.ts'
import { counted } from '../counts.ts'
import { parseTransportName } from '../delivery/transport.ts'
import { issuesOf } from '../parsed.ts'
import { emailTypes } from '../request/email-kinds.ts'
import { isWebhookUrl } from '../webhooks/webhook.ts'
import { hostedLinkSettings } from './hosted-link-settings.ts'
import { listOwnWords } from './own-words.ts'
import {
  authHooks,
  both,
  fitsBounces,
  isAddress,
  isContact,
  isHttpsUrl,
  isNoAddress,
  isText,
  limit,
  list,
  option,
  optionalText,
  ownWords,
  rule,
  text,
  toggle,
} from './setting.ts'

const formsOfAddress = ['formal', 'informal'] as const

/** In the order in which they are kept and answered. */
export const settingsTable = {
  name: text({
    example: 'Acme',
    label: 'Name',
    hint: 'Shown in every email and in the console.',
    role: 'admin',
    check: isText(100),
  }),
  from: {
    role: 'admin' as const,
    fields: {
      name: text({
        example: 'Acme',
        label: 'Sender name',
        hint: 'The name in the From line.',
        check: both(isText(100), isNoAddress),
      }),
      address: text({ example: 'auth@acme.test', label: 'Sender address', check: isAddress }),
    },
  },
  envelopeFrom: optionalText({
    example: 'auth@acme.test',
    label: 'Bounce address',
    hint: 'Defaults to that of the service, or to the sender. With a + in front of the @, each email gets its own.',
    role: 'admin',
    check: both(isAddress, fitsBounces),
    option: option(
      'Sender',
      '--envelope-from <address>',
      'bounce address (default: POSTERN_BOUNCE_ADDRESS, or the sender); with a + in front of the @, one for each email',
    ),
    line: ['envelope from'],
  }),
  senderDomains: list({
    example: 'acme.test',
    description:
      'The domains that the addresses of `from` and `envelopeFrom` may have, without subdomains. An admin of the whole service sets them, also by setting an address; or they are proved in DNS.',
    label: 'Sender domains',
    role: 'service',
    default: [],
    option: option(
      'Sender',
      '--sender-domain <domain>',
      'allow addresses of this domain (repeatable); for an admin of the whole service, those of --from and --envelope-from are added automatically',
      'remove a sender domain (repeatable)',
    ),
  }),
  replyTo: optionalText({
    example: 'auth@acme.test',
    label: 'Reply-To',
    hint: 'Defaults to the sender address.',
    check: isAddress,
    option: option('Sender', '--reply-to <address>', 'Reply-To address'),
    line: ['reply to'],
  }),
  supportContact: optionalText({
    example: 'help@acme.test',
    label: 'Support contact',
    hint: 'An email address or an https page, for people who did not ask for the email.',
    check: isContact,
    option: option('Sender', '--support <contact>', 'contact shown in each email, e.g. support@acme.test'),
    line: ['support'],
  }),
  allowedUrls: list({
    example: 'https://app.acme.test',
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
  appSchemes: list({
    example: 'acme',
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
  allowLocalhost: toggle({
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
  allowCodes: toggle({
    description: 'Whether emails show the one-time codes of requests; otherwise codes are ignored.',
    label: 'One-time codes',
    default: false,
    option: option(
      'Codes',
      '--allow-codes',
      'show the one-time codes of requests beside their links',
      'ignore the codes of requests again',
    ),
    line: ['codes', (isOn) => (isOn ? 'shown' : 'ignored')],
  }),
  supersede: toggle({
    description:
      'Whether a newer email cancels older ones to the same recipient that have waited for a second, of the same type and with the same link but for its token. Invitations are never cancelled.',
    label: 'Older emails superseded',
    default: true,
    option: option(
      'Newer emails',
      '--supersede',
      'when a newer email with the same kind of link comes, cancel older ones that still wait (default)',
      'send older emails as well',
    ),
    line: ['older emails', (isOn) => (isOn ? 'superseded by newer ones' : 'sent as well')],
  }),
  ...hostedLinkSettings,
  transport: optionalText({
    example: 'acme',
    description: 'The transport whose relays send the mail of this app, in place of those of POSTERN_SMTP_URL.',
    label: 'Transport',
    role: 'service',
    check: (value, field) => issuesOf([parseTransportName(value, field)]),
    option: option('Sender', '--transport <name>', 'send by the relays of this transport; "" for those of the service'),
    line: ['transport'],
  }),
  webhookUrl: optionalText({
    example: 'https://app.acme.test/postern',
    description: 'Where the app is notified of emails that bounced, failed or were suppressed.',
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
  }),
  authHooks: authHooks({ keys: authHookNames, label: 'Auth servers' }),
  branding: {
    fields: {
      logoUrl: optionalText({
        example: 'https://acme.test/logo.png',
        label: 'Logo (https)',
        hint: 'At most 40 px high in the email.',
        check: rule(isHttpsUrl, 'insecure_logo', 'The logo needs an https URL.'),
        option: option('Look', '--logo-url <url>', 'https URL of the logo'),
        line: ['logo'],
      }),
      accentColour: optionalText({
        example: '#1d4ed8',
        label: 'Button colour',
        check: rule((value) => /^#[0-9a-f]{6}$/i.test(value), 'malformed_colour', 'Write the colour as #rrggbb.'),
        option: option('Look', '--accent-colour <#rrggbb>', 'colour of the button'),
        line: ['accent colour'],
      }),
      addressLine: optionalText({
        example: 'Acme, 1 Road',
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
  },
  locale: text({
    example: 'en',
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
  formOfAddress: optionalText({
    example: 'informal',
    label: 'Form of address',
    hint: 'In German, French, Spanish and Dutch.',
    check: rule(
      (value) => formsOfAddress.some((form) => form === value),
      'unknown_form',
      `Must be one of ${formsOfAddress.join(', ')}, or left out for the usual one of each language.`,
    ),
    option: option('Look', '--form-of-address <form>', 'formal or informal, in languages that have both'),
    line: ['form of address'],
  }),
  words: ownWords({
    keys: emailTypes,
    description:
      "Own words, by type of email and tag of the language: the subject, the sentence above the button and a sign-off. An email in a language without them is in Postern's words.",
    label: 'Own words',
    role: 'service',
    line: ['own words', (words) => listOwnWords(words).join(', ')],
  }),
  limits: {
    role: 'admin' as const,
    fields: {
      keyPerMinute: limit('keyPerMinute', 6_000_000, {
        label: 'Requests per key per minute',
        flags: '--key-per-minute <n>',
        about: 'requests per key per minute',
        line: ['limits', (n) => `${counted(n, 'request')} a minute per key`],
      }),
      recipientPerHour: limit('recipientPerHour', 1_000_000, {
        label: 'Emails per recipient per hour',
        flags: '--recipient-per-hour <n>',
        about: 'emails per recipient per hour',
        line: ['', (n) => `${counted(n, 'email')} an hour per recipient`],
      }),
      daily: limit('daily', 1_000_000_000, {
        label: 'Emails a day (UTC)',
        flags: '--daily <n>',
        about: 'emails per day in UTC',
        line: ['', (n) => `${counted(n, 'email')} a day`],
      }),
    },
  },
}
