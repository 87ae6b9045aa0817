import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AppId, EmailId } from '../../domain/id.ts'
import { ClaimedEmails } from './claimed-emails.ts'

type Held = { claim: { emailId: EmailId; fence: number; appId: AppId } }

/** `a1` is an email of the app `a`. */
const attempt = (name: string, fence = 1): Held => ({
  claim: { emailId: name as EmailId, fence, appId: name.slice(0, 1) as AppId },
})
const holding = (...names: string[]): ClaimedEmails<Held> => {
  const claimed = new ClaimedEmails<Held>()
  claimed.add(names.map((name) => attempt(name)))
  return claimed
}
const names = (attempts: readonly (Held | undefined)[]) => attempts.map((each) => each?.claim.emailId)

test('apps take turns, also one that came last', () => {
  const claimed = holding('a1', 'a2', 'a3', 'c1', 'c2')
  assert.deepEqual(names([claimed.begin(9), claimed.begin(9), claimed.begin(9)]), ['a1', 'c1', 'a2'])
  claimed.add([attempt('b1')])
  assert.deepEqual(names([claimed.begin(9), claimed.begin(9), claimed.begin(9)]), ['b1', 'c2', 'a3'])
  assert.equal(claimed.begin(9), undefined)
})

test('no app has more under way than its share', () => {
  const claimed = holding('a1', 'a2', 'a3', 'b1')
  assert.deepEqual(names([claimed.begin(1), claimed.begin(1), claimed.begin(1)]), ['a1', 'b1', undefined])
  assert.deepEqual(names(claimed.ready(2)), ['a2', 'a3'])
  for (const each of claimed.all()) if (each.claim.emailId === 'a1') claimed.markStoring(each)
  assert.deepEqual(names([claimed.begin(1)]), ['a2'], 'what is being stored takes no connection')
})

test('emails that hang do not use up the share of their app, and other apps come first', (t) => {
  let nowMs = 1_000_000
  t.mock.method(performance, 'now', () => nowMs)
  const claimed = holding('a1', 'a2', 'a3')
  assert.deepEqual(names([claimed.begin(1), claimed.begin(1)]), ['a1', undefined])
  nowMs += 31_000
  claimed.add([attempt('b1')])
  assert.deepEqual(names([claimed.begin(1), claimed.begin(1), claimed.begin(1)]), ['b1', 'a2', undefined])
})

test('a sent email stays claimed until its outcome is on record', () => {
  const claimed = holding('a1', 'a2')
  const sent = claimed.begin(9)
  assert.ok(sent)
  claimed.markStoring(sent)
  assert.deepEqual([claimed.sending, claimed.storing, names(claimed.all())], [0, 1, ['a1', 'a2']])
  claimed.remove(sent)
  assert.deepEqual([claimed.storing, names(claimed.all())], [0, ['a2']])
})

test('a second attempt at one email is not taken for the first', () => {
  const claimed = holding('a1')
  const first = claimed.begin(9)
  claimed.add([attempt('a1')])
  const second = claimed.begin(9)
  assert.ok(first && second)
  claimed.markStoring(first)
  claimed.remove(first)
  assert.deepEqual([claimed.sending, claimed.all()], [1, [second]])
})

test('the app with the most claimed emails counts the ones being sent as well', () => {
  const claimed = holding('a1', 'b1', 'a2')
  assert.equal(claimed.mostOfOneApp(), 2)
  claimed.begin(9)
  assert.equal(claimed.mostOfOneApp(), 2)
  assert.equal(holding().mostOfOneApp(), 0)
})

test('a lost lease removes its own attempt, and not a newer one at the same email', () => {
  const claimed = holding('a1')
  assert.ok(claimed.begin(9))
  claimed.add([attempt('a1', 3)])
  claimed.removeWaiting([attempt('a1', 1).claim])
  assert.deepEqual(
    claimed.all().map(({ claim }) => claim.fence),
    [1, 3],
  )
  claimed.removeWaiting([attempt('a1', 3).claim])
  assert.equal(claimed.all().length, 1)
})

test('waiting emails are given back or removed; those that have begun are not', () => {
  const claimed = holding('a1', 'a2', 'b1', 'b2')
  claimed.begin(9)
  claimed.removeWaiting([attempt('a1').claim, attempt('b1').claim])
  assert.deepEqual(names(claimed.all()), ['a1', 'a2', 'b2'])
  assert.deepEqual(names(claimed.release()), ['a2', 'b2'])
  assert.deepEqual(names(claimed.all()), ['a1'])
})
