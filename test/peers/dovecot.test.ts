/** XOAUTH2 with a Dovecot that asks about tokens: short ones on the AUTH line, long ones after its 334. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SmtpSession } from '../../src/delivery/relay/smtp/smtp-session.ts'
import { sendJson, startApiServer } from '../support/api-server.ts'
import { startDovecot } from '../support/dovecot.ts'
import { lacking } from '../support/installed.ts'
import { smtpTo } from '../support/service.ts'
import { startSmtpServer, testMessage } from '../support/smtp.ts'
import { atEnd, type Scope } from '../support/temporary.ts'

const skip = lacking('dovecot', 'dovecot-submission')
const mailbox = 'no-reply@acme.test'

async function start(t: Scope, token: string) {
  const tokens = await startApiServer(t, (asked, response) => {
    const given = new URLSearchParams(asked.body).get('token')
    if (asked.path === '/token')
      sendJson(response, 200, { access_token: token, token_type: 'bearer', expires_in: 3600 })
    else sendJson(response, 200, given === token ? { active: true, email: mailbox } : { active: false })
  })
  const next = await startSmtpServer(t)
  const server = await startDovecot(t, { nextPort: next.port, introspect: `${tokens.url}/introspect` })
  return { next, server, tokens }
}

for (const size of [40, 600, 4096])
  test(`a token of ${size} bytes goes through Dovecot to the next server`, { skip }, async (t) => {
    const { next, server, tokens } = await start(t, 'x'.repeat(size))
    const oauth = {
      ...{ tokenUrl: `${tokens.url}/token`, clientId: 'c', scope: null },
      grant: { kind: 'secret', secret: 's' },
    } as const
    const address = smtpTo(server.port, { credentials: { user: mailbox, oauth } })
    const session = await SmtpSession.open(address, AbortSignal.timeout(10_000))
    assert.ok(session instanceof SmtpSession, JSON.stringify(session))
    atEnd(t, () => session.close())
    const clearance = { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true }
    const submission = await session.submit(testMessage(), clearance)
    assert.equal(submission.kind, 'accepted', JSON.stringify(submission))
    assert.equal(next.received.length, 1)
  })

test('a token that Dovecot does not know is refused, with its explanation', { skip }, async (t) => {
  const { server, tokens } = await start(t, 'known')
  const other = await startApiServer(t, (_asked, response) =>
    sendJson(response, 200, { access_token: 'unknown', token_type: 'bearer', expires_in: 3600 }),
  )
  assert.ok(tokens.url)
  const oauth = {
    ...{ tokenUrl: other.url, clientId: 'c', scope: null },
    grant: { kind: 'secret', secret: 's' },
  } as const
  const address = smtpTo(server.port, { credentials: { user: mailbox, oauth } })
  const failure = await SmtpSession.open(address, AbortSignal.timeout(20_000))
  assert.ok(!(failure instanceof SmtpSession))
  assert.equal(failure.errorCode, 'EAUTH')
  assert.match(failure.reply.text, /^535 5\.7\.8 .*"status":"/)
})
