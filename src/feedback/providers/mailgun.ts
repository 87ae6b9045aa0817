/** Mailgun: one event a call. The reference is in the Message-ID, which it keeps. */
import { toFields, toText } from '../../domain/feedback/json-fields.ts'
import { bounced, complained, confirmed, delayed, type ReadEvent, suppressed } from './event.ts'

export const readMailgun: ReadEvent = (body) => {
  const { event, reason, recipient, severity, ...others } = toFields(body['event-data'])
  const { code, description, message } = toFields(others['delivery-status'])
  const text = `${toText(code)} ${toText(message) || toText(description)}`.trim()
  switch (event) {
    case 'delivered':
      return confirmed(recipient)
    case 'complained':
      return complained(recipient)
    case 'failed':
      if (severity === 'temporary') return delayed({ recipient, text })
      return bounced({
        ...{ recipient, text, permanent: severity === 'permanent' },
        ...(toText(reason).startsWith('suppress-') && { correct: suppressed }),
      })
    default:
      return null
  }
}
