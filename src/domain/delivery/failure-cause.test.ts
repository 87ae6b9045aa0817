import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causeOf, type FailureCause } from './failure-cause.ts'
import { noReply } from './reply.ts'
import { parseReply } from './smtp-reply.ts'

const causesOf = (...codes: string[]) => codes.map((code) => causeOf(parseReply(`550 ${code} x`)))

test('the cause of a refusal comes from its enhanced code', () => {
  assert.deepEqual(
    causesOf('5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1', '5.7.13', '5.7.17', '5.7.18', '4.1.1'),
    Array(10).fill('no_mailbox'),
  )
  assert.deepEqual(causesOf('5.1.351', '5.1.35'), ['no_mailbox', 'unknown'])
  assert.deepEqual(causesOf('5.2.2', '4.2.2', '5.2.20'), ['mailbox_full', 'mailbox_full', 'unknown'])
  assert.deepEqual(causesOf('5.7.1', '4.7.26', '5.7.133', '5.7.0', '5.5.3'), Array(5).fill('policy'))
  assert.deepEqual(causesOf('4.4.1', '5.4.4', '5.4.0'), Array(3).fill('unreachable'))
  assert.deepEqual(
    causesOf('5.1.0', '5.1.7', '5.1.8', '5.1.11', '5.2.3', '2.1.1', '5.2.11', '5.3.4'),
    Array(8).fill('unknown'),
  )
  assert.equal(causeOf(noReply('no answer, host unknown')), 'unknown')
  assert.equal(causeOf(parseReply('550 no 5.1.1')), 'unknown')
})

test('words name the cause where no code does, or one that says nothing; they correct a code for gone', () => {
  const replies: readonly (readonly [reply: string, cause: FailureCause])[] = [
    ['550 5.1.1 1.2.3.4 has sent to too many recipients this hour', 'policy'],
    ['550 5.1.1 Refused due to recipient preferences', 'policy'],
    ['450 4.2.1 The user you are trying to contact is receiving mail at a rate that', 'policy'],
    ['550 5.1.1 User unknown; policy', 'policy'],
    ['552 5.1.1 mailbox ada@example.com is over quota temporarily', 'mailbox_full'],
    ['550 5.1.2 domain lookup failed: name server did not answer', 'unreachable'],
    ['550 5.1.1 <spam@example.com>: user unknown', 'no_mailbox'],
    ['550 5.5.0 Requested action not taken: mailbox unavailable', 'no_mailbox'],
    ['550 5.5.0 Adresse destinataire invalide. Invalid recipient.', 'no_mailbox'],
    ['550 5.5.0 The recipient account is blocked.', 'unknown'],
    ['550 5.4.1 Recipient address rejected: Access denied.', 'no_mailbox'],
    ['541 5.4.1 Mail rejected by destination domain', 'unreachable'],
    ['550 Unknown user', 'no_mailbox'],
    ["554 delivery error: dd This user doesn't have a example.com account", 'no_mailbox'],
    ['550 Mailbox is full', 'mailbox_full'],
    ['552 sorry, that mailbox has exceeded its quota', 'mailbox_full'],
    ['550 DMARC check failed.', 'policy'],
    ['550 Ip frequency limited', 'policy'],
    ['550 Host unknown', 'unreachable'],
    ['554 5.7.1 user unknown', 'policy'],
    ['550 5.3.4 user unknown', 'unknown'],
    ['554 Service currently unavailable', 'unknown'],
    ['422 406: You tried to send to a recipient that has been marked as inactive.', 'relay_suppressed'],
    ['550 5.1.1 Amazon SES has suppressed sending to this address', 'relay_suppressed'],
    ['The address is on the suppression list', 'relay_suppressed'],
  ]
  for (const [reply, cause] of replies) assert.equal(causeOf(parseReply(reply)), cause, reply)
})

test('the code that a server said counts more than the field Status, unless it is vague', () => {
  const cause = (reply: string, status: string) => causeOf(parseReply(reply), status)
  assert.equal(cause('550 5.1.1 x', '5.0.0'), 'no_mailbox')
  assert.equal(cause('550 5.7.1 x', '5.1.1'), 'policy')
  assert.equal(cause('550 5.0.0 x', '5.1.1'), 'no_mailbox')
  assert.equal(cause('550 x', '5.2.2'), 'mailbox_full')
  assert.equal(cause('550 5.7.0 x', '5.0.0'), 'policy')
  assert.equal(cause('550 5.2.0 x', '5.7.0'), 'unknown')
  assert.equal(causeOf(noReply('user unknown'), '5.0.0'), 'no_mailbox')
  assert.equal(causeOf(noReply('user unknown'), null), 'unknown')
})

test('a server that gave up because of the time says so in the code 4.7 or in words', () => {
  const replies = [
    '550 5.4.7 delivery time expired',
    '550 4.4.7 QUEUE.Expired; message expired',
    '550 5.4.7 [internal] exceeded max time without delivery',
    '550 4.4.7 Message expired: unable to deliver in 5 minutes.<421 4.4.0 Unable to lookup DNS for example.com>',
    '554 5.0.0 message expired',
    '550 Delivery time expired',
    '550 retry timeout exceeded',
    '554 5.0.0 Message is too old',
  ]
  for (const reply of replies) assert.equal(causeOf(parseReply(reply)), 'expired_at_relay', reply)
  const busy = '451 4.2.1 busy'
  assert.equal(causeOf(parseReply(busy), '5.4.7'), 'expired_at_relay', 'the reply quoted is that of the last attempt')
  assert.equal(causeOf(parseReply('550 5.1.1 nobody'), '5.4.7'), 'no_mailbox')
  const others: readonly (readonly [string, FailureCause])[] = [
    ['554 5.4.7 Server does not support Deliver By', 'expired_at_relay'],
    ["554 5.4.7 Message can't be delivered in time; 30 < 60", 'expired_at_relay'],
    ['554 5.0.0 TLS: certificate has expired', 'unknown'],
    ['550 5.1.1 account expired', 'no_mailbox'],
    ['550 the mailbox has expired', 'no_mailbox'],
  ]
  for (const [reply, cause] of others) assert.equal(causeOf(parseReply(reply)), cause, reply)
})

test('the name in an address is no word of the server', () => {
  const text = '550 5.1.1 <spam@example.com>: user unknown'
  assert.equal(causeOf({ code: 550, enhanced: '5.1.1', text }), 'no_mailbox')
})

test('words are looked for in the beginning of a text', () => {
  const text = `550 ${'x'.repeat(1000)} user unknown`
  assert.equal(causeOf({ code: 550, enhanced: null, text }), 'unknown')
})
