/** Brevo (developers.brevo.com). */
import { basic } from './event-proof.ts'
import type { MailService } from './service.ts'
import { bounced, describeEvent, type Meanings, suppressed } from './service-event.ts'

const meanings: Meanings = {
  delivered: 'confirmed',
  spam: 'complained',
  complaint: 'complained',
  deferred: 'delayed', // also for replies such as 550 5.1.1
  hard_bounce: bounced(true),
  invalid_email: bounced(true),
  soft_bounce: bounced(false),
  blocked: bounced(true, suppressed),
}

export const brevo: MailService = {
  name: 'brevo',
  title: 'Brevo',
  smtp: {
    hosts: ['smtp-relay.brevo.com'],
    traits: { rewrites: 'dates', envelope: 'relay', include: null },
    referenceHeader: (reference) => `X-Mailin-custom: ${reference}`,
  },
  events: {
    proof: basic,
    /** One event a call, or several. The reference is in a header of ours, which it repeats. */
    read: ({ event, email: recipient, reason: text }) => describeEvent(meanings, event, { recipient, text }),
  },
}
