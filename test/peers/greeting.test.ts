/** The name in EHLO: real mail servers that refuse a bad one, at EHLO, at MAIL and at RCPT. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { checkRelay } from '../../src/management/service/check-relay.ts'
import { lacking } from '../support/installed.ts'
import { strictSendmail } from '../support/mail-servers.ts'
import { listEmails } from '../support/operator.ts'
import { startPostfix } from '../support/postfix.ts'
import { relayTo, smtpTo, startTestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import type { Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const address = 'auth@acme.test' as EmailAddress
const sample = { from: address, bounceTo: null, to: address }
const restrictions = 'reject_invalid_helo_hostname,reject_non_fqdn_helo_hostname'

type Judge = {
  readonly what: string
  readonly skip: string | false
  readonly start: (scope: Scope, nextPort: number) => Promise<{ readonly port: number }>
}

const postfixAt = (stage: string, settings: Readonly<Record<string, string>>): Judge => ({
  what: `Postfix at ${stage}`,
  skip: lacking('postfix'),
  start: (scope, nextPort) =>
    startPostfix(scope, nextPort, { smtpd_delay_reject: 'no', smtpd_helo_required: 'yes', ...settings }),
})

const judges: readonly Judge[] = [
  postfixAt('EHLO', { smtpd_helo_restrictions: restrictions }),
  postfixAt('MAIL', { smtpd_sender_restrictions: restrictions }),
  postfixAt('RCPT', { smtpd_helo_restrictions: restrictions, smtpd_delay_reject: 'yes' }),
  {
    what: 'Sendmail at MAIL',
    skip: strictSendmail.lacking(),
    start: (scope, nextPort) => strictSendmail.start(scope, nextPort, nextPort),
  },
]

for (const { skip, start, what } of judges) {
  test(`${what}: a name without a dot holds the mail, and the check names the setting`, {
    skip,
  }, async (t) => {
    const sink = await startSmtpServer(t)
    const { port } = await start(t, sink.port)
    const service = await startTestService(t, { relays: [relayTo(port, { greetingName: 'box' })] })
    await service.post()
    const [email] = await eventually(async () => {
      const found = await listEmails(service.store, { limit: 1 })
      return found[0]?.trail.length === 0 ? undefined : found
    }, 20_000)
    assert.equal(email?.trail[0]?.outcome, 'unattempted', JSON.stringify(email?.trail))
    const checked = { name: 'relay', address: smtpTo(port, { greetingName: 'box' }) }
    const { detail, ok } = await checkRelay(checked, sample)
    t.diagnostic(detail)
    assert.equal(ok, false)
    assert.match(detail, /HELO|EHLO/i)
    assert.match(detail, /POSTERN_SMTP_NAME/)
  })

  test(`${what}: the domain of the sender is a name that it takes`, { skip }, async (t) => {
    const sink = await startSmtpServer(t)
    const { port } = await start(t, sink.port)
    assert.equal((await checkRelay({ name: 'relay', address: smtpTo(port) }, sample)).ok, true)
    const service = await startTestService(t, { relays: [relayTo(port)] })
    await service.post()
    const { raw } = await sink.first()
    const greeting = /^Received: from \S+/m.exec(raw)?.[0]
    t.diagnostic(`${greeting}`)
    assert.equal(greeting, 'Received: from acme.test')
  })
}

test('a receiver that answers with the word HELO, repeated by Postfix, holds up nobody else', {
  skip: lacking('postfix'),
}, async (t) => {
  const sink = await startSmtpServer(t, {
    onRcptTo({ address: to }, _session, callback) {
      const refusal = Object.assign(new Error('5.7.1 your HELO name is not welcome'), { responseCode: 550 })
      callback(to.endsWith('@evil.test') ? refusal : null)
    },
  })
  const { port } = await startPostfix(t, sink.port, {
    smtpd_recipient_restrictions: 'reject_unverified_recipient,permit_mynetworks,reject',
    ...{ address_verify_map: '', address_verify_sender: '<>', address_verify_poll_delay: '1s' },
  })
  const service = await startTestService(t, { relays: [relayTo(port)] })
  await service.post(validBody({ to: 'a@evil.test' }))
  const [evil] = await eventually(async () => {
    const found = await listEmails(service.store, { limit: 1 })
    return found[0]?.trail.length === 0 ? undefined : found
  }, 40_000)
  assert.match(evil?.trail[0]?.reply?.text ?? '', /said: 550 5\.7\.1 your HELO name/)
  assert.equal(evil?.trail[0]?.outcome, 'deferred', 'the email’s own failure')
  assert.doesNotMatch(service.log.join(''), /the relay is unavailable/)
  await service.post(validBody({ to: 'b@nice.test' }))
  await eventually(() => sink.received.some(({ to }) => to[0] === 'b@nice.test'), 40_000)
})
