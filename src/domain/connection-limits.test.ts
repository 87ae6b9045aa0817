import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConnectionLimits } from './connection-limits.ts'

type Client = { readonly address: string }

/** `closed` lists the connections that were closed to make room. */
function newLimits(max = 48) {
  const limits = new ConnectionLimits<Client>(max, (address) => address.startsWith('10.'))
  const closed: Client[] = []
  const open = (address: string) => {
    const client = { address }
    const close = () => void closed.push(client)
    return limits.admit(client, { address, close }) ? client : null
  }
  const openBusy = (address: string) => {
    const client = open(address)
    if (client !== null) limits.beginWork(client)
    return client
  }
  return { limits, closed, open, openBusy }
}

const many = (count: number, toAddress: (n: number) => string) => Array.from({ length: count }, (_, n) => toAddress(n))
const openCount = (addresses: string[], open: (address: string) => Client | null) =>
  addresses.map(open).filter((client) => client !== null).length

for (const [name, toAddress, most] of [
  ['one IPv4 address', () => '192.0.2.1', 6],
  ['a /24', (n: number) => `192.0.2.${n}`, 8],
  ['a /16', (n: number) => `192.0.${n}.1`, 12],
  ['an IPv6 network of 64 bits', (n: number) => `2600:1:2:3::${n}`, 6],
  ['a /56', (n: number) => `2600:1:2:${n}::1`, 6],
  ['a /48', (n: number) => `2600:1:2:${n}00::1`, 8],
  ['a /32', (n: number) => `2600:1:${n}::1`, 12],
  ['one IPv4 address by 6to4', (n: number) => `2002:c000:201:${n}::1`, 6],
  ['text that is no address', () => '', 6],
] as const)
  test(`${name} has ${most} of 48 connections that work, and leaves the others to other clients`, () => {
    const { openBusy, closed } = newLimits()
    assert.equal(openCount(many(48, toAddress), openBusy), most)
    assert.deepEqual(closed, [])
    const others = many(48 - most, (n) => `${1 + n}.${n}.1.1`)
    assert.equal(openCount(others, openBusy), others.length)
    assert.equal(openBusy('200.1.1.1'), null)
  })

test('a network that is full closes its own longest idle connection, and none of others', () => {
  const { limits, closed, open } = newLimits()
  const other = open('198.51.100.1')
  const own = many(6, () => '192.0.2.1').map(open)
  assert.ok(own[0] && own[1] && own[2])
  limits.beginWork(own[0])
  limits.beginWork(own[1])
  limits.endWork(own[1]) // idle since just now
  assert.ok(open('192.0.2.1'))
  assert.deepEqual(closed, [own[2]])
  assert.ok(open('192.0.2.1') && open('192.0.2.1') && open('192.0.2.1'))
  assert.ok(open('192.0.2.1'))
  assert.deepEqual(closed.slice(1), [own[3], own[4], own[5], own[1]])
  assert.ok(!closed.includes(other as Client))
})

test('where all connections are taken, the one that has been idle longest is closed', () => {
  const { closed, open } = newLimits()
  const first = many(48, (n) => `${n}.1.1.1`).map(open)
  assert.ok(open('200.1.1.1'))
  assert.deepEqual(closed, [first[0]])
})

test('a proxy may hold all connections', () => {
  const { openBusy } = newLimits()
  assert.equal(
    openCount(
      many(60, () => '10.0.0.1'),
      openBusy,
    ),
    48,
  )
})

test('work that ends, and connections that close, make room', () => {
  const { limits, closed, openBusy } = newLimits()
  const own = many(6, () => '192.0.2.1').map(openBusy)
  assert.equal(openBusy('192.0.2.1'), null)
  const [first, second] = own
  assert.ok(first && second)
  limits.beginWork(first) // two pieces of work
  limits.endWork(first)
  assert.equal(openBusy('192.0.2.1'), null)
  limits.endWork(first)
  assert.ok(openBusy('192.0.2.1'))
  assert.deepEqual(closed, [first])
  limits.remove(first) // its socket has closed meanwhile
  limits.endWork(first)
  assert.equal(openBusy('192.0.2.1'), null)
  limits.remove(second)
  assert.ok(openBusy('192.0.2.1'))
  assert.equal(openBusy('192.0.2.1'), null)
})
