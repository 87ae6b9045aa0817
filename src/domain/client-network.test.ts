import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bareAddress, toClientNetwork } from './client-network.ts'

test('an IPv4 address is a network of its own, also on an IPv6 socket; an IPv6 network has 64 bits', () => {
  const networks = ['192.0.2.7', '::ffff:192.0.2.7', '192.0.2.8'].map(bareAddress).map(toClientNetwork)
  assert.deepEqual(networks, ['192.0.2.7', '192.0.2.7', '192.0.2.8'])
  const same = ['2001:db8:0:1::1', '2001:db8:0:1:ffff::2', '2001:0db8:0000:0001::', 'fe80::1%eth0']
  assert.deepEqual(same.map(bareAddress).map(toClientNetwork), [
    ...['2001:db8:0:1', '2001:db8:0:1', '2001:db8:0:1'],
    'fe80:0:0:0',
  ])
  assert.notEqual(toClientNetwork('2001:db8:0:2::1'), '2001:db8:0:1')
})
