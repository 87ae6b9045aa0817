/** Relays without TLS: in a private network alone, never with a password, and with a warning. */
import assert from 'node:assert/strict'
import dns from 'node:dns/promises'
import { syncBuiltinESMExports } from 'node:module'
import { test } from 'node:test'
import { parseRelayUrl } from '../../src/config/relay-url.ts'
import type { RelayConfig } from '../../src/config/relays.ts'
import { checkRelay } from '../../src/management/service/check-relay.ts'
import { newTestRelay, startTestService } from '../support/service.ts'
import { startScriptedServer, startSmtpServer, testMessage } from '../support/smtp.ts'
import { atEnd, type Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const faultsOf = (url: string) => parseRelayUrl(url).faults.join('; ')

test('tls=none is for private addresses and names, and never with a password', () => {
  for (const host of ['mailpit:1025', '10.0.0.1', '172.17.0.1:25', '192.168.1.9', '[fd00::1]', 'mail.example.com'])
    assert.equal(faultsOf(`smtp://${host}?tls=none`), '', host)
  for (const host of ['203.0.113.1', '8.8.8.8:25', '[2606:4700::1]', '169.254.169.254'])
    assert.match(faultsOf(`smtp://${host}?tls=none`), /needs TLS, except in a private network/, host)
  for (const url of ['smtp://u:p@mailpit?tls=none', 'smtp://u@mailpit?tls=none&oauth=google&key=file:x'])
    assert.match(faultsOf(url), /would be readable in the network/, url)
  assert.equal(faultsOf('smtp://u:p@127.0.0.1?tls=none'), '', 'nobody reads loopback')
})

function newConfig(url: string): RelayConfig {
  const { relay, faults } = parseRelayUrl(url)
  assert.ok(relay !== null, faults.join('; '))
  return { ...relay, name: 'r', connectionsMax: 5, rate: null, takesReserved: true }
}

/** The name leads to these addresses until the test has ended. */
function resolveTo(t: Scope, ...addresses: string[]): void {
  const { lookup } = dns
  const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  dns.lookup = (async () => found) as never
  syncBuiltinESMExports()
  atEnd(t, () => {
    dns.lookup = lookup
    syncBuiltinESMExports()
  })
}

async function submit(t: Scope, config: RelayConfig) {
  const relay = newTestRelay(config)
  atEnd(t, () => relay.close())
  return relay.submit(testMessage(), { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true })
}

test('a name that leads to private addresses alone gets mail', async (t) => {
  const server = await startSmtpServer(t)
  resolveTo(t, '127.0.0.1')
  const config = newConfig(`smtp://mailpit:${server.port}?tls=none`)
  assert.equal((await submit(t, config)).kind, 'accepted')
  assert.equal(server.received[0]?.secure, false)
  const { detail, ok } = await checkRelay(config)
  assert.match(detail, /^answers without TLS \(tls=none\): anybody who can read the traffic .* can open every link/)
  assert.equal(ok, true)
})

test('a name that leads to a public address, if only among others, gets nothing', async (t) => {
  const server = await startScriptedServer(t, {})
  for (const addresses of [
    ['203.0.113.9'],
    ['127.0.0.1', '203.0.113.9'],
    ['127.0.0.1', '2606:4700::1'],
    ['169.254.169.254'],
  ]) {
    resolveTo(t, ...addresses)
    const submission = await submit(t, newConfig(`smtp://mail.acme.test:${server.port}?tls=none`))
    assert.ok(submission.kind === 'failed')
    assert.match(submission.reply.text, /mail\.acme\.test has the address .*, which is not private: leave out tls=none/)
    assert.deepEqual([submission.failureClass.scope, submission.failureClass.lasting], ['relay', true])
  }
  assert.deepEqual(server.transcript, [])
})

test('the start warns of it', async (t) => {
  const server = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [newConfig(`smtp://mailpit:${server.port}?tls=none`)] })
  await eventually(() => service.log.some((line) => /"level":40.*without TLS \(tls=none\)/.test(line)))
})
