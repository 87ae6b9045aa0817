import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/support/wait.ts'
import { newClientRates, OperatorRates } from './rates.ts'

/** Whether the second request is of the same client: each client may ask once. */
function isSameClient(first: readonly [string, string?], second: readonly [string, string?]): boolean {
  const mayAsk = newClientRates({
    ofClient: { quota: 1, windowUs: 60e6 },
    ofAll: { quota: 100, windowUs: 60e6 },
  })
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

const minute = 60e6
const askFrom = (mayAsk: ReturnType<typeof newClientRates>) => (remoteAddress: string, forwarded?: string) =>
  mayAsk({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } })
const newRates = (ofClient: number, ofAll: number) =>
  askFrom(
    newClientRates({
      ofClient: { quota: ofClient, windowUs: 60 * minute },
      ofAll: { quota: ofAll, windowUs: 60 * minute },
    }),
  )

test('all clients together have a rate too', () => {
  const ask = newRates(30, 2)
  assert.deepEqual(
    [1, 2, 3].map((n) => ask(`${n}.0.113.1`)),
    [true, true, false],
  )
})

for (const [owner, toAddress, most] of [
  ['a /24', (n: number) => `203.0.113.${n % 250}`, 166],
  ['a /16', (n: number) => `203.0.${n % 250}.${n >> 8}`, 250],
  ['a /56', (n: number) => `2600:1:2:${(n % 250).toString(16)}::${n}`, 142],
  ['a /48', (n: number) => `2600:1:2:${n.toString(16)}::1`, 166],
  ['a /32', (n: number) => `2600:1:${n.toString(16)}:5::1`, 250],
  ['one IPv4 address by 6to4', (n: number) => `2002:c000:201:${n.toString(16)}::1`, 30],
] as const)
  test(`the owner of ${owner} leaves most of the rate of all to others`, () => {
    const ask = newRates(30, 1000)
    const admitted = Array.from({ length: 4000 }, (_, n) => ask('10.0.0.1', toAddress(n))).filter(Boolean)
    assert.equal(admitted.length, most)
    assert.ok(ask('10.0.0.1', '198.51.100.7'))
    assert.ok(ask('10.0.0.1', '2a00:1::1'))
  })

test('a refusal by the rate of all charges no client, and a flood of networks pushes out no bucket', async () => {
  const ofClient = { quota: 1, windowUs: 60 * minute }
  const ask = askFrom(newClientRates({ ofClient, ofAll: { quota: 30, windowUs: 1e6 } }))
  const toAddress = (n: number) => `${1 + (n % 200)}.${(n >> 8) % 250}.${(n >> 4) % 250}.${n % 250}`
  const admitted = Array.from({ length: 40_000 }, (_, n) => ask(toAddress(n)))
  assert.equal(admitted[0], true)
  const refused = toAddress(admitted.lastIndexOf(false))
  await eventually(() => ask(refused))
  await eventually(() => ask('203.0.113.9'))
  assert.equal(ask(toAddress(0)), false)
})

test('an address that a client writes into X-Forwarded-For counts only behind a proxy', () => {
  const ask = newRates(1, 1000)
  assert.ok(ask('203.0.113.5', '192.0.2.1'))
  assert.ok(!ask('203.0.113.5', '192.0.2.2'))
  const inside = ['2002:7f00:1::1', '64:ff9b::127.0.0.1', '2001:0:1:2:3:4:80ff:fffe'] // contain 127.0.0.1
  for (const peer of inside) ask(peer, '192.0.2.3')
  for (const [n, peer] of inside.entries()) assert.ok(!ask(peer, `192.0.2.${4 + n}`), peer)
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
