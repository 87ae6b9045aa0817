/** Chooses the envelope sender (MAIL FROM), to which failures are reported (RFC 5321, section 4.4). */
import { isBounceBase } from '../delivery/reference.ts'
import type { EmailAddress } from '../request/email-address.ts'
import type { AppSettings } from './settings.ts'

export type Senders = {
  /** Used without a bounce address, and by relays that accept only senders they know. */
  readonly from: EmailAddress
  /** The bounce address: that of one email, or the one from which each email's is made. */
  readonly bounceTo: EmailAddress | null
}

/**
 * The senders of an app. An email's own bounce address is made of `bounceTo`: of the app's `envelopeFrom`, or
 * else of the service's. An `envelopeFrom` that takes no reference is used as it is.
 */
export function chooseSenders(
  settings: Pick<AppSettings, 'envelopeFrom' | 'from'>,
  bounceAddress: EmailAddress | null,
): Senders {
  const { envelopeFrom, from } = settings
  if (envelopeFrom !== undefined && !isBounceBase(envelopeFrom))
    return { from: envelopeFrom as EmailAddress, bounceTo: null }
  return { from: from.address as EmailAddress, bounceTo: findBounceAddress(settings, bounceAddress) }
}

/** Where reports about an app's emails go: to its own address, or else to that of the service. */
export const findBounceAddress = (
  { envelopeFrom }: Pick<AppSettings, 'envelopeFrom'>,
  bounceAddress: EmailAddress | null,
): EmailAddress | null => (envelopeFrom as EmailAddress | undefined) ?? bounceAddress

/** @param keepsSender whether the relay insists on a sender that it knows */
export const chooseEnvelopeSender = ({ from, bounceTo }: Senders, keepsSender: boolean): EmailAddress =>
  (keepsSender ? null : bounceTo) ?? from
