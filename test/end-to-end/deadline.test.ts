/** A relay that lists DELIVERBY (RFC 2852), and whose URL says `deadline=return`, gets the seconds left. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SmtpSession } from '../../src/delivery/relay/smtp/smtp-session.ts'
import { smtpTo } from '../support/service.ts'
import { type Script, startScriptedServer, testMessage } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'

async function openTo(t: TestContext, script: Script, returnsLate = true) {
  const server = await startScriptedServer(t, script)
  const session = await SmtpSession.open(smtpTo(server.port, { returnsLate }), AbortSignal.timeout(10_000))
  assert.ok(session instanceof SmtpSession)
  atEnd(t, () => session.close())
  const send = (lifeLeftMs: number) =>
    session.submit(testMessage(), { deadlineMs: performance.now() + lifeLeftMs, isLeaseValid: () => true })
  return { server, session, send, mails: () => server.transcript.filter((line) => line.startsWith('MAIL')) }
}

const plain = 'MAIL FROM:<auth@acme.test>'
const minuteMs = 60_000
const listed = (keyword: string) => `250-scripted\r\n250-PIPELINING\r\n250 ${keyword}`

for (const [keyword, lifeLeftMs, parameter] of [
  ['DELIVERBY', 15 * minuteMs + 500, ' BY=899;R'],
  ['deliverby', 15 * minuteMs + 500, ' BY=899;R'],
  ['DELIVERBY 600', 15 * minuteMs + 500, ' BY=899;R'],
  ['DELIVERBY 600,x-trace', 15 * minuteMs + 500, ' BY=899;R'],
  ['DELIVERBY 600', 10 * minuteMs + 1500, ' BY=600;R'],
  ['DELIVERBY 600', 10 * minuteMs - 1, ''],
  ['DELIVERBY', 1500, ' BY=1;R'],
  ['DELIVERBY 600', 999, ''],
  ['DELIVERBY', 1e13, ' BY=999999999;R'],
  ['DELIVERBY 9999999999', 15 * minuteMs, ''],
  ['DELIVERBY -5', 15 * minuteMs, ''],
  ['DELIVERBYX', 15 * minuteMs, ''],
  ['XDELIVERBY', 15 * minuteMs, ''],
  ['SIZE 1', 15 * minuteMs, ' SIZE=17'],
] as const)
  test(`${keyword}, ${lifeLeftMs / 1000} s left: MAIL has ${parameter || 'no parameter'}`, async (t) => {
    const { server, send, mails } = await openTo(t, { ehlo: listed(keyword) })
    assert.equal((await send(lifeLeftMs)).kind, 'accepted')
    assert.deepEqual(mails(), [plain + parameter])
    assert.equal(server.messages.length, 1)
  })

for (const keyword of ['DELIVERBY', 'DELIVERBY 1'])
  test(`${keyword}, less than a second left: the email is not sent, since the relay could hold it for days`, async (t) => {
    const { server, send } = await openTo(t, { ehlo: listed(keyword) })
    assert.deepEqual(await send(999), { kind: 'expired' })
    assert.deepEqual([server.transcript.slice(1), server.messages], [[], []])
  })

test('without DELIVERBY, an email is sent in its last second', async (t) => {
  const { send, mails } = await openTo(t, { ehlo: listed('HELP') })
  assert.equal((await send(999)).kind, 'accepted')
  assert.deepEqual(mails(), [plain])
})

test('without the option, nothing is asked of a relay that lists DELIVERBY: it would return what it cannot promise', async (t) => {
  const { send, mails } = await openTo(t, { ehlo: listed('DELIVERBY') }, false)
  assert.equal((await send(15 * minuteMs)).kind, 'accepted')
  assert.deepEqual(mails(), [plain])
})

for (const ehlo of [listed('DELIVERBY'), '250-scripted\r\n250 DELIVERBY'])
  for (const refusal of ['501 5.5.4 BY', '555 5.5.2 time 900 less than 3600', '455 4.5.1 later', '550 BY= not allowed'])
    test(`a relay that lists DELIVERBY and refuses it gets the email without it, ${ehlo.includes('PIPELINING') ? 'pipelined' : 'in turn'}: ${refusal}`, async (t) => {
      let isOpen = false
      const { server, session, send, mails } = await openTo(t, {
        ehlo,
        mail: () => {
          isOpen = !(server.transcript.at(-1) ?? '').includes('BY=')
          return isOpen ? '250 2.1.0 ok' : refusal
        },
        rcpt: () => (isOpen ? '250 2.1.5 ok' : '503 5.5.1 need MAIL'),
        data: () => (isOpen ? '354 go on' : '503 5.5.1 need RCPT'),
      })
      assert.equal((await send(15 * minuteMs + 500)).kind, 'accepted')
      assert.equal((await send(15 * minuteMs + 500)).kind, 'accepted')
      assert.deepEqual(mails(), [`${plain} BY=899;R`, plain, plain])
      assert.equal(server.messages.length, 2)
      assert.equal(session.closed, false)
    })

test('a sender that is refused is not a refused parameter', async (t) => {
  const { send, mails } = await openTo(t, { ehlo: listed('DELIVERBY'), mail: '550 5.7.1 sender rejected' })
  const submission = await send(15 * minuteMs + 500)
  assert.ok(submission.kind === 'failed' && submission.stage === 'sender')
  assert.deepEqual(mails(), [`${plain} BY=899;R`])
})

test('a relay that refuses MAIL and waits for a message behind it gets no second envelope', async (t) => {
  const { server, send } = await openTo(t, {
    ehlo: listed('DELIVERBY'),
    mail: () => ((server.transcript.at(-1) ?? '').includes('BY=') ? '501 5.5.4 BY' : '250 2.1.0 ok'),
  })
  const submission = await send(5000)
  assert.ok(submission.kind === 'failed' && !submission.failureClass.ambiguous)
  assert.deepEqual(server.messages, [])
})
