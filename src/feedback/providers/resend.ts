/** Resend: one event a call, about the one recipient. The reference is in the headers that it repeats. */
import type { FailureCause } from '../../domain/delivery/failure-cause.ts'
import { toFields, toText } from '../../domain/feedback/json-fields.ts'
import { bounced, complained, confirmed, delayed, type ReadEvent, suppressed, unlessKnown } from './event.ts'

export const readResend: ReadEvent = ({ type, data }) => {
  const fields = toFields(data)
  const [recipient] = Array.isArray(fields.to) ? fields.to : []
  switch (type) {
    case 'email.delivered':
      return confirmed(recipient)
    case 'email.complained':
      return complained(recipient)
    case 'email.delivery_delayed':
      return delayed({ recipient })
    case 'email.bounced':
      return readBounce(toFields(fields.bounce), recipient)
    case 'email.suppressed': {
      const text = toFields(fields.suppressed).message
      return bounced({ recipient, text, permanent: true, correct: suppressed })
    }
    case 'email.failed':
      return bounced({ recipient, text: toFields(fields.failed).reason, permanent: true })
    default:
      return null
  }
}

/** Resend gives sentences of its own, without the reply of the server, and the kinds of Amazon SES. */
const causes: ReadonlyMap<string, FailureCause> = new Map([
  ['MailboxFull', 'mailbox_full'],
  ['ContentRejected', 'policy'],
  ['Suppressed', 'relay_suppressed'],
  ['OnAccountSuppressionList', 'relay_suppressed'],
])

function readBounce({ message: text, subType, type }: ReturnType<typeof toFields>, recipient: unknown) {
  const cause = causes.get(toText(subType)) ?? 'unknown'
  return bounced({ recipient, text, permanent: type === 'Permanent', correct: unlessKnown(cause) })
}
