import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classifyFailure, parseReply } from '../domain/delivery/smtp-reply.ts'
import { findSmtpService } from './services.ts'

test('refusals of our account are the relay’s at the hosts that send them, and unclear elsewhere', () => {
  const refusalOf = (host: string) => findSmtpService(host)?.smtp.accountRefusal ?? null
  const refusals: [host: string, reply: string][] = [
    ['smtp.gmail.com', '550 5.4.5 Daily user sending limit exceeded'],
    ['smtp-relay.gmail.com', '550 5.7.1 Daily SMTP relay limit exceeded for customer'],
    ['smtp.office365.com', '554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException'],
    ['smtp.office365.com', '550 5.7.705 Access denied, tenant has exceeded threshold'],
  ]
  for (const [host, text] of refusals) {
    const failure = { stage: 'handed-over', reply: parseReply(text), errorCode: null } as const
    const own = classifyFailure(failure, refusalOf(host))
    assert.deepEqual([own.scope, own.lasting, own.permanent], ['relay', true, false], text)
    const other = classifyFailure(failure, refusalOf('mx.acme.com'))
    assert.deepEqual([other.scope, other.lasting, other.permanent], ['unclear', false, true], text)
  }
  const google = { stage: 'recipient', reply: parseReply('550 5.4.5 x'), errorCode: null } as const
  assert.equal(classifyFailure(google, refusalOf('smtp.office365.com')).scope, 'unclear')
  const user = { stage: 'recipient', reply: parseReply('550 5.1.1 no such user'), errorCode: null } as const
  assert.equal(classifyFailure(user, refusalOf('smtp.gmail.com')).scope, 'message')
})
