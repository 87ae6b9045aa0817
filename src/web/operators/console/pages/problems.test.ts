import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Condition, renderVerdict } from './problems.ts'

const condition = (kind: Condition['kind'], urgent: boolean): Condition => ({
  ...{ kind, urgent, message: '', apps: [], since: null, subject: null },
})

function verdictOn(attention: Condition[], isDev = false): readonly (string | undefined)[] {
  const queue = {
    ...{ depth: 1, max: 9, oldestAcceptedAt: null, oldestAgeSeconds: 0, nextAttemptAt: null },
    ...{ firstExpiresAt: null, states: { queued: 1, sending: 0, deferred: 0 }, apps: [], countedAt: '' },
  }
  const { text } = renderVerdict({ attention, lastHour: null, queue }, { isDev })
  return /verdict-line (\w+).*<h1>(.*)<\/h1>.*1 email waiting/.exec(text)?.slice(1) ?? []
}

test('the verdict names the worst condition, counts the others, and says when mail goes out again', () => {
  const [stop, late] = [
    { ...condition('no_relay', true), since: '2026-11-26T11:38:06.000Z' },
    condition('mail_late', true),
  ]
  const backlog = condition('mail_late', false)
  const key = condition('key_expires', false)
  for (const [attention, verdict] of [
    [[], ['good', 'Sending normally']],
    [[backlog], ['wait', 'Sending again']],
    [
      [backlog, key],
      ['wait', 'Sending, but 2 things need attention'],
    ],
    [[key], ['wait', 'Sending, but 1 thing needs attention']],
    [[late], ['bad', 'Mail is delayed']],
    [
      [stop, late, key],
      ['bad', 'Nothing has been delivered since 11:38:06Z, and 2 other things need attention'],
    ],
  ] as const)
    assert.deepEqual(verdictOn([...attention]), verdict)
  assert.deepEqual(verdictOn([], true), ['good', 'Capturing all mail'])
  assert.deepEqual(verdictOn([key], true), ['wait', 'Sending, but 1 thing needs attention'])
})
