/**
 * What a language gives: its direction, its words for the four emails, and how it writes a length
 * of time and a moment. Dates, plurals and numbers come from `Intl`.
 */
import type { Expiry, Letter } from '../emails/letter.ts'

type Words = Pick<Letter, 'subject' | 'preheader' | 'heading' | 'paragraphs' | 'button'> & {
  readonly ignore: string
}

export type Invitation = {
  readonly organisationName: string
  readonly inviterName?: string
  readonly plain: boolean
}

/** The page that a hosted link leads to. */
type HostedPageWords = {
  heading(app: string): string
  readonly intro: string
  open(app: string): string
  readonly leadsTo: string
  appMissing(app: string): string
  readonly fallback: string
  readonly expiredHeading: string
  expiredAdvice(app: string): string
  readonly unavailableHeading: string
  readonly unavailableAdvice: string
  readonly unknownHeading: string
  readonly unknownAdvice: string
}

export type Strings = {
  readonly direction: 'ltr' | 'rtl'
  magicLink(app: string): Words
  emailVerification(app: string): Words
  passwordReset(app: string): Words
  organisationInvite(app: string, invitation: Invitation): Words
  expires(expiry: Expiry): string
  readonly linkHint: string
  /** Before the host of a hosted link. */
  readonly opens: string
  readonly keepPrivate: string
  support(contact: string): string
  /** Rounded down to the largest fitting unit. */
  duration(ms: number): string
  /** In UTC. */
  moment(ms: number): string
  readonly hostedPage: HostedPageWords
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

// An email that leaves a moment after it was asked for should not say 14 minutes of 15.
const graceMs = 5 * second

/** The largest unit that tells the length fairly, and how many whole ones it has. */
export function wholeUnits(ms: number): { unit: 'minute' | 'hour' | 'day'; count: number } {
  const length = ms + graceMs
  if (length >= 2 * day) return { unit: 'day', count: Math.floor(length / day) }
  if (length >= hour) return { unit: 'hour', count: Math.floor(length / hour) }
  return { unit: 'minute', count: Math.floor(length / minute) }
}
