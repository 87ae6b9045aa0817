import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInNetworks, parseNetwork, sharedNetworks } from './key-networks.ts'

test('a network has one spelling; an address is a network of one', () => {
  for (const [text, network] of [
    ['192.0.2.0/24', '192.0.2.0/24'],
    ['192.0.2.7', '192.0.2.7'],
    ['192.0.2.7/32', '192.0.2.7'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8:0::/32', '2001:db8::/32'],
    ['2001:db8::1/128', '2001:db8::1'],
    ['::/0', '::/0'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
  ] as const)
    assert.deepEqual(parseNetwork(text), { ok: true, value: network })
})

test('what is no network is refused, and so is an address inside a network', () => {
  const broken = ['', '/', '/24', '192.0.2.0/', '192.0.2.0/33', '192.0.2.0/-1', '192.0.2.0/024', '192.0.2.0/1e1']
  broken.push(
    '192.0.2/24',
    '0300.0.2.0/24',
    '0xc0.0.2.0/24',
    '3221225984/24',
    '192.0.2.0/24/8',
    '192.0.2.0/255.255.255.0',
  )
  broken.push(
    '192.0.2.7:443',
    '[2001:db8::]/32',
    'fe80::%eth0/64',
    '2001:db8::/129',
    '::ffff:192.0.2.0/120',
    'acme.test',
    '*',
  )
  broken.push(' 192.0.2.0/24', `${'0'.repeat(60)}::/8`)
  for (const text of broken) {
    const network = parseNetwork(text)
    assert.equal(network.ok ? text : network.issues[0]?.code, 'malformed_network', text)
  }
  for (const [text, advice] of [
    ['192.0.2.7/24', /write 192\.0\.2\.0\/24, or the address alone/],
    ['2001:db8::1/32', /write 2001:db8::\/32/],
  ] as const) {
    const network = parseNetwork(text)
    assert.ok(!network.ok && network.issues[0]?.code === 'host_bits')
    assert.match(network.issues[0].message, advice)
  }
})

test('an address is in a network of its kind alone, in each of its forms', () => {
  const networks = ['192.0.2.0/24', '198.51.100.7', '2001:db8::/32']
  for (const address of [
    '192.0.2.0',
    '192.0.2.255',
    '::ffff:192.0.2.9',
    '198.51.100.7',
    '2001:DB8:ffff::1',
    '192.0.2.1:80',
  ])
    assert.equal(isInNetworks(address, networks), true, address)
  for (const address of ['192.0.3.0', '198.51.100.8', '2001:db9::', '::c000:201', '', 'unknown', '192.0.2'])
    assert.equal(isInNetworks(address, networks), false, address)
  assert.equal(isInNetworks('2001:db8::1', ['0.0.0.0/0']), false)
  assert.equal(isInNetworks('192.0.2.1', ['::/0']), false)
})

test('two lists share the smaller of each two networks that overlap; null allows all', () => {
  const wide = ['192.0.2.0/24', '2001:db8::/32']
  assert.equal(sharedNetworks(null, null), null)
  assert.deepEqual(sharedNetworks(wide, null), wide)
  assert.deepEqual(sharedNetworks(null, wide), wide)
  assert.deepEqual(sharedNetworks(wide, [...wide]), wide)
  assert.deepEqual(sharedNetworks(wide, ['192.0.0.0/16', '2001:db8::1', '198.51.100.7']), [
    '192.0.2.0/24',
    '2001:db8::1',
  ])
  assert.deepEqual(sharedNetworks(['192.0.2.0/24'], ['192.0.2.0/25', '0.0.0.0/0']), ['192.0.2.0/24', '192.0.2.0/25'])
  assert.deepEqual(sharedNetworks(['0.0.0.0/0'], ['::/0']), [])
  assert.equal(isInNetworks('192.0.2.1', []), false)
})
