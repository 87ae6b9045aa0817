/** SendGrid: many events a call. The reference is in a field of its own, which `unique_args` made. */
import { blocked, bounced, complained, confirmed, delayed, type ReadEvent, suppressed } from './event.ts'

export const readSendGrid: ReadEvent = ({ event, type, email: recipient, reason, response, status }) => {
  switch (event) {
    case 'delivered':
      return confirmed(recipient)
    case 'spamreport':
      return complained(recipient)
    case 'deferred':
      return delayed({ recipient, text: response ?? reason, status })
    case 'bounce':
      return bounced({
        ...{ recipient, text: reason, status, permanent: type === 'bounce' },
        ...(type === 'blocked' && { correct: blocked }),
      })
    case 'dropped':
      return bounced({ recipient, text: reason, permanent: true, correct: suppressed })
    default:
      return null
  }
}
