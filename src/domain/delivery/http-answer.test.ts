import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeClockDifference } from './clock-difference.ts'
import { classifyAnswer, judgeStatus, toAcceptance, toReply, unanswered } from './http-answer.ts'
import { readRetryAfter } from './retry-after.ts'

const nowMs = Date.parse('2026-11-24T12:00:00Z')

test('a status says whose failure it is', () => {
  const expected: [number, string][] = [
    [200, 'ambiguous'],
    [299, 'ambiguous'],
    [302, 'account'],
    [400, 'refused'],
    [401, 'account'],
    [403, 'account'],
    [404, 'account'],
    [402, 'account'],
    [405, 'account'],
    [407, 'account'],
    [408, 'trouble'],
    [413, 'refused'],
    [421, 'trouble'],
    [425, 'trouble'],
    [426, 'account'],
    [422, 'refused'],
    [429, 'wait'],
    [500, 'trouble'],
    [502, 'ambiguous'],
    [503, 'wait'],
    [504, 'ambiguous'],
    [507, 'trouble'],
  ]
  for (const [status, kind] of expected) assert.equal(judgeStatus(status, true), kind, String(status))
})

test('an error that no provider describes is of a server on the way: no email ends for it', () => {
  for (const status of [400, 413, 422, 451]) assert.equal(judgeStatus(status, false), 'account', String(status))
  for (const status of [408, 429, 500, 502]) assert.equal(judgeStatus(status, false), judgeStatus(status, true))
})

test('each kind of failure is another class', () => {
  const answer = { status: 429, headers: { 'retry-after': '7' }, json: null }
  const flags = (kind: Parameters<typeof classifyAnswer>[0]) => {
    const failureClass = classifyAnswer(kind, answer, nowMs)
    const { permanent, scope, lasting, slowDown, retryAfterMs, ambiguous } = failureClass
    return [
      scope,
      ...Object.entries({ permanent, lasting, slowDown, ambiguous })
        .filter(([, on]) => on)
        .map(([name]) => name),
      retryAfterMs,
    ]
  }
  assert.deepEqual(flags('account'), ['relay', 'lasting', null])
  assert.deepEqual(flags('wait'), ['relay', 'slowDown', 7000])
  assert.deepEqual(flags('refused'), ['message', 'permanent', null])
  assert.deepEqual(flags('doubted'), ['unclear', 'permanent', null])
  assert.deepEqual(flags('deferred'), ['message', null])
  assert.deepEqual(flags('trouble'), ['unclear', null])
  assert.deepEqual(flags('ambiguous'), ['message', 'ambiguous', null])
  assert.equal(unanswered.ambiguous, true)
  assert.equal(classifyAnswer('wait', { ...answer, headers: {} }, nowMs).retryAfterMs, 1000)
})

test('Retry-After: seconds or a date, five minutes at most', () => {
  const expected: [string | null, number | null][] = [
    [null, null],
    ['', null],
    ['soon', null],
    ['0', 0],
    [' 30 ', 30_000],
    ['301', 300_000],
    ['9999999999', null],
    ['Tue, 24 Nov 2026 12:00:45 GMT', 45_000],
    ['Tue, 24 Nov 2026 11:00:00 GMT', 0],
    ['Wed, 25 Nov 2026 12:00:00 GMT', 300_000],
  ]
  for (const [header, waitMs] of expected) assert.equal(readRetryAfter(header, nowMs), waitMs, String(header))
})

test('a clock that differs by more than a minute is named, with the direction', () => {
  const at = (offsetMs: number) => new Date(nowMs - offsetMs).toUTCString()
  assert.equal(describeClockDifference(null, nowMs), '')
  assert.equal(describeClockDifference('nonsense', nowMs), '')
  assert.equal(describeClockDifference(at(60_000), nowMs), '')
  assert.equal(describeClockDifference(at(61 * 60_000), nowMs), '; the clock of this machine is 61 min ahead')
  assert.equal(describeClockDifference(at(-120_000), nowMs), '; the clock of this machine is 2 min behind')
})

const other = { kind: 'other' } as const

test('a reply holds status, code and text, and nothing that is secret', () => {
  const content = {
    to: 'ada@acme.com',
    url: 'https://acme.com/?token=abcdefghij',
    messageIdDomain: 'a',
  } as never
  const answer = { status: 403, headers: { date: new Date(nowMs - 3_600_000).toUTCString() }, json: null }
  const error = { code: 'Denied', text: 'key-123 may not send abcdefghij to ada@acme.com' }
  const reply = toReply(answer, {
    error,
    source: { kind: 'reply', email: content, secrets: ['key-123', ''] },
    nowMs,
  })
  assert.equal(reply.code, 403)
  assert.equal(
    reply.text,
    '403 Denied: <secret> may not send <token> to <address>; the clock of this machine is 60 min ahead',
  )
  const bare = { status: 500, headers: {}, json: null }
  assert.equal(toReply(bare, { error: { code: '', text: '' }, source: other, nowMs }).text, '500')
  const accepted = (status: number, id: string) => toAcceptance({ ...bare, status }, id, other).text
  assert.equal(accepted(202, ''), '202 accepted')
  const withCode = { kind: 'reply', email: { ...(content as object), code: 'AB-12' } }
  assert.equal(toAcceptance({ ...bare, status: 202 }, 'x-ab12', withCode as never).text, '202 accepted, id x-<code>')
  assert.equal(accepted(200, 'a'.repeat(200)), `200 accepted, id ${'a'.repeat(100)}`)
})

test('a refusal that a wrong clock explains says how far off the clock is, and no other does', () => {
  const date = new Date(nowMs - 3_600_000).toUTCString()
  const error = { code: 'x', text: 'no' }
  const reply = (status: number) =>
    toReply({ status, headers: { date }, json: null }, { error, source: other, nowMs }).text
  for (const status of [401, 403]) assert.notEqual(reply(status), `${status} x: no`)
  for (const status of [400, 422, 500]) assert.equal(reply(status), `${status} x: no`)
})
