import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AppId, EmailId } from '../../domain/id.ts'
import { ClaimedEmails } from './claimed-emails.ts'

type Held = { claim: { emailId: EmailId; appId: AppId } }

/** `a1` is an email of the app `a`. */
const attempt = (name: string): Held => ({
  claim: { emailId: name as EmailId, appId: name.slice(0, 1) as AppId },
})
const holding = (...names: string[]): ClaimedEmails<Held> => {
  const inHand = new ClaimedEmails<Held>()
  inHand.add(names.map(attempt))
  return inHand
}
const names = (attempts: readonly (Held | undefined)[]) => attempts.map((each) => each?.claim.emailId)

test('apps take turns, also one that came last', () => {
  const inHand = holding('a1', 'a2', 'a3', 'c1', 'c2')
  assert.deepEqual(names([inHand.begin(9), inHand.begin(9), inHand.begin(9)]), ['a1', 'c1', 'a2'])
  inHand.add([attempt('b1')])
  assert.deepEqual(names([inHand.begin(9), inHand.begin(9), inHand.begin(9)]), ['b1', 'c2', 'a3'])
  assert.equal(inHand.begin(9), undefined)
})

test('no app has more under way than its share', () => {
  const inHand = holding('a1', 'a2', 'a3', 'b1')
  assert.deepEqual(names([inHand.begin(1), inHand.begin(1), inHand.begin(1)]), ['a1', 'b1', undefined])
  assert.deepEqual(names(inHand.ready(2)), ['a2', 'a3'])
  for (const each of inHand.all()) if (each.claim.emailId === 'a1') inHand.end(each)
  assert.deepEqual(names([inHand.begin(1)]), ['a2'], 'what is being stored takes no connection')
})

test('what is sent stays in hand until its outcome is on record', () => {
  const inHand = holding('a1', 'a2')
  const sent = inHand.begin(9)
  assert.ok(sent)
  inHand.end(sent)
  assert.deepEqual([inHand.active, inHand.storing, names(inHand.all())], [0, 1, ['a1', 'a2']])
  inHand.drop(sent)
  assert.deepEqual([inHand.storing, names(inHand.all())], [0, ['a2']])
})

test('a second attempt at one email is not taken for the first', () => {
  const inHand = holding('a1')
  const first = inHand.begin(9)
  inHand.add([attempt('a1')])
  const second = inHand.begin(9)
  assert.ok(first && second)
  inHand.end(first)
  inHand.drop(first)
  assert.deepEqual([inHand.active, inHand.all()], [1, [second]])
})

test('the app that has most is told by all that is in hand', () => {
  const inHand = holding('a1', 'b1', 'a2')
  assert.equal(inHand.mostOfOneApp(), 2)
  inHand.begin(9)
  assert.equal(inHand.mostOfOneApp(), 2)
  assert.equal(holding().mostOfOneApp(), 0)
})

test('what waits is given back or forgotten; what has begun is not', () => {
  const inHand = holding('a1', 'a2', 'b1', 'b2')
  inHand.begin(9)
  inHand.forget(['a1', 'b1'] as EmailId[])
  assert.deepEqual(names(inHand.all()), ['a1', 'a2', 'b2'])
  assert.deepEqual(names(inHand.release()), ['a2', 'b2'])
  assert.deepEqual(names(inHand.all()), ['a1'])
})
