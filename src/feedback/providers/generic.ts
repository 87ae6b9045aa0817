/**
 * A program of the operator's own, which reports in our words: `{reference, kind, recipient, reply, cause,
 * permanent}`. All but the first two may be left out.
 */
import { failureCauses } from '../../domain/delivery/failure-cause.ts'
import { bounced, complained, confirmed, delayed, type ReadEvent } from './event.ts'

export const readGeneric: ReadEvent = ({ kind, recipient, reply: text, cause, permanent }) => {
  const given = failureCauses.find((name) => name === cause)
  switch (kind) {
    case 'confirmed':
      return confirmed(recipient)
    case 'complained':
      return complained(recipient)
    case 'not_spam':
      return { ...complained(recipient), kind }
    case 'delayed':
      return delayed({ recipient, text })
    case 'bounced':
      return bounced({
        ...{ recipient, text, correct: (judged) => given ?? judged },
        ...(typeof permanent === 'boolean' && { permanent }),
      })
    default:
      return null
  }
}
