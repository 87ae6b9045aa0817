/**
 * The reference of an email: its id, a dot, and ten digits of a keyed hash of the id. It is in the
 * Message-ID, in the envelope and in the bounce address, so a report about the email holds it somewhere. It
 * is a capability: to know it, one must have seen the message or its envelope. Apps know ids, and no
 * references. The store makes and checks them.
 */
import type { EmailId } from '../id.ts'
import { type EmailAddress, readDomain } from '../request/email-address.ts'

declare const brand: unique symbol

/** 40 characters of the right shape; only the store can tell whether it is genuine. */
export type Reference = string & { readonly [brand]: 'Reference' }

/** Digits after the dot: 50 bits. */
export const referenceMacLength = 10
const idLength = 'em_'.length + 26
const referenceLength = idLength + 1 + referenceMacLength
const shape = /^em_[0-9a-hjkmnp-tv-z]{26}\.[0-9a-hjkmnp-tv-z]{10}$/

/** At most this many of a text are found. */
const foundMax = 20

/** The references in a text, in any case, each once. The work is bounded by the length of the text. */
export function findReferences(text: string): Reference[] {
  const lower = text.toLowerCase()
  const found = new Set<string>()
  for (let at = lower.indexOf('em_'); at >= 0 && found.size < foundMax; at = lower.indexOf('em_', at + 1)) {
    if (lower[at + idLength] !== '.') continue
    const candidate = lower.slice(at, at + referenceLength)
    if (shape.test(candidate)) found.add(candidate)
  }
  return [...found] as Reference[]
}

/** The id that a reference names. Only the store can tell whether the reference is genuine. */
export const namedEmail = (reference: Reference): EmailId => reference.slice(0, idLength) as EmailId

/** So that the reference and its `+` fit into the 64 octets of a local part. */
export const bounceLocalMax = 64 - 1 - referenceLength

/** Whether each email gets a bounce address of its own from this address: it ends in `+` before the @. */
export const isBounceBase = (address: string): boolean => address.includes('+@')

/** `bounces+em_….mac@acme.test`, of `bounces+@acme.test`. */
export const toBounceAddress = (base: EmailAddress, reference: Reference): EmailAddress =>
  `${readLocal(base)}+${reference}@${readDomain(base)}` as EmailAddress

/** Without the `+` at its end. */
const readLocal = (base: string): string => base.slice(0, base.lastIndexOf('@')).replace(/\+$/, '')

/** Whether a reference fits in front of the @. */
export const fitsReference = (base: string): boolean => readLocal(base).length <= bounceLocalMax
