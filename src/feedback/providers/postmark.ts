/** Postmark: one event a call. It returns no headers; the reference is in the metadata. */
import { toText } from '../../domain/feedback/json-fields.ts'
import {
  blocked,
  bounced,
  complained,
  confirmed,
  delayed,
  type ReadEvent,
  suppressed,
  unlessKnown,
} from './event.ts'

export const readPostmark: ReadEvent = (event) => {
  switch (event.RecordType) {
    case 'Delivery':
      return confirmed(event.Recipient)
    case 'SpamComplaint':
      return complained(event.Email)
    case 'Bounce':
      return readBounce(event)
    default:
      return null
  }
}

/** Other types say nothing certain about a delivery. */
const readBounce: ReadEvent = ({ Type, Email: recipient, Details, Description }) => {
  const said = { recipient, text: toText(Details) || Description }
  switch (Type) {
    case 'HardBounce':
    case 'BadEmailAddress':
      return bounced({ ...said, permanent: true, correct: unlessKnown('no_mailbox') })
    case 'SoftBounce':
      return bounced({ ...said, permanent: false })
    // By SMTP, Postmark takes an email before it refuses it, also for a recipient on its own list.
    case 'SMTPApiError':
      return bounced({ ...said, permanent: true })
    case 'Blocked':
    case 'DMARCPolicy':
    case 'SpamNotification':
    case 'VirusNotification':
      return bounced({ ...said, permanent: true, correct: blocked })
    case 'ManuallyDeactivated':
      return bounced({ ...said, permanent: true, correct: suppressed })
    case 'Transient':
    case 'DnsError':
      return delayed(said)
    default:
      return null
  }
}
