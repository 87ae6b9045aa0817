/**
 * What an email says, apart from how it looks: the HTML and the text part are two renderings of
 * one `Letter`, so that neither can say less than the other.
 */

/** Text of ours, and names that other people typed: those are quoted and kept from becoming links. */
export type Paragraph = readonly (string | { readonly name: string })[]

export type Letter = {
  readonly subject: string
  /** What a mail client shows beside the subject. Never holds a typed name. */
  readonly preheader: string
  readonly heading: string
  readonly paragraphs: readonly Paragraph[]
  readonly button: string
  /** Below the link, in small print. */
  readonly notes: readonly string[]
}

/** The link's end: how long from now, and when. */
export type Expiry = { readonly duration: string; readonly moment: string }

/**
 * A typed name, legible but no link: a word joiner (U+2060, invisible) behind what makes a mail
 * client see an address, a domain or a telephone number.
 */
export function unlinkable(name: string): string {
  const broken = name.replace(/[.@:/]/g, (character) => `${character}\u2060`)
  return hasTelephoneNumber(name) ? broken.replace(/\d/g, (digit) => `${digit}\u2060`) : broken
}

const hasTelephoneNumber = (name: string): boolean => (name.match(/\d/g) ?? []).length >= 5

const subjectNameMax = 40

/** Whether a typed name may stand in a subject: plain, short, neither domain nor telephone number. */
export const isPlainName = (name: string): boolean =>
  name.length <= subjectNameMax &&
  /^[\p{L}\p{M}\p{N} .,'&-]+$/u.test(name) &&
  !/[\p{L}\p{N}]\.[\p{L}\p{N}]{2,}/u.test(name) &&
  !hasTelephoneNumber(name)
