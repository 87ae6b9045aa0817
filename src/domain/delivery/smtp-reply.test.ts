import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noReply, type Stage } from './reply.ts'
import { classifyFailure, parseReply } from './smtp-reply.ts'

const classOf = (stage: Stage, text: string | null, errorCode: string | null = null) => {
  const reply = text === null ? noReply('socket closed') : parseReply(text)
  const { permanent, scope, lasting, slowDown, ambiguous } = classifyFailure({ stage, reply, errorCode }, null)
  const flags = [lasting && 'lasting', slowDown, ambiguous && 'ambiguous']
  return [permanent ? 'permanent' : 'transient', scope, ...flags].filter(Boolean).join(' ')
}

const cases: [Stage, string | null, string][] = [
  ['recipient', '550 5.1.1 no such user', 'permanent message'],
  ['recipient', '550 no such user', 'permanent message'],
  ['sender', '550 5.1.1 no such user', 'permanent unclear'],
  ['handed-over', '554 5.7.1 spam', 'permanent unclear'],
  ['handed-over', '552 5.3.4 too big', 'permanent unclear'],
  ['recipient', '450 4.2.0 greylisted', 'transient message'],
  ['recipient', '450 4.7.1 greylisted', 'transient message'],
  ['recipient', '451 4.3.0 later', 'transient unclear'],
  ['handed-over', '452 4.5.3 too many', 'transient unclear rate'],
  ['recipient', '421 4.3.2 closing', 'transient unclear connections'],
  ['recipient', '450 4.7.1 wait', 'transient unclear connections'],
  ['recipient', '450 4.2.1 mail for this user comes at a rate', 'transient message'],
  ['connect', '421 too many connections', 'transient relay connections'],
  ['connect', '454 4.7.0 TLS not available', 'transient relay'],
  ['connect', '499 odd', 'transient relay'],
  ['connect', '500 odd', 'transient relay lasting'],
  ['connect', '599 odd', 'transient relay lasting'],
  ['connect', '600 odd', 'transient relay'],
  ['connect', '503 odd', 'transient relay'],
  ['connect', '554 no service', 'transient relay lasting'],
  ['recipient', '503 5.5.1 bad sequence', 'transient unclear'],
  ['recipient', '530 5.7.0 authenticate first', 'transient relay lasting'],
  ['connect', '535 5.7.8 bad credentials', 'transient relay lasting'],
  ['recipient', '534 5.7.9 mechanism', 'transient relay lasting'],
  ['recipient', '538 5.7.11 encryption', 'transient relay lasting'],
  ['connect', '421-4.7.0 Try again later, closing connection. (EHLO)', 'transient relay rate'],
  ['recipient', '550 5.7.1 <box>: Helo command rejected: Host not found', 'transient relay lasting'],
  ['recipient', '450 4.7.1 <box>: Helo command rejected: Host not found', 'transient relay connections'],
  ['recipient', '504 5.5.2 <box>: Helo command rejected: need a host name', 'transient relay lasting'],
  ['recipient', '501 5.7.1 bogus HELO name used: box', 'transient relay lasting'],
  ['recipient', '550 5.7.1 your ehlo is no valid name', 'transient relay lasting'],
  ['handed-over', '550 5.7.1 its EHLO is wrong', 'permanent unclear'],
  ['recipient', '550 5.1.1 no mailbox heloise', 'permanent message'],
  ['recipient', '550 5.1.2 Host helo.com not found', 'permanent message'],
  ['recipient', '550 5.1.2 no route to mail.helo.example', 'permanent message'],
  ['recipient', '550 host mx.example.net said: 550 bad HELO', 'permanent unclear'],
  ['recipient', '550 Callback to mx.example.net: HELO refused', 'permanent unclear'],
  ['recipient', '450 4.1.1 <a@b.test>: unverified address: host mx said: 550 HELO bad', 'transient message'],
  ['recipient', '550-Callback setup failed while verifying. The initial connection, or a HELO', 'permanent unclear'],
  ['recipient', '550 SPF fail: helo=relay.example; identity=mailfrom', 'permanent unclear'],
  ['recipient', '550 5.7.1 rejected, helo=mx.evil.test', 'permanent unclear'],
  ['connect', null, 'transient relay'],
  ['sender', null, 'transient unclear'],
  ['recipient', null, 'transient unclear'],
  ['handed-over', null, 'transient message ambiguous'],
  ['recipient', 'gibberish', 'transient unclear'],
  ['recipient', '999 what', 'transient unclear'],
  ['recipient', '250 ok', 'transient unclear'],
]

for (const [stage, reply, expected] of cases) {
  test(`${reply ?? 'no answer'} (${stage}): ${expected}`, () => assert.equal(classOf(stage, reply), expected))
}

test('without a reply, a fault of TLS or login is lasting only while connecting', () => {
  for (const errorCode of ['ETLS', 'EAUTH']) {
    assert.equal(classOf('connect', null, errorCode), 'transient relay lasting')
    assert.equal(classOf('recipient', null, errorCode), 'transient unclear')
    assert.equal(classOf('connect', '454 4.3.0 later', errorCode), 'transient relay')
  }
  assert.equal(classOf('connect', null, 'ESOCKET'), 'transient relay')
  const reply = noReply('self-signed Certificate')
  assert.equal(classifyFailure({ stage: 'connect', reply, errorCode: 'ESOCKET' }, null).lasting, true)
})

test('codes are read from replies of one and of many lines', () => {
  const codes = (text: string) => {
    const { code, enhanced } = parseReply(text)
    return [code, enhanced]
  }
  assert.deepEqual(codes('550-5.1.1 no\n550 5.1.1 such user'), [550, '5.1.1'])
  assert.deepEqual(codes('550 5.1.10'), [550, '5.1.10'])
  assert.deepEqual(codes('550 5.7.123 no'), [550, '5.7.123'])
  assert.deepEqual(codes('550 5.7.1234 no'), [550, null])
  assert.deepEqual(codes('550 15.1.1 no'), [550, null])
  assert.deepEqual(codes('550 5.1234.1 no'), [550, null])
  assert.deepEqual(codes('550 no 5.1.1'), [550, null])
  assert.deepEqual(codes('250'), [250, null])
  assert.deepEqual(codes('2500 x'), [null, null])
  assert.deepEqual(codes('x 250 ok'), [null, null])
})

test('a recorded reply is one bounded line without addresses, links or tokens', () => {
  const { text } = parseReply('550 5.1.1 <Ada@Example.com>: see\r\nhttps://x.test/?token=abc token=def ada@xn--x.test')
  assert.equal(text, '550 5.1.1 <address>: see <link> <token> <address>')
  assert.equal(parseReply('see ACME+x://y?TOKEN=z TOKEN=z').text, 'see <link> <token>')
  assert.equal(parseReply('x'.repeat(1_000_000)).text.length, 300)
  assert.doesNotMatch(parseReply(`${'a'.repeat(1995)}ada@example.com`).text, /@/)
  assert.equal(parseReply(`550${' '.repeat(1990)}${'b'.repeat(99)}`).text, '550 ', 'a cut word is left out')
})

test('of a long reply, only the beginning is read', () => {
  const invisible = '\u200b'.repeat(5000)
  assert.equal(parseReply(`550 no such user ${invisible} and more`).text, '550 no such user ')
})
