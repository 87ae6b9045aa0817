/** Hostile clients of the bounce listener: none is served without bound, and proper ones come through. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { reportMax } from '../../src/domain/bounds.ts'
import type { EmailId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { BounceListener, type BounceListenerOptions } from '../../src/reports/bounce-listener.ts'
import { writeReport } from '../support/reports.ts'
import { relayTo, startTestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { beginData, handReport, openDialogue } from '../support/smtp-dialogue.ts'
import { atEnd, type Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const relay = await startSmtpServer({ after })
const bounceAddress = 'bounces@bounce.acme.test' as EmailAddress
const bounce = { address: { host: '127.0.0.1', port: 0 }, tls: null }
const service = await startTestService({ after }, { relays: [relayTo(relay.port)], bounceAddress, bounce })
const { store } = service

/** A listener on the store of the service. `calls` counts what it asks of it. */
async function listen(scope: Scope, options: Partial<BounceListenerOptions> = {}) {
  const calls = { openReference: 0, findReported: 0, recordReport: 0 }
  const counted: typeof store = {
    ...store,
    openReference: (reference) => {
      calls.openReference += 1
      return store.openReference(reference)
    },
    findReported: (id) => {
      calls.findReported += 1
      return store.findReported(id)
    },
    recordReport: (reports) => {
      calls.recordReport += 1
      return store.recordReport(reports)
    },
  }
  const events: string[] = []
  const listener = new BounceListener(
    { store: counted, sealRecipient: () => '', emit: ({ kind }) => void events.push(kind) },
    { ...bounce, bounceAddress, ...options },
  )
  const port = Number(new URL(await listener.listen()).port)
  atEnd(scope, () => listener.close())
  return { calls, events, listener, port }
}

async function deliver(to: string): Promise<{ id: EmailId; to: string; report: string }> {
  const id = ((await service.post(validBody({ to }))).headers.get('email-id') ?? '') as EmailId
  const { from } = await eventually(() => relay.received.find(({ raw }) => raw.includes(id)))
  await eventually(async () => (await store.findEmail(id))?.state === 'delivered')
  return { id, to: from, report: writeReport({ to: from, recipient: to }) }
}

const state = async (id: EmailId) => (await store.findEmail(id))?.state

const file = (name: string) => fileURLToPath(new URL(`../support/tls/localhost.${name}.pem`, import.meta.url))
const tls = { certFile: file('cert'), keyFile: file('key') }

test('1,000 clients at once that say nothing do not keep a report out', async (t) => {
  const { calls, port } = await listen(t, { isProxy: () => false })
  const email = await deliver('ada@example.com')
  const heard = { greetings: 0, ended: 0 }
  const clients: Socket[] = []
  atEnd(t, () => {
    for (const socket of clients) socket.destroy()
  })
  for (let n = 0; n < 1000; n++) {
    // Loopback has as many networks as the test needs.
    const localAddress = `127.${1 + (n % 100)}.1.1`
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    clients.push(socket)
    socket.on('data', (chunk) => {
      if (chunk.includes('220 ')) heard.greetings += 1
    })
    socket.on('error', () => {}).once('close', () => void heard.ended++)
  }
  await eventually(() => heard.greetings >= 50 && heard.ended === 950)
  assert.match(await handReport(port, email), /^250/)
  assert.equal(await state(email.id), 'bounced')
  assert.equal(calls.recordReport, 1)
  await eventually(() => heard.ended === 951)
})

test('one client has six messages in progress at once, and others are served', async (t) => {
  const { port } = await listen(t, { isProxy: () => false })
  const email = await deliver('gus@example.com')
  const own = await Promise.all(Array.from({ length: 6 }, () => beginData(port, email.to, '127.0.2.1')))
  atEnd(t, () => {
    for (const { socket } of own) socket.destroy()
  })
  const seventh = connect({ port, host: '127.0.0.1', localAddress: '127.0.2.1' })
  const [refusal] = await once(seventh, 'data')
  assert.match(String(refusal), /^421 4\.7\.0 Too many connections/)
  if (!seventh.closed) await once(seventh, 'close')
  assert.ok(own.every(({ isClosed }) => !isClosed()))
  assert.match(await handReport(port, email), /^250/)
  const [first] = own
  assert.match((await first?.say('Hello\r\n.')) ?? '', /^250/)
  await openDialogue(port, '127.0.2.1') // in the place of the first, which is idle now
  await eventually(() => first?.isClosed() === true)
})

test('a session that goes on is not the one that has been idle longest', async (t) => {
  const { port } = await listen(t, { isProxy: () => false })
  const { to } = await deliver('hana@example.com')
  const [first, second] = [await openDialogue(port, '127.0.2.3'), await openDialogue(port, '127.0.2.3')]
  await first.ehlo()
  await first.say('MAIL FROM:<>')
  for (let n = 0; n < 5; n++) (await openDialogue(port, '127.0.2.3')).socket.on('error', () => {})
  await eventually(second.isClosed)
  assert.match(await first.say(`RCPT TO:<${to}>`), /^250/)
})

test('connections that ended after STARTTLS count no more', async (t) => {
  const { port } = await listen(t, { tls, isProxy: () => false })
  const held = await Promise.all(Array.from({ length: 4 }, () => beginData(port, bounceAddress, '127.0.2.2')))
  const idle = await openDialogue(port, '127.0.2.2')
  atEnd(t, () => {
    for (const { socket } of held) socket.destroy()
  })
  const client = new SMTPConnection({
    host: '127.0.0.1',
    localAddress: '127.0.2.2',
    port,
    requireTLS: true,
    tls: { rejectUnauthorized: false },
  })
  await new Promise<void>((resolve, reject) =>
    client.once('error', reject).connect((error) => (error ? reject(error) : resolve())),
  )
  const ended = once(client, 'end')
  client.quit()
  await ended
  for (let n = 0; n < 5; n++) assert.match(await idle.say('NOOP'), /^250/) // the server sees the end meanwhile
  const next = await openDialogue(port, '127.0.2.2')
  assert.match(await idle.ehlo(), /^250/, 'it was not closed to make room')
  assert.match(await next.ehlo(), /^250/)
})

test('a message without end, drops of it, and a handshake that stops all end with the time of the session', async (t) => {
  const { calls, events, port } = await listen(t, { tls, times: { stepMs: 60_000, sessionMs: 1500 } })
  const { to } = await deliver('bea@example.com')
  const fast = await beginData(port, to)
  const line = Buffer.from(`${'x'.repeat(1000)}\r\n`.repeat(60))
  const pour = async () => {
    while (!fast.isClosed()) {
      const isWritten = fast.socket.write(line)
      await sleep(isWritten ? 0 : 5)
    }
  }
  const slow = await beginData(port, to)
  const drip = async () => {
    while (!slow.isClosed()) {
      slow.socket.write('x')
      await sleep(20)
    }
  }
  const handshake = await openDialogue(port)
  await handshake.ehlo()
  assert.match(await handshake.say('STARTTLS'), /^220/)
  handshake.socket.write(Buffer.from('1603010200010001', 'hex'))
  await Promise.all([pour(), drip(), eventually(handshake.isClosed)])
  assert.deepEqual([calls.findReported, calls.recordReport, events.length], [0, 0, 0])
})

test('it stops while sessions are open, and a report in progress is not lost: its sender hears no 250', {
  timeout: 20_000,
}, async (t) => {
  const { listener, port } = await listen(t)
  const { id, to, report } = await deliver('cleo@example.com')
  const idle = await openDialogue(port)
  const half = await beginData(port, to)
  half.socket.write(report)
  await listener.close()
  await eventually(() => idle.isClosed() && half.isClosed())
  assert.match(await half.say('.'), /^421|closed/)
  assert.equal(await state(id), 'delivered')

  const other = await startTestService(t, { roles: new Set(['reports'] as const), bounce, bounceAddress })
  const at = Number(new URL(other.urls.bounce ?? '').port)
  const last = [await openDialogue(at), await beginData(at, bounceAddress)]
  await other.stop()
  await eventually(() => last.every(({ isClosed }) => isClosed()))
  assert.ok(!other.log.join('').includes('"level":50'), other.log.join(''))
})

test('a flood of recipients never reaches the store', async (t) => {
  const { calls, port } = await listen(t)
  const { to } = await deliver('dora@example.com')
  const flood = async (address: string, before = '') => {
    const { socket, ehlo, isClosed, say } = await openDialogue(port)
    await ehlo()
    await say('MAIL FROM:<>')
    let text = ''
    socket.on('data', (chunk) => (text += chunk))
    socket.write(`${before}${`RCPT TO:<${address}>\r\n`.repeat(10_000)}QUIT\r\n`)
    await eventually(isClosed)
    return text
  }
  const strangers = await flood('ada@example.com')
  assert.equal(strangers.match(/^550/gm)?.length, 20)
  assert.match(strangers, /^421 4\.7\.0 /m)
  assert.deepEqual(calls, { openReference: 0, findReported: 0, recordReport: 0 })
  await flood(to.replace(/.{10}@/, '0123456789@'))
  assert.equal(calls.openReference, 21)
  calls.openReference = 0
  const many = await flood(to, `RCPT TO:<${to}>\r\n`)
  assert.equal(many.match(/^452/gm)?.length, 10_000)
  assert.equal(calls.openReference, 1)
  await flood(`${'em_'.repeat(20)}@example.com`)
  assert.deepEqual(calls, { openReference: 1, findReported: 0, recordReport: 0 })
})

test('a client that sends much is refused for a while, and reports of others are taken', async (t) => {
  const { calls, events, port } = await listen(t, { isProxy: () => false })
  const { to, report, id } = await deliver('ida@example.com')
  const localAddress = '127.0.2.4'
  const big = { to: bounceAddress, report: `${'x'.repeat(998)}\r\n`.repeat(500), localAddress }
  await eventually(async () => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => handReport(port, big)))
    return answers.some((answer) => answer.startsWith('451 4.7.0'))
  })
  assert.deepEqual([calls.findReported, calls.recordReport], [0, 0])
  assert.match(await handReport(port, { to: bounceAddress, report: 'Hello' }), /^250/)
  assert.match(await handReport(port, { to, report, localAddress }), /^250/, 'it knows a reference')
  assert.equal(await state(id), 'bounced')
  assert.ok(!events.includes('bug'))
})

test('of reports that end together, one is read in each turn of the event loop', async (t) => {
  let turn = 0
  let tick = setImmediate(function next() {
    turn += 1
    tick = setImmediate(next)
  })
  atEnd(t, () => clearImmediate(tick))
  const turns: number[] = []
  const listener = new BounceListener(
    { store, sealRecipient: () => '', emit: () => void turns.push(turn) },
    { ...bounce, bounceAddress },
  )
  const port = Number(new URL(await listener.listen()).port)
  atEnd(t, () => listener.close())
  const clients = await Promise.all(Array.from({ length: 20 }, () => beginData(port, bounceAddress)))
  await Promise.all(clients.map(({ say }) => say('Hello\r\n.')))
  assert.deepEqual([turns.length, new Set(turns).size], [20, 20])
  for (const { socket } of clients) socket.destroy()
})

test('large messages are read in pieces, and a small one waits for a piece of each', async (t) => {
  const { port } = await listen(t)
  const answered: string[] = []
  const large = await Promise.all(Array.from({ length: 4 }, () => beginData(port, bounceAddress)))
  const text = `${'x'.repeat(998)}\r\n`.repeat(900)
  const answers = large.map(({ say }) => say(`${text}.`).then(() => answered.push('large')))
  await handReport(port, { to: bounceAddress, report: 'Hello' })
  answered.push('small')
  await Promise.all(answers)
  assert.equal(answered[0], 'small')
  for (const { socket } of large) socket.destroy()
})

test('a message that does not end is cut off', async (t) => {
  const { calls, events, port } = await listen(t, { isProxy: () => false })
  const { isClosed, socket } = await beginData(port, bounceAddress, '127.0.2.5')
  const line = `${'x'.repeat(998)}\r\n`
  let sent = 0
  while (!isClosed()) {
    sent += line.length * 64
    if (socket.write(line.repeat(64))) continue
    await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
    socket.removeAllListeners('drain')
  }
  assert.ok(sent < 64 * 1024 * 1024)
  assert.deepEqual([calls.findReported, calls.recordReport, events], [0, 0, []])
})

test('NUL bytes, long lines and long commands: a report among them counts, and none harms', async (t) => {
  const { events, port } = await listen(t)
  const email = await deliver('ella@example.com')
  const command = await openDialogue(port)
  assert.match(await command.say('x'.repeat(1024 * 1024)), /^421/)
  const nul = await openDialogue(port)
  assert.match(await nul.say('EHLO a\0b'), /^5/)
  assert.match(await nul.say('\0'.repeat(1000)), /^500/)
  const big = 'x'.repeat(1024 * 1024)
  assert.match(await handReport(port, { to: email.to, report: `Subject: ${big}` }), /^552/)
  assert.match(await handReport(port, { to: email.to, report: '\0'.repeat(reportMax - 2) }), /^250/)
  assert.match(await handReport(port, { to: email.to, report: 'a:'.repeat(reportMax / 2 - 2) }), /^250/)
  assert.equal(await state(email.id), 'delivered')
  const long = `X-Long: ${'y\0'.repeat(200 * 1024)}\r\n${email.report}`
  assert.match(await handReport(port, { ...email, report: long }), /^250/)
  assert.equal(await state(email.id), 'bounced')
  assert.ok(!events.includes('bug'))
})
