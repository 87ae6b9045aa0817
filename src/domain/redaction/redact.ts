/**
 * The one redaction: a text from a relay, a mail API, a token server, a report, a provider's event, an auth
 * server or a browser passes here once, where it becomes a record, an event or a line of a page. It takes
 * out what looks like an address, a link or a token, and what is known of the email, in the spellings and
 * encodings that servers use. Codes of replies, the words of a diagnosis and the hosts of mail servers stay.
 * A server that means to leak what it has read still can, in a form of its own.
 */
import { cleanLine } from '../controls.ts'
import type { EmailContent } from '../request/email-content.ts'
import { findAddress, findEmail, findSecret, readLine } from './known.ts'
import { findNumbers } from './numbers.ts'
import { findShapes } from './shapes.ts'
import { hideSpans, type Span } from './spans.ts'

export type Source =
  /** It answers an email, whose content is at hand. */
  | { readonly kind: 'reply'; readonly email: EmailContent; readonly secrets?: readonly string[] }
  /**
   * It is about an email that has ended, of which nothing is kept: the addresses are those that the report
   * names. Since the code is not known, everything that could be one is taken out.
   */
  | { readonly kind: 'report'; readonly addresses: readonly string[] }
  /** Nothing of an email can be in it. `secrets`: credentials that the other side was sent. */
  | { readonly kind: 'other'; readonly secrets?: readonly string[] }

/** At most this much of a text is read: a relay may send up to 1 MiB. */
const readMax = 2000
const textMax = 300

const addressesMax = 20

/** Runs of so many characters can be tokens. The token of an email that has ended is not known. */
const opaqueMins = { reply: 20, other: 20, report: 12 } as const

/** The status of a reply, which a short code could be a part of. */
const statusShape = /^\d{3}(?:[ -](?:\d\.\d{1,3}\.\d{1,3}(?: |$))?|$)/

/** One line of at most 300 characters, fit for records and logs. */
export function redact(text: string, source: Source): string {
  const line = cleanLine(text, readMax)
  const [status = ''] = statusShape.exec(line) ?? []
  const said = line.slice(status.length)
  // The id by which a relay or provider knows an accepted email looks like a token, and operators need it.
  const isAcceptance = source.kind === 'reply' && status.startsWith('2')
  const opaqueMin = isAcceptance ? Number.POSITIVE_INFINITY : opaqueMins[source.kind]
  const spans = [...findShapes(said, opaqueMin), ...findKnown(said, status, source)]
  return `${status}${hideSpans(said, spans)}`.slice(0, textMax)
}

/** In a report, the reply that it quotes may have several lines. */
const quotedCode = /(?<![\w.])[2-5]\d\d(?=[ -])/

function findKnown(line: string, status: string, source: Source): Span[] {
  if (source.kind === 'report') return findKnownInReport(line, status, source.addresses)
  const readings = readLine(line, /^\d{3}/.exec(status)?.[0] ?? null)
  const secrets = (source.secrets ?? []).filter((secret) => secret !== '')
  const found = secrets.flatMap((secret) => findSecret(readings, line, secret))
  return source.kind === 'reply' ? [...found, ...findEmail(readings, line, source.email)] : found
}

/** The words in front of the reply that a report quotes are no line of it, so they are read by themselves. */
function findKnownInReport(line: string, status: string, named: readonly string[]): Span[] {
  const [ownCode = null] = /^\d{3}/.exec(status) ?? []
  const quoted = ownCode === null ? quotedCode.exec(line) : null
  const addresses = [...new Set([...named, ...listAddresses(line)])].slice(0, addressesMax)
  const find = (from: number, to: number, code: string | null): Span[] => {
    const text = line.slice(from, to)
    const readings = readLine(text, code)
    return addresses
      .flatMap((address) => findAddress(readings, text, address))
      .map((span) => ({ ...span, from: from + span.from, to: from + span.to }))
  }
  const found =
    quoted === null
      ? find(0, line.length, ownCode)
      : [...find(0, quoted.index, null), ...find(quoted.index, line.length, quoted[0])]
  return [...found, ...findNumbers(line, status)]
}

/** The addresses in a text, such as the field of a report. */
export const listAddresses = (text: string): string[] =>
  text.split(/[\s<>(),;:"'[\]]+/).filter((word) => /^[^@]+@[^@]+$/.test(word))
