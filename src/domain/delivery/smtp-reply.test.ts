import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classifyFailure, parseReply, redactReply, type SmtpStage } from './smtp-reply.ts'

const verdict = (stage: SmtpStage, reply: string | null) => {
  const { class: kind, scope, slowDown, ambiguous } = classifyFailure({ stage, reply, fault: 'x' })
  return [kind, scope, slowDown ? 'slow' : '', ambiguous ? 'ambiguous' : ''].filter(Boolean).join(' ')
}

const cases: [SmtpStage, string | null, string][] = [
  ['envelope', '550 5.1.1 no such user', 'permanent message'],
  ['envelope', '550 no such user', 'permanent message'],
  ['data', '554 5.7.1 spam', 'permanent message'],
  ['final-dot', '552 5.3.4 too big', 'permanent message'],
  ['envelope', '450 4.2.0 greylisted', 'transient message'],
  ['envelope', '450 4.7.1 greylisted', 'transient message slow'],
  ['envelope', '451 4.3.0 later', 'transient message'],
  ['final-dot', '452 4.5.3 too many', 'transient message slow'],
  ['envelope', '421 4.3.2 closing', 'transient message slow'],
  ['connect', '421 too many connections', 'transient relay slow'],
  ['connect', '554 no service', 'transient relay'],
  ['envelope', '503 5.5.1 bad sequence', 'transient message'],
  ['envelope', '530 5.7.0 authenticate first', 'transient relay'],
  ['connect', '535 5.7.8 bad credentials', 'transient relay'],
  ['envelope', '534 5.7.9 mechanism', 'transient relay'],
  ['connect', null, 'transient relay'],
  ['envelope', null, 'transient message'],
  ['data', null, 'transient message'],
  ['final-dot', null, 'transient message ambiguous'],
  ['envelope', 'gibberish', 'transient message'],
  ['envelope', '999 what', 'transient message'],
  ['envelope', '250 ok', 'transient message'],
]

for (const [stage, reply, expected] of cases) {
  test(`${reply ?? 'no answer'} (${stage}): ${expected}`, () => assert.equal(verdict(stage, reply), expected))
}

test('codes are read from replies of one and of many lines', () => {
  assert.deepEqual(parseReply('550-5.1.1 no\n550 5.1.1 such user'), { code: 550, enhanced: '5.1.1' })
  assert.deepEqual(parseReply('250'), { code: 250, enhanced: null })
  assert.deepEqual(parseReply('2500 x'), { code: null, enhanced: null })
})

test('a recorded reply is one bounded line without addresses, links or tokens', () => {
  const reply = redactReply(
    '550 5.1.1 <Ada@Example.com>: see\r\nhttps://x.test/?token=abc token=def ada@xn--x.test',
  )
  assert.equal(reply, '550 5.1.1 <<address>>: see <link> <token> <address>')
  assert.equal(redactReply('x'.repeat(1_000_000)).length, 300)
  assert.doesNotMatch(redactReply(`${'a'.repeat(1995)}ada@example.com`), /@/)
})
