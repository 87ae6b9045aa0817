/** The providers that report by webhooks, and how each is read. `domain/feedback/proofs.ts` has how it proves itself. */
import type { FeedbackProvider } from '../../domain/delivery/feedback.ts'
import { readBrevo } from './brevo.ts'
import type { ReadEvent } from './event.ts'
import { readGeneric } from './generic.ts'
import { readMailgun } from './mailgun.ts'
import { readPostmark } from './postmark.ts'
import { readResend } from './resend.ts'
import { readSendGrid } from './sendgrid.ts'

export const eventReaders: Readonly<Record<FeedbackProvider, ReadEvent>> = {
  postmark: readPostmark,
  resend: readResend,
  sendgrid: readSendGrid,
  mailgun: readMailgun,
  brevo: readBrevo,
  generic: readGeneric,
}
