import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newClientRates, OperatorRates } from './rates.ts'

/** Whether the second request is of the same client: each client may ask once. */
function isSameClient(first: readonly [string, string?], second: readonly [string, string?]): boolean {
  const mayAsk = newClientRates({ quota: 1, windowUs: 60e6 }, { quota: 10, windowUs: 60e6 })
  const ask = ([remoteAddress, forwarded]: readonly [string, string?]) =>
    mayAsk({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } })
  assert.ok(ask(first))
  return !ask(second)
}

for (const [first, second] of [
  [['203.0.113.5'], ['::ffff:203.0.113.5']],
  [['2600::5:1:2:3:4'], ['2600:0:0:5:9:9:9:9']],
  [['2600::5'], ['2600:0::6']],
  [
    ['203.0.113.5', '1.1.1.1'],
    ['203.0.113.5', '2.2.2.2'],
  ],
  [
    ['10.0.0.2', '198.51.100.7'],
    ['10.0.0.3', '1.2.3.4, 198.51.100.7'],
  ],
  [
    ['127.0.0.1', '198.51.100.7:1234'],
    ['::ffff:127.0.0.1', '::ffff:198.51.100.7'],
  ],
  [
    ['::1', '[2600:db::1]:443'],
    ['fe80::1%eth0', '2600:db::2'],
  ],
  [
    ['fd00::1', '198.51.100.7'],
    ['10.0.0.2', '198.51.100.7'],
  ],
  [
    ['100.64.0.9', '198.51.100.7'],
    ['169.254.1.1', '198.51.100.7'],
  ],
  [
    ['10.0.0.2', 'no address'],
    ['10.0.0.2', `${'x'.repeat(9000)}`],
  ],
] as const)
  test(`one client: ${first.join(' for ')}, ${second.join(' for ').slice(0, 60)}`, () => {
    assert.equal(isSameClient(first, second), true)
  })

for (const [first, second] of [
  [['203.0.113.5'], ['203.0.113.6']],
  [['2600::5:1:2:3:4'], ['2600::6:1:2:3:4']],
  [['2600:1:2:3::'], ['2600:1:2:4::']],
  [['::1:2:3:4:5:6:7'], ['::2:2:3:4:5:6:7']],
  [
    ['10.0.0.2', '1.1.1.1, 2.2.2.2, 198.51.100.7'],
    ['10.0.0.2', '1.1.1.1, 2.2.2.2, 198.51.100.8'],
  ],
] as const)
  test(`two clients: ${first.join(' for ')}, ${second.join(' for ')}`, () => {
    assert.equal(isSameClient(first, second), false)
  })

test('all clients together have a rate too', () => {
  const mayAsk = newClientRates({ quota: 30, windowUs: 60e6 }, { quota: 2, windowUs: 60e6 })
  const ask = (remoteAddress: string) => mayAsk({ socket: { remoteAddress }, headers: {} })
  assert.deepEqual(['203.0.113.1', '203.0.113.2', '203.0.113.3'].map(ask), [true, true, false])
})

test('an operator over the rate waits a second for the refusal, and others none', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const rates = new OperatorRates()
  for (let n = 0; n < 30; n++) assert.equal(await rates.charge('one'), null)
  let answered = false
  const refused = rates.charge('one').then((error) => {
    answered = true
    return error
  })
  assert.equal(await rates.charge('two'), null)
  t.mock.timers.tick(999)
  for (let n = 0; n < 5; n++) await Promise.resolve()
  assert.equal(answered, false)
  t.mock.timers.tick(1)
  assert.equal((await refused)?.code, 'too_many_requests')
})
