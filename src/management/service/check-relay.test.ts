import assert from 'node:assert/strict'
import { test } from 'node:test'
import { node, relay } from '../../../test/support/attention.ts'
import { smtpTo } from '../../../test/support/service.ts'
import { drop, silence, startScriptedServer } from '../../../test/support/smtp.ts'
import { SmtpSession } from '../../delivery/relay/smtp/smtp-session.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'
import type { NodeResource } from '../resources.ts'
import { checkRelay, checkRelays } from './check-relay.ts'
import { findDown } from './outages.ts'

const address = 'auth@acme.test' as EmailAddress
const sample = { from: address, bounceTo: 'b@bounce.acme.test' as EmailAddress, to: address }

test('if a server ends the connection at the login, the check names user and password as the cause', async (t) => {
  const { port } = await startScriptedServer(t, { ehlo: '250-scripted\r\n250 AUTH PLAIN', auth: drop })
  const relay = { name: 'r', address: smtpTo(port, { credentials: { user: 'u', pass: 'secret' } }) }
  const { detail, ok } = await checkRelay(relay, sample)
  assert.equal(ok, false)
  assert.match(detail, /during the login: check user and password/)
  assert.doesNotMatch(detail, /secret/)
})

test('the envelope is tried with the sender that emails have, and no message is sent', async (t) => {
  const server = await startScriptedServer(t, {})
  assert.equal((await checkRelay({ name: 'r', address: smtpTo(server.port) }, sample)).ok, true)
  assert.equal((await checkRelay({ name: 'r', address: smtpTo(server.port, { keepsSender: true }) }, sample)).ok, true)
  const said = server.transcript.filter((line) => /^(MAIL|RCPT|DATA)/.test(line))
  assert.deepEqual(said, [
    ...['MAIL FROM:<b@bounce.acme.test>', 'RCPT TO:<auth@acme.test>'],
    ...['MAIL FROM:<auth@acme.test>', 'RCPT TO:<auth@acme.test>'],
  ])
})

test('a refusal of the sender or the recipient alone is no fault of the relay', async (t) => {
  for (const script of [{ mail: '550 5.7.1 not you' }, { rcpt: '550 5.1.1 no such user' }]) {
    const { port } = await startScriptedServer(t, script)
    assert.equal((await checkRelay({ name: 'r', address: smtpTo(port) }, sample)).ok, true)
  }
})

test('the name in EHLO that a relay refuses is shown, with the setting', async (t) => {
  const { port } = await startScriptedServer(t, {
    rcpt: '550 5.7.1 <x>: Helo command rejected: Host not found',
  })
  const { detail, ok } = await checkRelay({ name: 'r', address: smtpTo(port) }, sample)
  assert.equal(ok, false)
  assert.match(detail, /the name in EHLO was acme\.test.*POSTERN_SMTP_NAME/)
})

test('a relay that goes on without an end is left after the time that the check has', async (t) => {
  const { port } = await startScriptedServer(t, { mail: silence })
  const session = await SmtpSession.open(smtpTo(port, { greetingName: 'acme.test' }), AbortSignal.timeout(5000))
  assert.ok(session instanceof SmtpSession)
  assert.match((await session.probeEnvelope(address, address, 50))?.reply.text ?? '', /no answer came in time/)
})

test('a relay that answers the check and takes no mail from any process fails it', async (t) => {
  const { port } = await startScriptedServer(t, {})
  const up = node({ relays: [relay('r1', true)] })
  const down = { relays: [relay('r1', false)] }
  const check = async (...nodes: NodeResource[]) => {
    const settings = { apps: [], bounceAddress: null, captures: false, down: findDown(nodes) }
    return (await checkRelays([{ name: 'r1', address: smtpTo(port, { greetingName: 'acme.test' }) }], settings))[0]
  }
  assert.equal((await check(node(down), up))?.ok, true, 'one of them sends')
  assert.equal((await check(node({ ...down, alive: false })))?.ok, true, 'it is dead')
  const failed = await check(node(down))
  assert.equal(failed?.ok, false)
  assert.match(
    failed?.detail ?? '',
    /^answers .*\. But no mail is sent through it now: the connection was refused \(ECONNREFUSED\)/,
  )
})
