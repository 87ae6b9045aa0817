/** The dialogue of one message with servers that pipeline and servers that do not, byte for byte. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { connect } from '../../src/delivery/relay/smtp/connect.ts'
import { SmtpSession } from '../../src/delivery/relay/smtp/smtp-session.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { newTestRelay, relayTo, smtpTo } from '../support/service.ts'
import { type Script, startScriptedServer, startSmtpServer, testMessage } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const pipelining = '250-scripted\r\n250 PIPELINING'
const clearance = () => ({ deadlineMs: performance.now() + 60_000, isLeaseValid: () => true })

async function openTo(t: TestContext, port: number): Promise<SmtpSession> {
  const session = await SmtpSession.open(smtpTo(port), AbortSignal.timeout(10_000))
  assert.ok(session instanceof SmtpSession)
  atEnd(t, () => session.close())
  return session
}

async function converse(t: TestContext, script: Script) {
  const server = await startScriptedServer(t, script)
  return { server, session: await openTo(t, server.port) }
}

for (const [name, ehlo] of [
  ['with PIPELINING', pipelining],
  ['without extensions', '250 scripted'],
] as const) {
  test(`a session takes many messages, ${name}`, async (t) => {
    const { server, session } = await converse(t, { ehlo })
    for (let n = 0; n < 3; n++) assert.equal((await session.submit(testMessage(), clearance())).kind, 'accepted')
    const dialogue = ['MAIL FROM:<auth@acme.test>', 'RCPT TO:<ada@example.com>', 'DATA']
    assert.deepEqual(server.transcript.slice(1), [...dialogue, ...dialogue, ...dialogue])
    assert.equal(server.messages.length, 3)
    assert.equal(session.closed, false)
  })

  for (const [step, refusal] of [
    ['mail', '451 4.3.0 not now'],
    ['rcpt', '550 5.1.1 nobody'],
    ['data', '554 5.5.1 no'],
  ] as const) {
    test(`${step} refused ${name}: its reply counts, nothing is handed over, the session ends`, async (t) => {
      const { server, session } = await converse(t, { ehlo, [step]: refusal })
      const submission = await session.submit(testMessage(), clearance())
      assert.equal(submission.kind, 'failed')
      assert.equal(submission.reply.text, refusal)
      assert.equal(submission.stage, step === 'mail' ? 'sender' : 'recipient')
      assert.equal(session.closed, true)
      assert.deepEqual(server.messages, [])
    })
  }

  test(`expired while the relay dawdles at DATA ${name}: nothing is handed over`, async (t) => {
    const { server, session } = await converse(t, { ehlo, data: () => {} })
    const deadlineMs = performance.now() + 200
    assert.deepEqual(await session.submit(testMessage(), { ...clearance(), deadlineMs }), { kind: 'expired' })
    assert.equal(session.closed, true)
    assert.deepEqual(server.messages, [])
  })
}

test('MAIL, RCPT and DATA leave in one segment where the relay offers PIPELINING, one by one elsewhere', async (t) => {
  for (const [ehlo, segments] of [
    [pipelining, 1],
    ['250 scripted', 3],
  ] as const) {
    const seen: string[] = []
    const watch = (socket: Socket) => {
      socket.on('data', (chunk) => seen.push(chunk.toString()))
      socket.write('220 scripted\r\n')
    }
    const { session } = await converse(t, { ehlo, greeting: watch })
    await session.submit(testMessage(), clearance())
    const text = seen.join('')
    assert.match(text, /MAIL[^\n]*\n.*RCPT[^\n]*\n.*DATA\r\n.*\r\n\.\r\n$/s)
    const first = seen.findIndex((chunk) => chunk.startsWith('MAIL'))
    const last = seen.findIndex((chunk) => chunk.endsWith('DATA\r\n'))
    assert.equal(last - first + 1, segments)
  }
})

test('an extra reply to EHLO ends the session, not the process', async (t) => {
  const { session } = await converse(t, { ehlo: '250 scripted\r\n250 scripted' })
  const submission = await session.submit(testMessage(), clearance())
  assert.ok(submission.kind === 'failed' && submission.reply.code === null)
})

for (const ehlo of [pipelining, '250 scripted'])
  test(`what is no reply behind the reply to MAIL ends the submission, ${ehlo === pipelining ? 'with' : 'without'} PIPELINING`, async (t) => {
    const { server, session } = await converse(t, { ehlo, mail: '250 2.1.0 ok\r\nhello' })
    const submission = await session.submit(testMessage(), clearance())
    assert.ok(submission.kind === 'failed' && submission.stage === 'recipient')
    assert.deepEqual(server.messages, [])
  })

test('a relay that answers MAIL twice gets no message on a reply that was meant for RCPT', async (t) => {
  const { server, session } = await converse(t, { ehlo: pipelining, mail: '250 2.1.0 ok\r\n250 2.1.0 ok' })
  assert.equal((await session.submit(testMessage(), clearance())).kind, 'failed')
  assert.deepEqual(server.messages, [])
})

test('a reply too many, which would be taken for the one to the message, ends the session before it', async (t) => {
  const { server, session } = await converse(t, { ehlo: pipelining, rcpt: '250 2.1.5 ok\r\n250 2.1.5 ok' })
  const submission = await session.submit(testMessage(), clearance())
  assert.equal(submission.kind, 'failed')
  assert.equal(session.closed, true)
  assert.deepEqual(server.messages, [])
})

for (const ehlo of [pipelining, '250 scripted'])
  test(`a reply too many behind the one to DATA is not taken for the one to the message, ${ehlo === pipelining ? 'with' : 'without'} PIPELINING`, async (t) => {
    const { server, session } = await converse(t, { ehlo, data: '354 go on\r\n250 2.0.0 taken' })
    const submission = await session.submit(testMessage(), clearance())
    assert.ok(submission.kind === 'failed' && submission.stage === 'recipient')
    assert.deepEqual(server.messages, [])
  })

test('a late 354 is no reply to the message: nobody knows what the relay has done with it', async (t) => {
  const data = (socket: Socket) => void socket.write('250 2.0.0 go on\r\n')
  const { session } = await converse(t, { ehlo: '250 scripted', data, dot: '354 go on' })
  const submission = await session.submit(testMessage(), clearance())
  assert.ok(submission.kind === 'failed' && submission.failureClass.ambiguous)
  assert.equal(session.closed, true)
})

test('a second reply behind the one to the message ends the session, and the next message goes nowhere', async (t) => {
  const { server, session } = await converse(t, { dot: '250 2.0.0 taken\r\n421 4.3.2 good night' })
  assert.equal((await session.submit(testMessage(), clearance())).kind, 'accepted')
  const submission = await session.submit(testMessage(), clearance())
  assert.ok(submission.kind === 'failed' && submission.reply.code === null)
  assert.equal(server.messages.length, 1)
})

test('a relay that says something while the session is idle ends it', async (t) => {
  let relay: Socket | undefined
  const greeting = (socket: Socket) => {
    relay = socket
    socket.write('220 scripted\r\n')
  }
  const { session } = await converse(t, { greeting })
  assert.equal((await session.submit(testMessage(), clearance())).kind, 'accepted')
  const ended = new Promise<void>((resolve) => session.onEnd(resolve))
  relay?.write('421 4.3.2 good night\r\n')
  await ended
  assert.equal(session.closed, true)
})

test('what is no reply, behind the reply to the message, leaves no doubt about the message', async (t) => {
  const { session } = await converse(t, { dot: '250 2.0.0 taken\r\nhello' })
  assert.equal((await session.submit(testMessage(), clearance())).kind, 'accepted')
  assert.equal(session.closed, true)
})

test('dots at the beginning of lines arrive as they were', async (t) => {
  const { received, port } = await startSmtpServer(t)
  const session = await openTo(t, port)
  const text = '.a\r\n..\r\n.\r\nb.\r\n'
  await session.submit(testMessage({ bytes: Buffer.from(text) }), clearance())
  assert.equal(received[0]?.raw, text)
})

test('extensions are used where they are offered: SIZE and DSN, never SMTPUTF8, because every address is ASCII', async (t) => {
  const ehlo = '250-scripted\r\n250-SIZE 1000\r\n250-DSN\r\n250 SMTPUTF8'
  const { server, session } = await converse(t, { ehlo })
  await session.submit(testMessage({ to: 'dorte+a=b@example.com' as EmailAddress }), clearance())
  assert.deepEqual(server.transcript.slice(1), [
    'MAIL FROM:<auth@acme.test> SIZE=17 RET=HDRS ENVID=em_01m85rt6yr0000fykq7my1841e.0123456789',
    'RCPT TO:<dorte+a=b@example.com> NOTIFY=FAILURE,DELAY ORCPT=rfc822;dorte+2Ba+3Db@example.com',
    'DATA',
  ])
})

test('an address that would break a command is not sent', async (t) => {
  const { server, session } = await converse(t, {})
  const to = 'a@b.test>\r\nRCPT TO:<c@d.test' as EmailAddress
  assert.equal((await session.submit(testMessage({ to }), clearance())).kind, 'failed')
  assert.deepEqual(server.transcript.slice(1), [])
})

test('quit says QUIT and closes', async (t) => {
  const { server, session } = await converse(t, {})
  session.quit()
  assert.equal(session.closed, true)
  await eventually(() => server.transcript.includes('QUIT'))
})

test('TLS from the first byte at a port that greets in plain text: the failure says to use smtp', async (t) => {
  const server = await startScriptedServer(t, {})
  const failure = await connect(smtpTo(server.port, { tls: 'implicit' }), AbortSignal.timeout(10_000))
  assert.ok('reply' in failure)
  assert.equal(failure.errorCode, 'ESOCKET')
  assert.match(failure.reply.text, /^ESOCKET: the port answers in plain text; use the scheme smtp /)
})

test('nodemailer opens the connection and then has no part in it', async (t) => {
  const server = await startScriptedServer(t, { ehlo: pipelining })
  const connection = await connect(smtpTo(server.port), AbortSignal.timeout(10_000))
  assert.ok('socket' in connection)
  const { socket, extensions } = connection
  atEnd(t, () => socket.destroy())
  assert.deepEqual(extensions, { pipelining: true, dsn: false, size: false, deliverBySeconds: null })
  const own = new Socket()
  for (const event of ['data', 'timeout', 'close', 'end', 'error'] as const)
    assert.deepEqual(socket.listeners(event), own.listeners(event), event)
})

test('the time for connecting ends with the connection: what comes later is not cut', async (t) => {
  const server = await startScriptedServer(t, {})
  const connecting = new AbortController()
  const session = await SmtpSession.open(smtpTo(server.port), connecting.signal)
  assert.ok(session instanceof SmtpSession)
  atEnd(t, () => session.close())
  connecting.abort()
  assert.equal((await session.submit(testMessage(), clearance())).kind, 'accepted')
})

test('a link that expires while the relay works on the message it has: its reply counts', async (t) => {
  const deadlineMs = performance.now() + 2500
  const dot = (socket: Socket) =>
    setTimeout(() => socket.write('250 2.0.0 taken\r\n'), deadlineMs - performance.now() + 100)
  const { session } = await converse(t, { dot })
  assert.equal((await session.submit(testMessage(), { ...clearance(), deadlineMs })).kind, 'accepted')
})

test('the reply to the message may take ten minutes, those to commands one', async (t) => {
  const { session } = await converse(t, { ehlo: pipelining })
  const waits = t.mock.method(Socket.prototype, 'setTimeout')
  assert.equal((await session.submit(testMessage(), clearance())).kind, 'accepted')
  const given = waits.mock.calls.map(({ arguments: [ms] }) => ms)
  assert.deepEqual(given.slice(-2), [600_000, 60_000])
})

/** The milliseconds until TCP asks next whether the other end of a connection is there; null for never. */
function keepAliveInMs(port: number): number | null {
  const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n')
  const [, , , , , timer = ''] =
    rows.map((row) => row.trim().split(/\s+/)).find((row) => row[2]?.endsWith(remote)) ?? []
  const [kind, when = ''] = timer.split(':')
  return kind === '02' ? Number.parseInt(when, 16) * 10 : null
}

test('a relay that has vanished is noticed while its reply is awaited', {
  skip: process.platform !== 'linux' && 'it reads /proc',
}, async (t) => {
  const { server } = await converse(t, {})
  const inMs = await eventually(() => keepAliveInMs(server.port))
  assert.ok(inMs <= 30_000, `asks after ${inMs} ms`)
})

test('a session that ends while it is used again had handed nothing over', async (t) => {
  let mails = 0
  const mail = (socket: Socket) => (++mails === 1 ? socket.write('250 2.1.0 ok\r\n') : socket.destroy())
  const { session } = await converse(t, { mail })
  assert.equal((await session.submit(testMessage(), clearance())).kind, 'accepted')
  const second = await session.submit(testMessage(), clearance())
  assert.ok(second.kind === 'failed')
  assert.deepEqual([second.stage, second.failureClass.ambiguous], ['sender', false])
})

test('a worker that stops before the message is handed over gives it back', async (t) => {
  const { session } = await converse(t, { rcpt: () => {} })
  const submission = session.submit(testMessage(), clearance())
  await eventually(() => session.messages === 1)
  session.stop()
  assert.equal((await submission).kind, 'stopped')
})

for (const [name, second, kinds] of [
  ['a message that was handed over and got no reply', { dot: 'destroy' }, 'failed handed-over'],
  ['a refusal', { rcpt: '550 5.1.1 no' }, 'failed recipient'],
] as const)
  test(`on a session that is used again, ${name} is not sent once more`, async (t) => {
    const seen = { rcpt: 0, dot: 0 }
    const answer = (step: 'rcpt' | 'dot', usual: string) => (socket: Socket) => {
      const given = step in second ? Reflect.get(second, step) : usual
      const reply = ++seen[step] === 1 ? usual : given
      return reply === 'destroy' ? socket.destroy() : socket.write(`${reply}\r\n`)
    }
    const server = await startScriptedServer(t, {
      rcpt: answer('rcpt', '250 2.1.5 ok'),
      dot: answer('dot', '250 2.0.0 taken'),
    })
    const relay = newTestRelay({ ...relayTo(server.port), connectionsMax: 1 })
    atEnd(t, () => relay.close())
    assert.equal((await relay.submit(testMessage(), clearance())).kind, 'accepted')
    const submission = await relay.submit(testMessage(), clearance())
    assert.equal(`${submission.kind} ${'stage' in submission && submission.stage}`, kinds)
    assert.equal(seen.rcpt, 2)
  })
