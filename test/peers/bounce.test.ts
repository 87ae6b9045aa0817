/** A bounce of a real Postfix must not carry the live link back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { lacking } from '../support/installed.ts'
import { startPostfix } from '../support/postfix.ts'
import { relayTo, startTestService, validBody } from '../support/service.ts'
import { startScriptedServer, startSmtpServer } from '../support/smtp.ts'
import type { Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking({ postfix: '/usr/sbin/postfix' }, { root: true })
const token = 'live-token-4711'

/** A Postfix whose next hop refuses ada@example.com, and takes the bounce to the sender. */
async function startBouncingPostfix(t: Scope) {
  const nextHop = await startSmtpServer(t, {
    onRcptTo: ({ address }, _session, callback) =>
      address === 'ada@example.com'
        ? callback(Object.assign(new Error('5.1.1 no such user'), { responseCode: 550 }))
        : callback(),
  })
  const postfix = await startPostfix(t, nextHop.port)
  return { postfix, bounce: () => eventually(() => nextHop.received[0], 30_000) }
}

test('a bounce returns the headers only, and names the email', { skip }, async (t) => {
  const { postfix, bounce } = await startBouncingPostfix(t)
  const service = await startTestService(t, { relays: [relayTo(postfix.port)] })
  const url = `https://app.acme.test/auth?token=${token}`
  const answer = await service.post(validBody({ to: 'ada@example.com', url }))
  const id = answer.headers.get('email-id') ?? ''
  const { from, to, raw } = await bounce()
  assert.deepEqual([from, to], ['', ['auth@acme.test']])
  assert.match(raw, /Content-Type: text\/rfc822-headers/i)
  assert.match(raw, new RegExp(`^Original-Envelope-ID: ${id}\\.\\w{10}`, 'im'))
  assert.match(raw, /^Original-Recipient: rfc822;ada@example\.com/im)
  assert.match(raw, new RegExp(`^Message-ID: <${id}\\.\\w{10}@acme\\.test>`, 'im'))
  assert.ok(!raw.includes(token), 'the link travelled back')
})

test('without the DSN parameters the same Postfix returns the link', { skip }, async (t) => {
  const { postfix, bounce } = await startBouncingPostfix(t)
  const connection = new SMTPConnection({ host: '127.0.0.1', port: postfix.port, ignoreTLS: true })
  const envelope = { from: 'auth@acme.test', to: 'ada@example.com' }
  await new Promise<void>((resolve) => connection.connect(() => resolve()))
  await new Promise((resolve) => connection.send(envelope, `Subject: x\r\n\r\n${token}\r\n`, resolve))
  connection.quit()
  assert.ok((await bounce()).raw.includes(token))
})

test('a relay without DSN gets no parameters', async (t) => {
  const relay = await startScriptedServer(t, { ehlo: '250-scripted\r\n250 SIZE 1000000' })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  await service.post(validBody())
  await eventually(() => relay.messages.length === 1)
  const commands = relay.transcript.filter((line) => /^(MAIL|RCPT)/.test(line))
  assert.match(commands[0] ?? '', /^MAIL FROM:<auth@acme\.test> SIZE=\d+$/)
  assert.equal(commands[1], 'RCPT TO:<ada@example.com>')
})
