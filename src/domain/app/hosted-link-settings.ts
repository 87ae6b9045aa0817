/** The settings of an app about hosted links: a part of the table of all settings. */
import { issuesOf } from '../parsed.ts'
import { emailTypes } from '../request/email-kinds.ts'
import { hostedLinkModes } from './hosted-link.ts'
import { parseLinkDomain } from './link-domain.ts'
import { isHttpsUrl, linkMode, option, optionalText, rule, toggle, urlsOfTypes } from './setting.ts'

export const hostedLinkSettings = {
  hostedLinks: linkMode({
    choices: hostedLinkModes,
    label: 'Hosted links',
    default: 'auto',
    check: rule(
      (value) => hostedLinkModes.some((mode) => mode === value),
      'unknown_mode',
      `Must be one of ${hostedLinkModes.join(', ')}.`,
    ),
    option: option('Links that may be sent', '--hosted-links <mode>', 'which emails link to a Postern page instead'),
    line: ['hosted links'],
  }),
  linkDomain: optionalText({
    example: 'links.acme.test',
    description:
      'A domain at which the pages of hosted links of this app are served, in place of POSTERN_LINKS_BASE_URL. New links use it once `useLinkDomain` is true. Links already sent keep working.',
    label: 'Link domain',
    hint: 'Its DNS points to the proxy in front of Postern, which has a certificate for it.',
    role: 'service',
    check: (value, field) => issuesOf([parseLinkDomain(value, field)]),
    option: option(
      'Links that may be sent',
      '--link-domain <domain>',
      'serve the pages of hosted links at this domain',
    ),
    line: ['link domain'],
  }),
  useLinkDomain: toggle({
    description: 'Whether new hosted links are at `linkDomain`. Check it first: `postern domain check APP`.',
    label: 'New hosted links at the link domain',
    role: 'service',
    default: false,
    option: option(
      'Links that may be sent',
      '--use-link-domain',
      'put new hosted links at the link domain; "postern domain check" says whether it is ready',
      'put new hosted links at the base URL of the service again',
    ),
    line: ['new hosted links', (isOn) => (isOn ? 'at the link domain' : undefined)],
  }),
  linkDestinations: urlsOfTypes({
    keys: emailTypes,
    default: {},
    example: 'https://app.acme.test/auth/x',
    label: 'Destinations of hosted links',
    option: option(
      'Links that may be sent',
      '--link-destination <type=url>',
      'what that page opens, by email type (repeatable)',
      'remove a destination (repeatable)',
    ),
  }),
  fallbackUrl: optionalText({
    example: 'https://acme.test/get',
    label: 'Page for devices without the app',
    check: rule(isHttpsUrl, 'insecure_fallback', 'The fallback needs an https URL.'),
    option: option('Links that may be sent', '--fallback-url <url>', 'https page for devices without the app'),
    line: ['fallback'],
  }),
  newEmailUrl: optionalText({
    example: 'https://app.acme.test/sign-in',
    label: 'Page for a new email',
    hint: 'The page of an expired hosted link has a button that opens it.',
    check: rule(isHttpsUrl, 'insecure_new_email_url', 'The page needs an https URL.'),
    option: option(
      'Links that may be sent',
      '--new-email-url <url>',
      'https page where people ask for a new email, opened from the page of an expired link',
    ),
    line: ['new email'],
  }),
}
