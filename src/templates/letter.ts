/**
 * The words of an email, without its layout. The HTML and the text part are two renderings of one
 * `Letter`, so that both say the same.
 */
import { hasDomain } from '../domain/linkable.ts'

/** Text of ours (strings), and names that other people typed, which are quoted and never become links. */
export type Paragraph = readonly (string | { readonly name: string })[]

export type Letter = {
  readonly subject: string
  /** Shown by mail clients beside the subject. Never contains a typed name. */
  readonly preheader: string
  readonly heading: string
  readonly paragraphs: readonly Paragraph[]
  /** Those of the text part, which has no button. */
  readonly plainParagraphs: readonly Paragraph[]
  /** The line above the code; null if the email has none. `isFirst`: both come before the button. */
  readonly code: { readonly intro: string; readonly isFirst: boolean } | null
  readonly button: string
  /** When the link, the code or both expire. */
  readonly expires: string
  /** The app's own; null for none. */
  readonly signOff: Paragraph | null
  /** Below the link, in small print. */
  readonly notes: readonly string[]
}

/** When the link expires: how long from now, and the date and time. */
export type Expiry = { readonly duration: string; readonly dateTime: string }

/** The texts that differ between two emails of the same app, type and language, except names. */
export type LinkTexts = Expiry & {
  readonly url: string
  /** The host of a hosted link, shown so that people can recognise it; null for a link of the app's own. */
  readonly host: string | null
  /** The one-time code, whole and in two parts for the eye; empty without one. */
  readonly code: string
  readonly codeHead: string
  readonly codeTail: string
}

/**
 * A typed name that stays legible and cannot become a link: an invisible word joiner (U+2060) follows
 * each character by which mail clients recognise an address, a domain or a telephone number.
 */
export function unlinkable(name: string): string {
  const broken = name.replace(/[.@:/。．｡＠]/g, (character) => `${character}\u2060`)
  return hasTelephoneNumber(name) ? broken.replace(/\p{Nd}/gu, (digit) => `${digit}\u2060`) : broken
}

const hasTelephoneNumber = (name: string): boolean => (name.match(/\p{Nd}/gu) ?? []).length >= 5

const subjectNameMax = 40

/** Whether a typed name may stand in a subject: short, plain, no domain and no telephone number. */
export const isPlainName = (name: string): boolean =>
  name.length <= subjectNameMax &&
  /^[\p{L}\p{M}\p{N} .,'’・&-]+$/u.test(name) &&
  !hasDomain(name) &&
  !hasTelephoneNumber(name)
