/** Where reports about emails go that a relay has taken. */
import { bounceLocalMax, fitsReference } from '../domain/delivery/reference.ts'
import { type EmailAddress, parseEmailAddress } from '../domain/request/email-address.ts'
import type { Reader } from './reader.ts'

export type FeedbackConfig = {
  /** Each email gets a bounce address of its own from it; null for none. */
  readonly bounceAddress: EmailAddress | null
}

export const readFeedback = (reader: Reader): FeedbackConfig => ({ bounceAddress: readBounceAddress(reader) })

function readBounceAddress({ fault, text }: Reader): EmailAddress | null {
  const name = 'POSTERN_BOUNCE_ADDRESS'
  const given = text(name, '')
  if (given === '') return null
  const address = parseEmailAddress(given, name)
  if (!address.ok) fault(`${name} must be an address such as bounces@bounce.example.com`)
  else if (!fitsReference(given)) fault(`${name}: at most ${bounceLocalMax} characters in front of the @`)
  return address.ok ? address.value : null
}
