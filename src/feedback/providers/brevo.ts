/** Brevo: one event a call, or several. The reference is in a header of ours, which it repeats. */
import { bounced, complained, confirmed, delayed, type ReadEvent, suppressed } from './event.ts'

export const readBrevo: ReadEvent = ({ event, email: recipient, reason: text }) => {
  switch (event) {
    case 'delivered':
      return confirmed(recipient)
    case 'spam':
    case 'complaint':
      return complained(recipient)
    // Brevo says so of replies such as 550 5.1.1, too.
    case 'deferred':
      return delayed({ recipient, text })
    case 'hard_bounce':
    case 'invalid_email':
      return bounced({ recipient, text, permanent: true })
    case 'soft_bounce':
      return bounced({ recipient, text, permanent: false })
    case 'blocked':
      return bounced({ recipient, text, permanent: true, correct: suppressed })
    default:
      return null
  }
}
