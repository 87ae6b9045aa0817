import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDnsServers } from './dns.ts'
import { newReader } from './reader.ts'

function read(given: string) {
  const faults: string[] = []
  const servers = readDnsServers(newReader({ POSTERN_DNS_SERVERS: given }, 'serve', faults))
  return faults.length === 0 ? servers : 'a fault'
}

test('resolvers are addresses, with a port or without one', () => {
  const valid = ['10.0.0.53', '10.0.0.53:1', '127.0.0.1:65535', '::1', '2001:db8::53', '[::1]', '[::1]:53']
  for (const server of valid) assert.deepEqual(read(server), [server])
  assert.deepEqual(read('10.0.0.53, [::1]:53 ::1'), ['10.0.0.53', '[::1]:53', '::1'])
  assert.equal(read(''), null)
})

test('anything but an IP address with a valid port is refused, also in a list', () => {
  const hosts = ['dns.example.com', '10.0.0', '10.0.0.256', ':53', '[10.0.0.53]', '[::1', '::g', '[]:53']
  const ports = ['10.0.0.53:', '10.0.0.53:0', '10.0.0.53:65536', '10.0.0.53:5x', '10.0.0.53:53:53']
  const after = ['[::1]:', '[::1]:0', '[::1]:65536', '[::1]53', '[::1]x53']
  for (const server of [...hosts, ...ports, ...after]) {
    assert.equal(read(server), 'a fault', server)
    assert.equal(read(`10.0.0.53,${server}`), 'a fault', server)
  }
})
