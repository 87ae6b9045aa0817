/** The bounce listener: reports that come by SMTP. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import type { EmailId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { BounceListener } from '../../src/reports/bounce-listener.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { writeReport } from '../support/reports.ts'
import { relayTo, startTestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { handReport, openDialogue } from '../support/smtp-dialogue.ts'
import { eventually } from '../support/wait.ts'

const relay = await startSmtpServer({ after })
const bounceAddress = 'bounces@bounce.acme.test' as EmailAddress
const bounce = { address: { host: '127.0.0.1', port: 0 }, tls: null }
const service = await startTestService({ after }, { relays: [relayTo(relay.port)], bounceAddress, bounce })
const { store } = service
const port = Number(new URL(service.urls.bounce ?? '').port)

async function deliver(to: string): Promise<{ id: EmailId; sender: string }> {
  const answer = await service.post(validBody({ to }))
  const id = (answer.headers.get('email-id') ?? '') as EmailId
  await eventually(async () => (await store.findEmail(id))?.state === 'delivered')
  return { id, sender: relay.received.find(({ raw }) => raw.includes(id))?.from ?? '' }
}

const state = async (id: EmailId) => (await store.findEmail(id))?.state

const open = (at = port) => openDialogue(at)
const hand = (to: string, report: string, at = port) => handReport(at, { to, report })

test('a report to the bounce address of an email is recorded before it is answered', async () => {
  const { id, sender } = await deliver('ada@example.com')
  const report = writeReport({ to: sender, recipient: 'ada@example.com' })
  assert.match(await hand(sender, report), /^250/)
  assert.equal(await state(id), 'bounced')
  assert.match(await hand(sender.toUpperCase(), report), /^250/, 'a report that is known already is taken')
  const metrics = await (await fetch(`${service.urls.ops}/metrics`)).text()
  assert.match(metrics, /postern_reports_total\{source="mail",kind="bounced",cause="no_mailbox"\} 1\n/)
  assert.ok(service.log.some((line) => line.includes(id) && line.includes('"finding":"bounced"')))
  assert.ok(!service.log.join('').includes('ada@example.com'))
})

test('strangers are refused at RCPT, and after 20 of them the session ends', async () => {
  const { id, sender } = await deliver('bea@example.com')
  const { say, ehlo, isClosed } = await open()
  await ehlo()
  await say('MAIL FROM:<someone@example.com>')
  const forged = sender.replace(/.{10}@/, '0123456789@')
  for (const to of ['ada@example.com', forged, `bounces+${id}@bounce.acme.test`])
    assert.match(await say(`RCPT TO:<${to}>`), /^550 5\.1\.1/)
  for (let n = 3; n < 20; n++) assert.match(await say(`RCPT TO:<x${n}@example.com>`), /^550/)
  assert.match(await say('RCPT TO:<x@example.com>'), /^421/)
  await eventually(isClosed)
  assert.equal(await state(id), 'delivered')
})

test('complaints come to the bare bounce address; a message has one recipient', async () => {
  const { id, sender } = await deliver('cleo@example.com')
  const reference = store.makeReference(id)
  const complaint = `Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nFeedback-Type: abuse\r\n\r\n--b\r\n\r\nMessage-ID: <${reference}@acme.test>\r\n--b--`
  const { say, ehlo, socket } = await open()
  await ehlo()
  await say('MAIL FROM:<fbl@example.com>')
  assert.match(await say('RCPT TO:<Bounces@bounce.acme.test>'), /^250/)
  assert.match(await say(`RCPT TO:<${sender}>`), /^452 4\.5\.3/)
  socket.destroy()
  assert.match(await hand('bounces@bounce.acme.test', complaint), /^250/)
  assert.equal(await state(id), 'complained')
})

test('mail that is no report is taken and dropped: a bounce is never bounced', async () => {
  const { id, sender } = await deliver('dora@example.com')
  assert.match(await hand(sender, 'Subject: Hello\r\n\r\nHello there'), /^250/)
  assert.match(await hand(sender, ''), /^250/)
  assert.match(await hand('bounces@bounce.acme.test', writeReport({ to: 'x', recipient: 'x@y.z' })), /^250/)
  assert.equal(await state(id), 'delivered')
  const metrics = await (await fetch(`${service.urls.ops}/metrics`)).text()
  assert.match(metrics, /postern_reports_unmatched_total\{source="mail"\} [3-9]\n/)
  // The last one says that a mailbox does not exist, but without a reference nobody reads that.
  const unmatched = service.log.filter((line) => line.includes('"result":"unmatched"'))
  assert.ok(unmatched.length > 0 && unmatched.every((line) => line.includes('"finding":"other"')))
})

test('a report about an email in the queue is answered 451, and taken once the email has ended', async () => {
  const held = await startTestService({ after }, { roles: new Set(['api', 'reports'] as const), bounce })
  const id = ((await held.post(validBody())).headers.get('email-id') ?? '') as EmailId
  const to = `b+${held.store.makeReference(id)}@acme.test`
  const at = Number(new URL(held.urls.bounce ?? '').port)
  const report = writeReport({ to, recipient: 'ada@example.com' })
  assert.match(await hand(to, report, at), /^451 4\.3\.0/)
  const [claim] = (await held.store.claimDue({ max: 1, perApp: 1, leases: [] })).claims
  assert.ok(claim)
  await held.store.recordOutcome(claim, { kind: 'expired' })
  assert.match(await hand(to, report, at), /^250/)
})

test('while the store does not answer, reports are answered 451, and strangers 550 all the same', async (t) => {
  const { id, sender } = await deliver('ella@example.com')
  const down = () => Promise.reject(new StoreUnavailable('down'))
  const events: string[] = []
  const listener = new BounceListener(
    {
      store: { ...store, findReported: down, recordReport: down },
      sealRecipient: () => '',
      emit: ({ kind }) => void events.push(kind),
    },
    { ...bounce, bounceAddress },
  )
  t.after(() => listener.close())
  const at = Number(new URL(await listener.listen()).port)
  assert.match(await hand(sender, writeReport({ to: sender, recipient: 'ella@example.com' }), at), /^451/)
  assert.match(await hand('x@example.com', '', at), /^550/)
  assert.deepEqual(events, [])
  assert.equal(await state(id), 'delivered')
})

test('a report of 512 KiB is taken; a larger one is refused by its size or after it', async () => {
  const reportMax = 512 * 1024
  const { id, sender } = await deliver('fay@example.com')
  const report = writeReport({ to: sender, recipient: 'fay@example.com' })
  const { say, ehlo, socket } = await open()
  await ehlo()
  assert.match(await say(`MAIL FROM:<> SIZE=${reportMax + 1}`), /^552/)
  socket.destroy()
  const line = `${'x'.repeat(998)}\r\n`
  const fill = (size: number) => report + line.repeat(Math.ceil((size - report.length) / line.length))
  assert.match(await hand(sender, fill(reportMax + 2000)), /^552 5\.3\.4/)
  assert.equal(await state(id), 'delivered')
  assert.match(await hand(sender, fill(reportMax - 2000)), /^250/)
  assert.equal(await state(id), 'bounced')
})

test('prose counts as a report if its sender is empty, as that of a mail server', async () => {
  const { id, sender } = await deliver('hal@example.com')
  const prose =
    'From: help@example.com\r\nSubject: Your mail\r\n\r\nIt could not be delivered: 550 5.1.1 user unknown\r\n'
  const send = async (from: string) => {
    const { say, ehlo, socket } = await open()
    await ehlo()
    for (const command of [`MAIL FROM:<${from}>`, `RCPT TO:<${sender}>`, 'DATA']) await say(command)
    assert.match(await say(`${prose}.`), /^250/)
    socket.end()
    return state(id)
  }
  assert.equal(await send('help@example.com'), 'delivered')
  assert.equal(await send(''), 'bounced')
})

test('no AUTH, no other verbs, and ten unknown commands end the session', async () => {
  const { say, ehlo, socket } = await open()
  socket.write('EHLO mx.example.com\r\n')
  assert.doesNotMatch(await ehlo(), /AUTH|STARTTLS/)
  for (const command of ['AUTH PLAIN AGEAYg==', 'STARTTLS', 'FOO']) assert.match(await say(command), /^5\d\d/, command)
  for (let n = 0; n < 6; n++) await say('FOO')
  assert.match(await say('FOO'), /^421/)
})

test('with a certificate the session may be encrypted, and a report comes through', async (t) => {
  const file = (name: string) => fileURLToPath(new URL(`../support/tls/localhost.${name}.pem`, import.meta.url))
  const tls = { certFile: file('cert'), keyFile: file('key') }
  const { id, sender } = await deliver('gail@example.com')
  const listener = new BounceListener(
    { store, emit: () => {}, sealRecipient: () => '' },
    { ...bounce, tls, bounceAddress: null },
  )
  t.after(() => listener.close())
  const at = Number(new URL(await listener.listen()).port)
  const ca = readFileSync(tls.certFile)
  const connection = new SMTPConnection({
    host: '127.0.0.1',
    port: at,
    requireTLS: true,
    tls: { ca, servername: 'localhost' },
  })
  await new Promise<void>((resolve, reject) => connection.connect((error) => (error ? reject(error) : resolve())))
  assert.equal(connection.secure, true)
  const report = writeReport({ to: sender, recipient: 'gail@example.com' })
  await new Promise<void>((resolve, reject) =>
    connection.send({ from: '', to: sender }, report, (error) => (error ? reject(error) : resolve())),
  )
  connection.quit()
  assert.equal(await state(id), 'bounced')
})
