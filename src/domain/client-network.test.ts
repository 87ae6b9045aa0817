import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { test } from 'node:test'
import { isLoopback, isPrivateNetwork, listNetworks, toClientAddress } from './client-network.ts'

const names = (text: string) => listNetworks(text).map(({ name }) => name)

test('an IPv4 client counts by its address, its /24 and its /16', () => {
  assert.deepEqual(names('192.0.2.7'), ['192.0.2.7/32', '192.0.2/24', '192.0/16'])
})

test('an IPv6 client counts by the networks of 64, 56, 48 and 32 bits', () => {
  const [client, site, customer, owner] = names('2600:db8:3:4567::1')
  assert.deepEqual(
    [client, site, customer, owner],
    ['38.0.13.184.0.3.69.103/64', '38.0.13.184.0.3.69/56', '38.0.13.184.0.3/48', '38.0.13.184/32'],
  )
  assert.deepEqual(names('2600:db8:3:4567:ffff::9'), names('2600:0db8:0003:4567::'))
  assert.notEqual(names('2600:db8:3:4568::1')[0], client)
  assert.equal(names('2600:db8:3:4568::1')[1], site)
  assert.equal(names('2600:db8:3::1')[2], customer)
  assert.equal(names('2600:db8:ffff::1')[3], owner)
})

test('no network has more than a quarter, and a larger one has no less than those in it', () => {
  for (const text of ['192.0.2.7', '2600::1', 'nonsense', '']) {
    const shares = listNetworks(text).map(({ share }) => share)
    assert.ok(
      shares.every((share, at) => share <= 1 / 4 && share >= (shares[at - 1] ?? 0)),
      text,
    )
  }
})

test('an IPv4 address is the same client in each of its forms', () => {
  const forms = [
    ...['::ffff:192.0.2.7', '::FFFF:c000:0207', '0:0:0:0:0:ffff:192.0.2.7', '192.0.2.7:443', '[::ffff:192.0.2.7]:1'],
    ...['2002:c000:207::1', '2002:c000:207:ffff:1:2:3:4'], // 6to4
    ...['64:ff9b::192.0.2.7', '64:ff9b:1::c000:207'], // behind a translator
    ...['2001:0:1:2:3:4:3fff:fdf8', '2001:0:ffff:9:8:7:3fff:fdf8'], // Teredo
  ]
  for (const form of forms) assert.deepEqual(names(form), names('192.0.2.7'), form)
})

test('an address is read with brackets, port and zone, and other text is one client', () => {
  const forms = ['2600::1', '[2600::1]', '[2600::1]:443', '2600:0::0001', '2600::1%eth0', '2600:0:0:0:0:0:0:1']
  for (const form of forms) assert.equal(toClientAddress(form), toClientAddress('2600::1'), form)
  const others = [
    ...['', 'x', '1.2.3', '1.2.3.4.5', '256.1.1.1', '1.2.3.x', '-1.2.3.4', '1::2::3', '1:2:3:4:5:6:7', ':', '::1:'],
    ...[
      '1:2:3:4:5:6:7:8:9',
      '1:2:3:4:5:6:7:8::',
      '12345::',
      'g::',
      '1.2.3.4:5:6',
      '[::1',
      '[::1]x',
      '::1]/[',
      '1.2.3.4::',
    ],
    ...['9'.repeat(9000), `${'1:'.repeat(4000)}1`],
  ]
  for (const other of others) {
    assert.equal(toClientAddress(other), null, other.slice(0, 50))
    assert.deepEqual(names(other), ['unknown'], other.slice(0, 50))
  }
})

test('whatever Node takes for an address is read, and nothing else', () => {
  const pieces = ['1', 'ffff', '0', '::', ':', '1.2.3.4', '.', 'a', '255', '256', 'g']
  let seed = 1
  const next = (below: number) => {
    seed = (seed * 48271) % 2147483647
    return seed % below
  }
  for (let n = 0; n < 20_000; n++) {
    const text = Array.from({ length: 1 + next(15) }, (_, at) =>
      at % 2 === 1 ? ':' : pieces[next(pieces.length)],
    ).join('')
    const isWithPort = /^[\d.]+:\d+$/.test(text)
    if (!isWithPort) assert.equal(toClientAddress(text) !== null, isIP(text) !== 0, text)
  }
})

test('this machine and private networks are private; what only contains such an address is not', () => {
  const own = [
    ...['127.0.0.1', '127.255.0.9', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.0.1', '169.254.1.1'],
    ...['100.64.0.1', '100.127.0.1', '::1', 'fd00::1', 'fcff::', 'fe80::1%eth0', 'febf::1', '::ffff:127.0.0.1'],
    '::ffff:a00:1',
  ]
  for (const address of own) assert.equal(isPrivateNetwork(address), true, address)
  const others = [
    ...['126.0.0.1', '11.0.0.1', '172.15.0.1', '172.32.0.1', '192.167.0.1', '100.63.0.1', '100.128.0.1', '8.8.8.8'],
    ...['::2', '::', 'fbff::1', 'fe00::1', 'fec0::1', '2600::1', '', 'localhost'],
    ...['2002:7f00:1::1', '2002:a00:1::1', '64:ff9b::127.0.0.1', '2001:0:1:2:3:4:80ff:fffe', '::127.0.0.1'],
  ]
  for (const address of others) assert.equal(isPrivateNetwork(address), false, address)
})

test('this machine has one set of names and addresses', () => {
  for (const host of ['localhost', '127.0.0.1', '127.0.0.2', '127.255.255.254', '::1', '[::1]'])
    assert.equal(isLoopback(host), true, host)
  for (const host of ['localhost.test', '127.0.0.1.test', '128.0.0.1', '::2', '', '0.0.0.0', 'x127.0.0.1'])
    assert.equal(isLoopback(host), false, host)
})
