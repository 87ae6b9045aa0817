/**
 * The recipient's address: one RFC 5321 mailbox. It is never trimmed, and display forms are refused.
 *
 *   address    = local-part "@" domain            254 octets at most
 *   local-part = ASCII dot-atom                   1 to 64 octets
 *              / <"> atoms and dots <">           only where it is no dot-atom: `"a..b"`, `"a."`
 *   domain     = label 1*("." label)              253 octets at most, as A-labels
 *
 * Japanese carriers have given out addresses such as a..b@docomo.ne.jp, which must be quoted. Only this one
 * spelling of them is accepted, so that a mailbox has one address.
 *
 * International domains are accepted and kept as A-labels. An international local part is refused:
 * it needs SMTPUTF8 at every hop. The raw text is checked before `domainToASCII`, which truncates at
 * `/ # ? \` and decodes percent signs.
 */
import { domainToASCII } from 'node:url'
import { type Parsed, parsed, refuser } from '../parsed.ts'

declare const brand: unique symbol

/** A mailbox that may stand in an SMTP envelope. The local part's case is kept, the domain's is lower. */
export type EmailAddress = string & { readonly [brand]: 'EmailAddress' }

const addressOctetsMax = 254
const domainOctetsMax = 253

// C0 and C1 controls, white space, direction controls (UAX #9), and characters of other address forms.
const forbidden =
  /[\u0000-\u0020\u007f-\u00a0\u061c\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2069\u3000\ufeff<>(),;:\\"[\]]/u
/** Its quotes are the only ones that an address may have. */
const quotedDots = /^"([A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+)"(?=@)/
const dotAtom = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const rawDomain = /^[\p{L}\p{M}\p{N}.-]+$/u
const asciiDomain = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Reads a mailbox. `field` is the field that an issue names. */
export function parseEmailAddress(input: string, field: string): Parsed<EmailAddress> {
  const refuse = refuser(field)
  if (input.length > addressOctetsMax) {
    return refuse('too_long', `At most ${addressOctetsMax} characters.`)
  }
  const [quoted = '', dots = ''] = quotedDots.exec(input) ?? []
  const isQuoted = dots !== '' && !dotAtom.test(dots)
  if (forbidden.test(isQuoted ? input.slice(quoted.length) : input)) {
    return refuse(
      'forbidden_character',
      'Give one bare address: no white space, controls, quotes, brackets, commas or name.',
    )
  }
  const at = input.indexOf('@')
  if (at < 1 || at !== input.lastIndexOf('@')) {
    return refuse('not_an_address', 'Give one address of the form name@example.com.')
  }
  const local = input.slice(0, at)
  if (local.length > 64 || !(isQuoted || dotAtom.test(local))) {
    return refuse(
      'invalid_local_part',
      'Before the @: 1 to 64 ASCII characters, no dot at either end, no two dots in a row, unless in quotes ("a..b"@example.com).',
    )
  }
  const domain = toDomainName(input.slice(at + 1))
  if (domain === null || local.length + 1 + domain.length > addressOctetsMax) {
    return refuse('invalid_domain', 'After the @: a domain name of two labels or more, such as example.com.')
  }
  return parsed(`${local}@${domain}` as EmailAddress)
}

/** An address without quotes: of a sender, whose domain has no such mailbox, or a contact. */
export function parsePlainAddress(input: string, field: string): Parsed<EmailAddress> {
  const address = parseEmailAddress(input, field)
  if (!input.startsWith('"') || !address.ok) return address
  return refuser(field)('forbidden_character', 'This address may have no quotes.')
}

/** A domain name of two labels or more, in small letters and as A-labels; null for another text. */
export function toDomainName(raw: string): string | null {
  if (!rawDomain.test(raw)) return null
  const ascii = domainToASCII(raw)
  const lastLabel = ascii.slice(ascii.lastIndexOf('.') + 1)
  const usable = ascii.length <= domainOctetsMax && asciiDomain.test(ascii) && !/^[0-9]+$/.test(lastLabel)
  return usable ? ascii : null
}

/** The form under which limits count an address: lower case. Mail is never sent to this form. */
export const limitAddress = (address: EmailAddress): string => address.toLowerCase()

/**
 * The mailbox behind an address, for limits only: without its `+tag`, and at Gmail (under one name)
 * without its dots, so that variants of one mailbox share a bucket.
 */
export function foldMailbox(address: EmailAddress): string {
  const [local = '', domain = ''] = limitAddress(address).replaceAll('"', '').split('@')
  const plus = local.indexOf('+')
  const untagged = plus > 0 ? local.slice(0, plus) : local
  if (domain !== 'gmail.com' && domain !== 'googlemail.com') return `${untagged}@${domain}`
  return `${untagged.replaceAll('.', '') || untagged}@gmail.com`
}

export const readDomain = (address: EmailAddress): string => address.slice(address.lastIndexOf('@') + 1)
