import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startNameServer } from '../../test/support/dns-server.ts'
import { ZoneResolver } from './zone-resolver.ts'

for (const [fault, kind] of [
  ['absence', 'absent'],
  ['emptiness', 'absent'],
  ['SERVFAIL', 'unknown'],
  ['silence', 'unknown'],
] as const)
  test(`a name server that answers with ${fault}: the record is ${kind}`, async (t) => {
    const { server } = await startNameServer(t, fault)
    const resolver = new ZoneResolver({ servers: [server], timeoutMs: 100, withinMs: 2000 })
    assert.equal((await resolver.lookup('acme.dev', 'TXT')).kind, kind)
    assert.equal((await resolver.lookup('acme.dev', 'MX')).kind, kind)
  })
