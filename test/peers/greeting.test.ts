/** The name in EHLO: real mail servers that refuse a bad one, at EHLO, at MAIL and at RCPT. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { checkRelay } from '../../src/management/service/check-relay.ts'
import { lacking } from '../support/installed.ts'
import { strictSendmail } from '../support/mail-servers.ts'
import { listEmails } from '../support/operator.ts'
import { startPostfix } from '../support/postfix.ts'
import { relayTo, smtpTo, startTestService } from '../support/service.ts'
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
  skip: lacking({ postfix: '/usr/sbin/postfix' }, { root: true }),
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
