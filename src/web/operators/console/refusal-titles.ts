/** Refusals of requests in words; the answer to the app has the code. */
import type { RefusalCode } from '../../../domain/request/rejection.ts'
import { type Html, html } from '../../../templates/html.ts'

const titles: Readonly<Record<RefusalCode, string>> = {
  invalid_body: 'Invalid request',
  invalid_url: 'Invalid link',
  invalid_hosted_link_config: 'Hosted links not set up',
  invalid_key: 'Invalid key',
  address_not_allowed: 'Address not allowed',
  unsupported_email: 'No email for this message',
  notice_not_sent: 'Notice, not sent',
  url_not_allowed: 'Link not allowed',
  key_rate_limited: 'Too many requests with one key',
  recipient_rate_limited: 'Too many emails to one recipient',
  daily_limit_reached: 'Daily limit reached',
  queue_full: 'Queue full',
  queue_unavailable: 'Queue unavailable',
}

/** Codes of requests that are in the log alone: they belong to no app. */
const unkept: readonly string[] = ['invalid_key', 'queue_unavailable'] satisfies RefusalCode[]

export const isKept = (code: string): boolean => Object.hasOwn(titles, code) && !unkept.includes(code)

export const keptCodes = Object.keys(titles).filter(isKept)

export const nameRefusal = (code: string): string => (Object.hasOwn(titles, code) ? titles[code as RefusalCode] : code)

/** Issues of which an operator can do something; others are said by their field and code. */
const issueTexts: Readonly<Record<string, string>> = {
  'url scheme_differs': 'the app allows this host, but not with this scheme',
  'url host_differs': 'the app does not allow this host',
  'url port_differs': 'the app allows this host, but not this port',
  'url path_differs': 'the app allows this site, but not this path',
  'url query_missing': 'the link has no token in its query (?token=…)',
}

/** @param issue a field and a code, such as `to forbidden_character` */
export const describeIssue = (issue: string): string =>
  Object.hasOwn(issueTexts, issue) ? (issueTexts[issue] ?? issue) : issue.replace(' ', ': ').replaceAll('_', ' ')

/** The words, and the code below them. */
export function renderRefusalName(code: string): Html {
  const name = nameRefusal(code)
  return name === code ? html`${code}` : html`${name} <code class="soft">${code}</code>`
}
