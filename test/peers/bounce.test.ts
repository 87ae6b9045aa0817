/** Bounces of real mail servers: they come back to the envelope sender, some with the live link. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { lacking } from '../support/installed.ts'
import { exim, type MailServer, openSmtpd, sendmail } from '../support/mail-servers.ts'
import { freePort } from '../support/ports.ts'
import { startPostfix } from '../support/postfix.ts'
import { type Answer, relayTo, startTestService, validBody } from '../support/service.ts'
import { startScriptedServer, startSmtpServer } from '../support/smtp.ts'
import type { Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const token = 'live-token-4711'
const bounceAddress = 'bounces@bounce.acme.test' as EmailAddress
const reply = '5.1.1 <ada@example.com>: Recipient address rejected: User unknown'

const postfix = (more: Record<string, string> = {}): MailServer => ({
  lacking: () => lacking('postfix'),
  start: (scope, nextPort, homePort) =>
    startPostfix(scope, nextPort, {
      transport_maps: `inline:{bounce.acme.test=smtp:[127.0.0.1]:${homePort}}`,
      ...more,
    }),
})

type Bounces = {
  server: MailServer
  /** Whether Original-Envelope-ID names the email. */
  hasEnvelopeId: boolean
  /** Whether the body of the message, with the link, is in the bounce. */
  hasLink: boolean
}
const servers: Record<string, Bounces> = {
  Postfix: { server: postfix(), hasEnvelopeId: true, hasLink: false },
  Exim: { server: exim, hasEnvelopeId: true, hasLink: false },
  Sendmail: { server: sendmail, hasEnvelopeId: true, hasLink: false },
  // It offers DSN and takes RET=HDRS, but obeys it only in reports of success.
  OpenSMTPD: { server: openSmtpd, hasEnvelopeId: false, hasLink: true },
  'Postfix without DSN': {
    server: postfix({ smtpd_discard_ehlo_keywords: 'dsn' }),
    hasEnvelopeId: false,
    hasLink: true,
  },
}

/** A server whose next hop refuses every recipient, and whose bounces go to `homePort`. */
async function startRefused(t: Scope, { start }: MailServer, homePort: number) {
  const nextHop = await startSmtpServer(t, {
    onRcptTo: (_recipient, _session, callback) => callback(Object.assign(new Error(reply), { responseCode: 550 })),
  })
  return start(t, nextHop.port, homePort)
}

const body = validBody({ to: 'ada@example.com', url: `https://app.acme.test/auth?token=${token}` })
const readId = ({ headers }: Answer) => headers.get('email-id') as EmailId

/** Sends an email that is refused, and waits for the bounce. */
async function bounce(t: Scope, server: MailServer) {
  // For Exim, as in the bounce listener.
  const home = await startSmtpServer(t, { hidePIPELINING: true })
  const { port } = await startRefused(t, server, home.port)
  const service = await startTestService(t, { relays: [relayTo(port)], bounceAddress })
  const reference = service.store.makeReference(readId(await service.post(body)))
  return { reference, report: await eventually(() => home.received[0], 30_000) }
}

for (const [name, { server, hasEnvelopeId, hasLink }] of Object.entries(servers)) {
  const skip = server.lacking()
  const what = hasLink ? 'and returns the link' : 'with the headers only'
  test(`${name}: a bounce comes to the envelope sender, ${what}`, { skip }, async (t) => {
    const { reference, report } = await bounce(t, server)
    assert.deepEqual([report.from, report.to], ['', [`bounces+${reference}@bounce.acme.test`]])
    // Without soft line breaks and without folds.
    const text = report.raw.replaceAll('=\r\n', '').replaceAll(/\r\n[ \t]+/g, ' ')
    assert.ok(text.includes(`550 ${reply}`))
    assert.match(text, /^Final-Recipient: rfc822; ?ada@example\.com\r$/im)
    assert.match(text, /^Action: failed\r$/m)
    assert.ok(text.includes(`\nMessage-ID: <${reference}@acme.test>\r\n`))
    assert.equal(/^Original-Envelope-ID: (.*)\r$/im.exec(text)?.[1] === reference, hasEnvelopeId)
    assert.equal(text.includes(token), hasLink, 'the link')
  })
}

for (const [name, { server }] of Object.entries(servers)) {
  test(`${name}: the bounce listener takes the bounce, and the email is recorded as bounced`, {
    skip: server.lacking(),
  }, async (t) => {
    const address = { host: '127.0.0.1', port: await freePort() }
    const { port, log } = await startRefused(t, server, address.port)
    const service = await startTestService(t, {
      relays: [relayTo(port)],
      bounceAddress,
      bounce: { address, tls: null },
    })
    const id = readId(await service.post(body))
    const find = async () => {
      const email = await service.store.findEmail(id)
      return email?.state === 'bounced' ? email : null
    }
    const email = await eventually(find, 30_000)
    assert.equal(email.reason, 'no_mailbox')
    // A bounce without a reply would come again.
    if (server === exim) await eventually(() => /=> bounces\+.* C="250 /.test(log?.() ?? ''))
  })
}

test('a relay without DSN gets no parameters', async (t) => {
  const relay = await startScriptedServer(t, { ehlo: '250-scripted\r\n250 SIZE 1000000' })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  await service.post(validBody())
  await eventually(() => relay.messages.length === 1)
  const commands = relay.transcript.filter((line) => /^(MAIL|RCPT)/.test(line))
  assert.match(commands[0] ?? '', /^MAIL FROM:<auth@acme\.test> SIZE=\d+$/)
  assert.equal(commands[1], 'RCPT TO:<ada@example.com>')
})
