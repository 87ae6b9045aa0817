/** The event of a request that was answered: of an app, or of an auth server. */
import { refusals } from '../domain/request/rejection.ts'
import type { RequestAnswered } from '../observe/events.ts'
import type { AcceptAnswer } from './accept-email.ts'

type RequestFacts = Pick<RequestAnswered, 'requestId' | 'traceId' | 'tookMs' | 'source' | 'message'>

export function toRequestEvent(facts: RequestFacts, answer: AcceptAnswer): RequestAnswered {
  const common = {
    kind: 'request_answered',
    ...facts,
    appId: answer.caller?.appId ?? null,
    keyId: answer.caller?.keyId ?? null,
  } as const
  if (!('rejection' in answer)) {
    const { emailId } = answer
    if (answer.replayed) return { ...common, status: 202, code: 'replayed', emailId }
    const { language } = answer
    const asked = language === null ? 'none' : language.isKnown ? language.tag : 'unknown'
    return { ...common, status: 202, code: 'accepted', emailId, language: asked }
  }
  const { address, code, differs, issues = [], origin = null, recipient = null } = answer.rejection
  const faults = issues.map(({ field, code }) => `${field} ${code}`)
  if (address !== undefined) faults.push(`address ${address}`)
  if (differs != null) faults.push(`url ${differs}_differs`)
  return { ...common, status: refusals[code].status, code, issues: faults, origin, recipient }
}
