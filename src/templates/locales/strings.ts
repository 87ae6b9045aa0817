/**
 * The texts of one language: its direction, its words for the four emails and the hosted pages, and
 * how it writes durations and dates. Dates, plurals and numbers come from `Intl`.
 */
import type { EmailType } from '../../domain/request/email-request.ts'
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
  heading(type: EmailType, app: string): string
  readonly intro: string
  open(app: string): string
  readonly leadsTo: string
  /** Beside the scheme of a mobile app. */
  opensApp(app: string): string
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
  /** Rounded down to the largest unit that fits. */
  duration(ms: number): string
  /** In UTC. */
  dateTime(ms: number): string
  readonly hostedPage: HostedPageWords
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

// An email that is sent seconds after its request should say 15 minutes, not 14.
const graceMs = 5 * second

/**
 * A length of time in whole units: days from 2 days on, hours from 2 hours on, else minutes: 95 minutes are
 * not called an hour. An hour itself is one.
 */
export function wholeUnits(ms: number): { unit: 'minute' | 'hour' | 'day'; count: number } {
  const length = ms + graceMs
  const minutes = Math.floor(length / minute)
  if (length >= 2 * day) return { unit: 'day', count: Math.floor(length / day) }
  if (length >= 2 * hour || minutes === 60) return { unit: 'hour', count: Math.floor(length / hour) }
  return { unit: 'minute', count: minutes }
}
