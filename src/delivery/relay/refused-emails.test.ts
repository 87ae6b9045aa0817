import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EmailId } from '../../domain/id.ts'
import { RefusedEmails } from './refused-emails.ts'

const [a, b] = ['em_a', 'em_b'] as [EmailId, EmailId]

test('a refusal is meant for the email once the relay has accepted another since the first one', () => {
  const emails = new RefusedEmails()
  emails.accepted(0)
  assert.deepEqual([emails.refused(a, 1), emails.refused(a, 2)], [false, false])
  emails.accepted(3)
  assert.deepEqual([emails.refused(a, 4), emails.refused(b, 4)], [true, false])
})

test('a relay that has taken mail lately, and refuses one email alone, is believed after a minute', () => {
  const emails = new RefusedEmails()
  emails.accepted(0)
  const times = [1, 60_000, 60_001, 300_000].map((nowMs) => emails.refused(a, nowMs))
  assert.deepEqual(times, [false, false, true, false])
})

test('a relay that refuses several emails since it took one is not believed', () => {
  const emails = new RefusedEmails()
  emails.accepted(0)
  const times = [1, 2, 60_002].flatMap((nowMs) => [emails.refused(a, nowMs), emails.refused(b, nowMs)])
  assert.equal(times.includes(true), false)
  emails.accepted(60_003)
  emails.refused('em_c' as EmailId, 60_004)
  assert.equal(emails.refused('em_c' as EmailId, 120_004), true, 'those from before do not count')
})

test('a relay that has never taken an email is not believed', () => {
  const emails = new RefusedEmails()
  assert.equal([1, 2, 3, 4].map((nowMs) => emails.refused(a, nowMs)).includes(true), false)
})

test('of many refused emails, the oldest are forgotten', () => {
  const emails = new RefusedEmails()
  emails.refused(a, 0)
  for (let n = 0; n < 10_000; n++) emails.refused(`em_${n}` as EmailId, 1)
  emails.accepted(2)
  assert.deepEqual([emails.refused(a, 3), emails.refused('em_9999' as EmailId, 3)], [false, true])
})
