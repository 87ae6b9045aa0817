/**
 * If a relay refuses an email and does not blame its recipient, a second relay sends it; with one relay, it
 * waits. If a receiver refuses it through a relay, it has failed at once.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EmailId } from '../../../src/domain/id.ts'
import { ask, newManagementToken } from '../../support/management.ts'
import { freePort } from '../../support/ports.ts'
import { accountReplies, receiverReplies } from '../../support/refusals.ts'
import { relayTo, startTestService, type TestService, testSettings, validBody } from '../../support/service.ts'
import { type Script, startScriptedServer, startSmtpServer } from '../../support/smtp.ts'
import type { Scope } from '../../support/temporary.ts'
import { eventually, repeat } from '../../support/wait.ts'

const post = (service: TestService, count: number): Promise<EmailId[]> =>
  repeat(count, async (n) => {
    const answer = await service.post(validBody({ to: `ada+${n}@example.com` }, service.store.now()))
    assert.equal(answer.status, 202, JSON.stringify(answer.body))
    return answer.headers.get('email-id') as EmailId
  })

const find = (service: TestService, ids: readonly EmailId[]) =>
  Promise.all(ids.map((id) => service.store.findEmail(id)))

/** Two relays, of which the second takes everything. */
async function startWithTwo(t: Scope, script: Script) {
  const first = await startScriptedServer(t, script)
  const second = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(first.port), relayTo(second.port)] })
  return { first, second, service }
}

const at = (step: keyof Script, reply: string) => ({ step, reply })
const refused = [
  ...accountReplies.filter((_, n) => n % 25 === 0).map((reply) => at('dot', reply)), // `blame.test.ts` has all
  at('greeting', '554 5.7.1 Service unavailable; client blocked'),
  at('greeting', '421 4.3.2 too many connections'),
  at('ehlo', '550 5.7.1 access denied'),
  at('mail', '550 5.1.1 no such account'),
  at('mail', '451 4.3.0 try again later'),
  at('rcpt', '554 5.7.1 <ada@example.com>: Relay access denied'),
  at('rcpt', '450 4.7.1 Error: too much mail from 192.0.2.1'),
  at('data', '554 5.5.1 transaction refused'),
]

for (const { step, reply } of refused)
  test(`the second relay sends what the first refuses at ${step}: ${reply}`, async (t) => {
    const { second, service } = await startWithTwo(t, { [step]: reply })
    const ids = await post(service, 10)
    await eventually(() => second.received.length >= ids.length)
    await eventually(async () => (await find(service, ids)).every((email) => email?.state === 'delivered'))
    const recipients = second.received.map(({ to }) => to.join())
    assert.equal(new Set(recipients).size, recipients.length, 'none twice')
  })

for (const reply of receiverReplies.filter((text, n) => text.startsWith('5') && n % 10 === 0))
  test(`a recipient’s refusal is final, and no other relay is asked: ${reply}`, async (t) => {
    const { first, second, service } = await startWithTwo(t, { rcpt: reply })
    const ids = await post(service, 10)
    await eventually(async () => (await find(service, ids)).every((email) => email?.state === 'failed'))
    assert.equal(first.transcript.filter((line) => line.startsWith('RCPT')).length, ids.length)
    assert.deepEqual(second.received, [])
  })

test('with one relay, mail that all is refused waits, is the headline, and leaves once the relay takes it', async (t) => {
  let dot = '554 Message rejected: Sending paused for this account.'
  const relay = await startScriptedServer(t, { dot: (socket) => void socket.write(`${dot}\r\n`) })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const refused = await post(service, 4)
  await eventually(async () => (await find(service, refused)).every((email) => email?.state === 'deferred'))
  const token = await newManagementToken(service)
  const [attention] = await eventually(async () => {
    const { body } = await ask(service, 'GET /v1/status', { token })
    return body.attention?.[0]?.kind === 'no_relay' && body.attention
  })
  assert.match(attention.message, /^Nothing has been delivered since .* answers “554 Message rejected: Sending paused/)
  dot = '250 2.0.0 taken'
  const [next = ''] = await post(service, 1)
  await eventually(async () => (await find(service, [next as EmailId]))[0]?.state === 'delivered')
  await eventually(async () => (await find(service, refused)).every((email) => email?.state === 'delivered'))
})

test('an email that the relay refuses while it takes others is refused for good', async (t) => {
  let isRefused = true
  const relay = await startScriptedServer(t, {
    dot: (socket) => void socket.write(isRefused ? '554 5.7.1 looks like spam\r\n' : '250 2.0.0 taken\r\n'),
  })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const [refused = ''] = await post(service, 1)
  await eventually(async () => (await find(service, [refused as EmailId]))[0]?.state === 'deferred')
  isRefused = false
  const [other = ''] = await post(service, 1)
  await eventually(async () => (await find(service, [other as EmailId]))[0]?.state === 'delivered')
  isRefused = true
  const record = await eventually(async () => {
    const [email] = await find(service, [refused as EmailId])
    return email?.state === 'failed' ? email : null
  })
  assert.deepEqual([record.attempts, record.trail.at(-1)?.reply?.text], [2, '554 5.7.1 looks like spam'])
})

test('while the other relay is down, an email that a relay refuses waits, though that relay takes others', async (t) => {
  const refusal = Object.assign(new Error('5.7.1 your domain is not verified'), { responseCode: 554 })
  const first = await startSmtpServer(t, {
    onRcptTo: ({ address }, _session, done) => done(address === 'ada+0@example.com' ? refusal : null),
  })
  const service = await startTestService(t, { relays: [relayTo(first.port), relayTo(await freePort())] })
  const [refused = '', other = ''] = await post(service, 2)
  await eventually(async () => (await find(service, [other as EmailId]))[0]?.state === 'delivered')
  const twice = await eventually(async () => {
    const [email] = await find(service, [refused as EmailId])
    return email?.attempts === 2 && email.state !== 'sending' ? email : null
  })
  assert.equal(twice.state, 'deferred')
})

test('two relays that refuse one account let an email wait', async (t) => {
  const paused = '554 Message rejected: Sending paused for this account; your account is under review'
  const [first, second] = [await startScriptedServer(t, { dot: paused }), await startScriptedServer(t, { dot: paused })]
  const service = await startTestService(t, { relays: [relayTo(first.port), relayTo(second.port)] })
  const ids = await post(service, 1)
  await eventually(async () => (await find(service, ids))[0]?.state === 'deferred')
  assert.deepEqual([first.messages.length, second.messages.length], [1, 1])
})

test('two relays that both refuse an email for good end it', async (t) => {
  const [first, second] = [
    await startScriptedServer(t, { dot: '554 no, too long' }),
    await startScriptedServer(t, { dot: '554 no' }),
  ]
  const service = await startTestService(t, { relays: [relayTo(first.port), relayTo(second.port)] })
  const ids = await post(service, 1)
  await eventually(async () => (await find(service, ids))[0]?.state === 'failed')
  assert.deepEqual([first.messages.length, second.messages.length], [1, 1])
})

test('a relay that takes fourteen a second gets no more once it has said so', async (t) => {
  const taken: number[] = []
  let refusals = 0
  const relay = await startScriptedServer(t, {
    dot: (socket) => {
      const now = performance.now()
      if (taken.filter((at) => now - at < 1000).length >= 14) {
        refusals += 1
        return void socket.write('454 Throttling failure: Maximum sending rate exceeded.\r\n')
      }
      taken.push(now)
      socket.write('250 2.0.0 taken\r\n')
    },
  })
  const service = await startTestService(t, {
    relays: [relayTo(relay.port)],
    settings: { limits: { ...testSettings.limits, recipientPerHour: 1000, keyPerMinute: 1000 } },
  })
  const ids = await post(service, 45)
  await eventually(async () => (await find(service, ids)).every((email) => email?.state === 'delivered'))
  assert.ok(refusals <= 10, `${refusals} refusals: those that were on their way`)
})

test('a relay that takes one connection at a time gets one', async (t) => {
  const open = { now: 0, refused: 0 }
  const relay = await startScriptedServer(t, {
    mail: (socket) => {
      if (open.now > 0) {
        open.refused += 1
        return void socket.write('432 4.3.2 Concurrent connections limit exceeded\r\n')
      }
      open.now += 1
      socket.write('250 2.1.0 ok\r\n')
    },
    dot: (socket) => {
      open.now -= 1
      socket.write('250 2.0.0 taken\r\n')
    },
  })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const ids = await post(service, 40)
  await eventually(async () => (await find(service, ids)).every((email) => email?.state === 'delivered'))
  assert.ok(open.refused <= 12, `${open.refused} refusals`)
})
