/** Replies as providers and their users publish them, with the addresses replaced. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accountReplies, receiverReplies } from '../../../test/support/refusals.ts'
import type { EmailAddress } from '../request/email-address.ts'
import { blame, findNamed, readSlowDown } from './blame.ts'
import { parseReply } from './smtp-reply.ts'

const namedIn = (text: string) => findNamed(text, 'ada@example.com' as EmailAddress, ['auth@acme.test' as EmailAddress])
const scopeOf = (text: string, stage: Parameters<typeof blame>[0]['stage'] = 'handed-over') =>
  blame({ stage, reply: parseReply(text), named: namedIn(text), isRefused: text.startsWith('5') })

for (const text of accountReplies)
  test(`not the recipient’s: ${text}`, () => assert.notEqual(scopeOf(text, 'recipient'), 'message'))

for (const text of receiverReplies) {
  test(`the recipient’s: ${text}`, () => {
    for (const stage of ['recipient', 'handed-over'] as const) assert.equal(scopeOf(text, stage), 'message', stage)
    assert.equal(scopeOf(text, 'sender'), 'unclear')
  })
}

test('a reply that repeats the recipient’s address is about the recipient, unless it speaks of the account', () => {
  assert.equal(scopeOf('550 5.7.1 <ada@example.com>: Recipient address rejected: Access denied'), 'message')
  assert.equal(scopeOf('550 5.7.1 <eve@example.com>: Access denied'), 'unclear')
  assert.equal(scopeOf('554 5.7.1 <ada@example.com>: Relay access denied'), 'unclear')
  assert.equal(scopeOf('550 5.7.1 <ada@example.com>: Recipient address rejected: Sending quota exceeded'), 'unclear')
  assert.equal(scopeOf('451 4.3.0 <ada@example.com>: Temporary lookup failure'), 'unclear', 'nor if it is temporary')
})

test('of the domains in a reply, that of the recipient counts, and that of the sender does not', () => {
  assert.equal(scopeOf('550 Domain not found: example.com'), 'message')
  assert.equal(scopeOf('550 Domain not found: acme.test'), 'unclear')
  assert.equal(scopeOf('550 Domain not found'), 'unclear')
  const self = 'auth@acme.test' as EmailAddress
  assert.equal(findNamed('550 <AUTH@acme.test>: account locked', self, [self]), 'sender', 'an email to oneself')
})

test('a relay that asks for fewer connections, or fewer emails a second, is understood in any transient code', () => {
  const slowed: [string, ReturnType<typeof readSlowDown>][] = [
    ['432 4.3.2 Concurrent connections limit exceeded. Visit the help pages', 'connections'],
    ['432 slow', 'connections'],
    ['421 4.7.0 Too many concurrent SMTP connections', 'connections'],
    ['451 4.7.500 Server busy. Please try again later', 'rate'],
    ['454 Throttling failure: Maximum sending rate exceeded.', 'rate'],
    ['451 4.3.0 Rate limited', 'rate'],
    ['452 too many emails per second', 'rate'],
    ['450 4.7.1 Error: too much mail from 192.0.2.1', 'rate'],
    ['451 Server busy', 'rate'],
    ['450 frequency limited', 'rate'],
    ['421 4.7.0 Connection rate limit exceeded', 'rate'],
    ['451 Temporary local problem - please try later', null],
    ['451 could not connect to mx.example.com: Connection refused', null],
    ['450 4.4.1 no connection to recipient host, try later', null],
    ['452 4.3.4 message size exceeds limit', null],
    ['421 4.7.0 Too many messages sent on this connection; please reconnect', null],
    ['451 4.7.24 SPF validation error', null],
    ['454 4.7.0 TLS not available', null],
    ['451 4.7.1 temporarily deferred, try again in 00:04:59 (first contact)', null],
    ['451 4.3.0 Queue file write error', null],
    ['450 4.2.0 Greylisted, try again later', null],
    ['451 temporary failure', null],
  ]
  for (const [text, expected] of slowed) assert.equal(readSlowDown(parseReply(text)), expected, text)
})
