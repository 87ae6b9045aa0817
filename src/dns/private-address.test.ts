import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPrivateAddress } from './private-address.ts'

test('addresses of this machine and of private networks are private', () => {
  const privates = [
    ...['127.0.0.1', '127.255.255.255', '0.0.0.0', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ...['169.254.169.254', '100.64.0.1', '100.127.255.255', '224.0.0.1', '255.255.255.255', '198.19.0.1'],
    ...['::', '::1', '::ffff:127.0.0.1', '::ffff:a00:1', '::127.0.0.1', 'fe80::1', 'fd12::1', 'ff02::1'],
    ...[
      '64:ff9b::a00:1',
      '2002:7f00:1::',
      '::ffff:8.8.8.8',
      '::ffff:0:7f00:1',
      '4000::1',
      '168.63.129.16',
      '',
      'example.com',
      '127.1',
      'fe80::1%eth0',
    ],
  ]
  for (const address of privates) assert.equal(isPrivateAddress(address), true, address)
  const publics = ['8.8.8.8', '172.15.0.1', '172.32.0.1', '100.63.0.1', '100.128.0.1', '192.167.1.1', '11.0.0.1']
  for (const address of [...publics, '2606:4700::1', '2a00:1450::1'])
    assert.equal(isPrivateAddress(address), false, address)
})
