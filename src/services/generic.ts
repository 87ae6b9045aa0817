/**
 * A program of the operator's own, which reports in our words: `{reference, kind, recipient, reply, cause,
 * permanent}`. All but the first two may be left out.
 */
import { failureCauses } from '../domain/delivery/failure-cause.ts'
import type { JsonFields } from '../services/json-fields.ts'
import { basic } from './event-proof.ts'
import type { MailService } from './service.ts'
import { bounced, describeEvent, type Meanings } from './service-event.ts'

function readEvent({ kind, recipient, reply: text, cause, permanent }: JsonFields) {
  const given = failureCauses.find((name) => name === cause)
  const failed = bounced(typeof permanent === 'boolean' ? permanent : undefined, (judged) => given ?? judged)
  const meanings: Meanings = {
    confirmed: 'confirmed',
    complained: 'complained',
    not_spam: 'not_spam',
    delayed: 'delayed',
    bounced: failed,
  }
  return describeEvent(meanings, kind, { recipient, text })
}

export const generic: MailService = {
  name: 'generic',
  title: 'a webhook',
  events: { proof: basic, read: readEvent },
}
