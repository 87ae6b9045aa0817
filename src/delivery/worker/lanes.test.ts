import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newTestRelay, relayTo } from '../../../test/support/service.ts'
import type { Claim } from '../../store/store.ts'
import type { Relay } from '../relay/relay.ts'
import type { Transport } from '../transport.ts'
import { Lanes, longestWaitMs } from './lanes.ts'

const newTransport = (name: string | null, relays: readonly Relay[] = [newTestRelay(relayTo(1))]): Transport => ({
  name,
  relays,
  signing: null,
})

/** The names of the lanes that are asked, one after another, until none is left. */
function* rounds(lanes: Lanes): Generator<string | null> {
  for (let lane = lanes.next(); lane !== null; lane = lanes.next()) {
    yield lane.transport.name
    lanes.noteClaim(lane, { count: 0, elsewhere: [], more: false })
  }
}
const askAll = (lanes: Lanes) => [...rounds(lanes)]

const askAllOf = (lanes: Lanes) => {
  const asked = []
  for (let lane = lanes.next(); lane !== null; lane = lanes.next()) asked.push(lane)
  return asked
}

test('a round asks one lane, those whose mail its claim saw, each once, and those that may have more', () => {
  const lanes = new Lanes()
  lanes.set([newTransport(null), newTransport('a'), newTransport('b')])
  lanes.beginRound()
  const first = lanes.next()
  assert.ok(first !== null)
  const others = [null, 'a', 'b'].filter((name) => name !== first.transport.name)
  lanes.noteClaim(first, { count: 3, elsewhere: [...others, 'unknown here'], more: true })
  const second = lanes.next()
  assert.ok(second !== null)
  lanes.noteClaim(second, { count: 0, elsewhere: [null, 'a', 'b'], more: false })
  const third = lanes.next()
  assert.ok(third !== null)
  lanes.noteClaim(third, { count: 0, elsewhere: [null, 'a', 'b'], more: false })
  assert.deepEqual(new Set([second, third].map(({ transport }) => transport.name)), new Set(others))
  assert.deepEqual(askAll(lanes), [first.transport.name], 'it had more')
  lanes.beginRound()
  assert.equal(askAll(lanes).length, 1)
})

test('each lane is the first in its turn, so that mail which no claim sees is found', (t) => {
  const lanes = new Lanes()
  lanes.set([newTransport(null), newTransport('a'), newTransport('b')])
  let aheadMs = 0
  const now = performance.now
  t.mock.method(performance, 'now', () => now.call(performance) + aheadMs)
  const first = new Set<string | null>()
  for (let n = 0; n < 3; n++) {
    aheadMs += 250
    lanes.beginRound()
    for (const name of askAll(lanes)) first.add(name)
  }
  assert.equal(first.size, 3)
})

test('mail that came since a lane was asked is asked for again, unless the lane cannot take it', (t) => {
  const lanes = new Lanes()
  lanes.set([newTransport(null), newTransport('a')])
  lanes.next() // the turn of one of them
  lanes.beginRound()
  let aheadMs = 0
  const now = performance.now
  t.mock.method(performance, 'now', () => now.call(performance) + aheadMs)
  const [busy, other] = lanes.all()
  assert.ok(busy !== undefined && other !== undefined)
  const askedFor = (lane: typeof busy) => [...new Set(askAllOf(lanes))].includes(lane)
  const sees = { count: 9, elsewhere: ['a'], more: true }
  lanes.noteClaim(busy, sees)
  askAll(lanes)
  lanes.noteClaim(other, { count: 1, elsewhere: [], more: false })
  lanes.noteClaim(busy, sees)
  assert.ok(askedFor(other), 'its last claim found mail')
  lanes.noteClaim(other, { count: 0, elsewhere: [], more: false })
  lanes.noteClaim(busy, sees)
  assert.ok(!askedFor(other), 'its apps hold all that they may')
  aheadMs += 60
  lanes.noteClaim(busy, sees)
  assert.ok(askedFor(other), 'and may have room again')
})

test('a lane is asked in its turn, also while another one always has more', (t) => {
  const lanes = new Lanes()
  lanes.set([newTransport(null), newTransport('a'), newTransport('b')])
  let aheadMs = 0
  const now = performance.now
  t.mock.method(performance, 'now', () => now.call(performance) + aheadMs)
  lanes.beginRound()
  const asked = new Set<string | null>()
  for (let n = 0; n < 20; n++, aheadMs += 100) {
    const lane = lanes.next()
    assert.ok(lane !== null)
    asked.add(lane.transport.name)
    lanes.noteClaim(lane, { count: 1, elsewhere: [], more: lane.transport.name === null })
    lanes.ask(lanes.all()[0] ?? lane) // an email of the first one has ended
  }
  assert.equal(asked.size, 3)
})

test('a lane that was passed over without room asks again when a connection is free', () => {
  const lanes = new Lanes()
  lanes.set([newTransport(null, [])])
  const [lane] = lanes.all()
  assert.ok(lane !== undefined)
  lane.mayBeMore = false
  lanes.beginRound()
  assert.deepEqual([lanes.next(), lane.mayBeMore], [null, true])
})

test('a lane without room is passed over', () => {
  const lanes = new Lanes()
  lanes.set([newTransport(null, []), newTransport('a')])
  lanes.beginRound()
  assert.deepEqual(askAll(lanes), ['a'])
})

test('relays of a transport that was changed are closed once it has ended, unless another one has them', () => {
  const lanes = new Lanes()
  const [shared, own] = [newTestRelay(relayTo(1)), newTestRelay(relayTo(1))]
  const closed: Relay[] = []
  for (const relay of [shared, own]) relay.close = () => void closed.push(relay)
  const kept = newTransport(null, [shared])
  lanes.set([kept, newTransport('a', [shared, own])])
  lanes.set([kept, newTransport('a')])
  assert.deepEqual([lanes.all().length, lanes.all().filter(({ isOver }) => isOver).length], [3, 1])
  lanes.beginRound()
  assert.equal(
    lanes
      .all()
      .find(({ isOver }) => isOver)
      ?.capacity(),
    0,
    'it takes nothing more',
  )
  const attempt = { claim: { emailId: 'em_1', fence: 1, appId: 'app_1' } } as never
  lanes
    .all()
    .find(({ isOver }) => isOver)
    ?.claimed.add([attempt])
  lanes.closeEnded()
  assert.deepEqual(closed, [], 'mail that waits in it is given back first')
  lanes
    .all()
    .find(({ isOver }) => isOver)
    ?.claimed.release()
  lanes.closeEnded()
  assert.deepEqual([closed, lanes.all().length], [[own], 2])
})

test('connections of a stored transport never count as idle: its mail may wait for the one that it has', () => {
  const lanes = new Lanes()
  lanes.set([newTransport(null), newTransport('a')])
  assert.deepEqual(
    lanes.all().map(({ idleShare }) => idleShare),
    [1, 0],
  )
})

test('the longest wait is that of real mail which was never tried', () => {
  const claim = (appId: string, attempt: number, ageMs: number) => ({ appId, attempt, ageMs }) as Claim
  assert.equal(longestWaitMs([]), 0)
  assert.equal(longestWaitMs([claim('app_a', 1, 300), claim('app_b', 2, 900), claim('test_a', 1, 5000)]), 300)
})
