/** Which address is the sender of an email's envelope: there go the reports of its failure (RFC 5321). */
import type { AppSettings } from '../app/settings.ts'
import type { EmailAddress } from '../request/email-address.ts'
import { isBounceBase } from './reference.ts'

export type Senders = {
  /** For relays that insist on a sender that they know. */
  readonly from: EmailAddress
  /** The bounce address, which is used in its place; null without one. */
  readonly bounceTo: EmailAddress | null
}

/**
 * The senders of an app. An email's own bounce address is made of `bounceTo`: of the app's `envelopeFrom`, or
 * else of the service's. An `envelopeFrom` that takes no reference is used as it is.
 */
export function chooseSenders(
  { envelopeFrom, from }: Pick<AppSettings, 'envelopeFrom' | 'from'>,
  bounceAddress: EmailAddress | null,
): Senders {
  const own = (envelopeFrom ?? null) as EmailAddress | null
  if (own !== null && !isBounceBase(own)) return { from: own, bounceTo: null }
  return { from: from.address as EmailAddress, bounceTo: own ?? bounceAddress }
}

/** @param keepsSender whether the relay insists on a sender that it knows */
export const chooseEnvelopeSender = ({ from, bounceTo }: Senders, keepsSender: boolean): EmailAddress =>
  (keepsSender ? null : bounceTo) ?? from
