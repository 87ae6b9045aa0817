import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  chargeLimit,
  explainLimit,
  keyLimit,
  type Limit,
  limitRefusals,
  mailboxLimit,
  recipientLimit,
} from './limit.ts'

const tenAnHour: Limit = { quota: 10, windowUs: 3_600_000_000 }
const sixMinutesUs = 360_000_000
const t0 = 1_795_200_000_000_000

test('the burst is the whole limit, then one per interval', () => {
  let arrival = 0
  for (let i = 0; i < 10; i++) {
    const charge = chargeLimit(tenAnHour, arrival, t0)
    assert.ok(charge.ok)
    arrival = charge.arrivalUs
  }
  assert.deepEqual(chargeLimit(tenAnHour, arrival, t0), { ok: false, retryAfterUs: sixMinutesUs })
  assert.equal(chargeLimit(tenAnHour, arrival, t0 + sixMinutesUs - 1).ok, false)
  assert.equal(chargeLimit(tenAnHour, arrival, t0 + sixMinutesUs).ok, true)
})

test('waiting for exactly `retryAfterUs` is enough, and a microsecond less is not', () => {
  const limits = fc.record({
    quota: fc.integer({ min: 1, max: 10_000 }),
    windowUs: fc.constantFrom(60_000_000, 3_600_000_000),
  })
  fc.assert(
    fc.property(limits, fc.nat(), (limit, ahead) => {
      const burstUs = Math.ceil(limit.windowUs / limit.quota) * limit.quota
      const arrivalUs = t0 + (ahead % burstUs)
      const charge = chargeLimit(limit, arrivalUs, t0)
      if (charge.ok) return
      assert.equal(chargeLimit(limit, arrivalUs, t0 + charge.retryAfterUs).ok, true)
      assert.equal(chargeLimit(limit, arrivalUs, t0 + charge.retryAfterUs - 1).ok, false)
    }),
  )
})

test('never more than quota plus what the elapsed time allows', () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 600_000_000 }), { maxLength: 200 })
  fc.assert(
    fc.property(gaps, (waits) => {
      let [arrival, now, passed] = [0, t0, 0]
      for (const wait of waits) {
        now += wait
        const charge = chargeLimit(tenAnHour, arrival, now)
        if (!charge.ok) continue
        passed += 1
        arrival = charge.arrivalUs
      }
      assert.ok(passed <= 10 + (now - t0) / sixMinutesUs)
    }),
  )
})

test('row 18: a clock stepped back, by however much, locks for two windows at most', () => {
  for (const backUs of [1, 60_000_000, tenAnHour.windowUs, tenAnHour.windowUs + 1, 86_400_000_000]) {
    let arrival = 0
    for (let i = 0; i < 10; i++) {
      const charge = chargeLimit(tenAnHour, arrival, t0)
      if (charge.ok) arrival = charge.arrivalUs
    }
    const earlier = t0 - backUs
    const charge = chargeLimit(tenAnHour, arrival, earlier)
    const waitUs = charge.ok ? 0 : charge.retryAfterUs
    assert.ok(waitUs <= 2 * tenAnHour.windowUs)
    assert.ok(chargeLimit(tenAnHour, arrival, earlier + waitUs).ok, 'waiting for `retryAfterUs` is enough')
    if (backUs < tenAnHour.windowUs) assert.ok(!charge.ok, 'a small step opens no full bucket')
  }
})

test('a clock stepped forward grants one burst at most', () => {
  let [arrival, passed] = [0, 0]
  for (let i = 0; i < 40; i++) {
    const charge = chargeLimit(tenAnHour, arrival, i < 20 ? t0 : t0 + 86_400_000_000)
    if (!charge.ok) continue
    passed += 1
    arrival = charge.arrivalUs
  }
  assert.equal(passed, 20)
})

test('a stored time up to two windows ahead counts, beyond that it is ignored', () => {
  const burstUs = sixMinutesUs * 10
  assert.equal(chargeLimit(tenAnHour, t0 + 2 * burstUs, t0).ok, false)
  assert.deepEqual(chargeLimit(tenAnHour, t0 + 2 * burstUs + 1, t0), {
    ok: true,
    arrivalUs: t0 + sixMinutesUs,
  })
})

test('the limits of an app as buckets', () => {
  const limits = { keyPerMinute: 7, recipientPerHour: 3, daily: 9 }
  assert.deepEqual(keyLimit(limits), { quota: 7, windowUs: 60_000_000 })
  assert.deepEqual(recipientLimit(limits), { quota: 3, windowUs: 3_600_000_000 })
  assert.deepEqual(mailboxLimit(limits), { quota: 15, windowUs: 3_600_000_000 })
})

test('a refusal says which limit it is, how long to wait, and what sets it', () => {
  const hit = (retryAfterMs: number) => ({ quota: 10, windowS: 1, retryAfterMs })
  assert.match(explainLimit('recipient_rate_limited', hit(360_000)), /10 an hour.*6 min.*--recipient-per-hour/)
  assert.match(explainLimit('key_rate_limited', hit(100)), /10 a minute.*1 s.*--key-per-minute/)
  assert.match(explainLimit('daily_limit_reached', hit(7_200_000)), /10 emails for today.*2 h.*--daily/)
  assert.deepEqual(
    Object.entries(limitRefusals).map(([code, { policy, windowS }]) => [code, policy, windowS]),
    [
      ['key_rate_limited', 'key', 60],
      ['recipient_rate_limited', 'recipient', 3600],
      ['daily_limit_reached', 'daily', 86_400],
    ],
  )
})
