import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeliveryOutcome } from '../domain/delivery/outcome.ts'
import { parseReply } from '../domain/delivery/smtp-reply.ts'
import { RelayHealth } from './relay-health.ts'

const relay = 'r1'
const delivered: DeliveryOutcome = { kind: 'delivered', relay, reply: parseReply('250 2.0.0 queued') }
const deferred = (reply: string): DeliveryOutcome => ({
  ...{ kind: 'deferred', relay, ambiguous: false, waitMs: 5000 },
  reply: parseReply(reply),
})
const down = { available: false, reason: '451 4.7.1 the last one' }
const up = { available: true, reason: '' }

const unreached = {
  ...{ kind: 'unattempted', relay, waitMs: 5000 },
  reply: parseReply('ECONNREFUSED'),
} as DeliveryOutcome

/** The attempts and changes of a relay, one a second, from the second 1. */
function observe(...events: (DeliveryOutcome | (typeof down & { readonly afterMs?: number }))[]) {
  let isAvailable = true
  const connections = () => ({ connecting: 0, open: 0, busy: 0, allowed: 5, max: 5 })
  const health = new RelayHealth(
    { name: relay, certificateExpiresAt: null, connections, isAvailable: () => isAvailable },
    0,
  )
  for (const [index, event] of events.entries()) {
    const at = (index + 1) * 1000 + (('afterMs' in event && event.afterMs) || 0)
    if ('available' in event) {
      isAvailable = event.available
      health.changed(event, at)
    } else health.attempted(event, at)
  }
  const { available, since, reason, lastOutage } = health.state()
  return { available, since, reason, lastOutage }
}

test('an outage began with the first attempt that failed after the last delivery', () => {
  const { since } = observe(deferred('451 4.7.1 a'), delivered, deferred('451 4.7.1 b'), deferred('451 4.7.1 c'), down)
  assert.equal(since, 3000)
  assert.equal(observe(down).since, 1000)
  assert.equal(observe(delivered, delivered).since, 0, 'since the start of the process')
})

test('the reason of an outage is the reply that came most often, whatever ids are in it', () => {
  const busy = (id: string) => deferred(`451 4.7.1 ${id} try later`)
  const { reason } = observe(deferred('452 4.3.1 no space'), busy('q7'), busy('q8'), {
    ...down,
    reason: '421 4.3.2 stopping',
  })
  assert.equal(reason, '451 4.7.1 q7 try later')
  assert.equal(observe({ ...down, reason: 'ECONNREFUSED' }).reason, 'ECONNREFUSED')
})

test('a failure hours before an outage is not its beginning, nor its reason', () => {
  const health = observe(deferred('450 4.1.2 Domain not found'), deferred('450 4.1.2 Domain not found'), {
    ...down,
    afterMs: 8 * 3_600_000,
    reason: 'ECONNREFUSED',
  })
  assert.deepEqual([health.since, health.reason], [8 * 3_600_000 + 3000, 'ECONNREFUSED'])
})

test('a full mailbox and greylisting are no outage of the relay', () => {
  const { reason, since } = observe(
    deferred('452 4.2.2 The mailbox is over quota'),
    deferred('451 4.7.1 Greylisted'),
    deferred('451 4.3.0 no space'),
    down,
  )
  assert.deepEqual([since, reason], [3000, '451 4.3.0 no space'])
})

test('a delivery that is recorded after the outage began does not end it', () => {
  const { available, reason, since } = observe(deferred('451 4.7.1 a'), down, delivered, deferred('451 4.7.1 b'))
  assert.deepEqual([available, reason, since], [false, '451 4.7.1 a', 1000])
})

test('an outage is over when the relay is available again, and the next has its own reason', () => {
  const { lastOutage, reason, since } = observe(deferred('451 4.7.1 a'), down, up, delivered, {
    ...down,
    reason: 'ECONNREFUSED',
  })
  assert.deepEqual(lastOutage, { from: 1000, until: 3000, reason: '451 4.7.1 a' })
  assert.deepEqual([reason, since], ['ECONNREFUSED', 5000])
})

test('a relay that refused and was then stopped has the newer reason, and the whole outage the most frequent', () => {
  const refusing = Array.from({ length: 40 }, () => deferred('451 4.7.1 later'))
  const stopped = { ...unreached, afterMs: 35_000 }
  const now = observe(...refusing, down, stopped)
  assert.deepEqual([now.reason, now.since], ['ECONNREFUSED', 1000])
  const over = observe(...refusing, down, stopped, { ...up, afterMs: 36_000 })
  assert.equal(over.lastOutage?.reason, '451 4.7.1 later')
})

test('a relay that can be reached for a moment, and accepts no email, has one outage', () => {
  const first = { ...down, reason: 'ECONNREFUSED' }
  const { lastOutage, reason, since } = observe(first, up, deferred('451 4.7.1 a'), { ...down, reason: '451 4.7.1 b' })
  assert.deepEqual([since, lastOutage, reason], [1000, null, '451 4.7.1 a'])
  const later = observe(first, up, { ...down, afterMs: 301_000 })
  assert.deepEqual([later.since, later.lastOutage?.from], [304_000, 1000], 'after five minutes it is another one')
  const ended = observe(first, up, delivered, down)
  assert.deepEqual([ended.since, ended.lastOutage?.until], [4000, 2000])
})

test('of very many different replies the first ones are counted', () => {
  const many = Array.from({ length: 500 }, (_, n) => deferred(`451 4.3.${n} reply`))
  const again = deferred('451 4.3.499 reply')
  assert.equal(observe(...many, again, again, down).reason, '451 4.3.0 reply')
})
