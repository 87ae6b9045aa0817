/**
 * How the events of each provider are read; how its calls prove themselves is in `domain/feedback/proofs.ts`.
 */
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
