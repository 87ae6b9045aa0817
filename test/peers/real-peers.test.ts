/** Software that we did not write: `postern serve` through a real Postfix, judged by SpamAssassin. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import PostalMime from 'postal-mime'
import { emailTypes } from '../../src/domain/request/email-kinds.ts'
import { type RunningPostern, startServe } from '../support/cli.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { startPostfix } from '../support/postfix.ts'
import { relayTo, send, startTestService, validBody } from '../support/service.ts'
import { type Received, startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const noPostfix = lacking('postfix')
const noSpamAssassin = lacking('spamassassin')

async function sendAll(server: RunningPostern): Promise<void> {
  for (const type of emailTypes) {
    const body = validBody({
      type,
      to: `${type}@example.com`,
      organisationName: 'Größe GmbH',
      inviterName: 'Ada',
    })
    const answer = await send(`${server.api}/v1/email`, JSON.stringify(body), {
      authorization: `Bearer ${server.key}`,
      'content-type': 'application/json',
    })
    assert.equal(answer.status, 202)
  }
}

async function checkParts(received: Received, type: string): Promise<void> {
  const message = await PostalMime.parse(received.raw)
  assert.deepEqual(received.to, [`${type}@example.com`])
  assert.equal(message.from?.address, 'auth@acme.test')
  assert.ok((message.subject ?? '').length > 0)
  for (const part of [message.text, message.html])
    assert.ok(part?.includes('https://app.acme.test/auth?token=abc'), type)
  assert.match(message.messageId ?? '', /^<em_\w+\.\w{10}@acme\.test>$/)
  assert.equal(message.headers.find((header) => header.key === 'auto-submitted')?.value, 'auto-generated')
  if (type === 'organisation_invite')
    assert.ok(message.html?.includes('Größe GmbH') && message.text?.includes('Größe GmbH'))
}

test('postern serve delivers all four types through a real Postfix', { skip: noPostfix }, async (t) => {
  const sink = await startSmtpServer(t)
  const postfix = await startPostfix(t, sink.port)
  const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${postfix.port}` })
  await sendAll(server)
  await eventually(() => sink.received.length === emailTypes.length, 30_000)
  for (const type of emailTypes) {
    const received = sink.received.find((message) => message.to[0]?.startsWith(type))
    assert.ok(received, type)
    assert.match(received.raw, /^Received: .*\r\n\tby relay\.acme\.test \(Postfix\)/m)
    await checkParts(received, type)
  }
})

test('SpamAssassin’s local rules give each type at most 1.0', { skip: noSpamAssassin }, async (t) => {
  const sink = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(sink.port)] })
  for (const type of emailTypes) {
    await service.post(
      validBody({ type, to: `${type}@example.com`, organisationName: 'Booking.com', inviterName: 'Zoë' }),
    )
  }
  await eventually(() => sink.received.length === emailTypes.length)
  for (const { raw, to } of sink.received) {
    const report = execFileSync(toolPath('spamassassin'), ['-L', '-t'], { input: raw, encoding: 'utf8' })
    const score = Number(/^X-Spam-Status: .*score=(-?[\d.]+)/m.exec(report)?.[1])
    const rules = /tests=([\s\S]*?) autolearn/.exec(report)?.[1]?.replace(/\s+/g, '')
    t.diagnostic(`${to[0]}: ${score} (${rules})`)
    assert.ok(score <= 1.0, `${to[0]}: ${score}\n${report.slice(report.indexOf('Content analysis'))}`)
  }
})
