import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { relayTo } from '../../../test/support/service.ts'
import { type Script, startScriptedServer, testMessage } from '../../../test/support/smtp.ts'
import { atEnd, type Scope } from '../../../test/support/temporary.ts'
import { eventually } from '../../../test/support/wait.ts'
import { newRelay } from '../../compose/relays.ts'
import type { EmailId } from '../../domain/id.ts'
import type { EmailAddress } from '../../domain/request/email-address.ts'

/** A relay at a scripted server, and what it said of its availability. */
async function startRelay(t: Scope, script: Script | ((connection: number) => Script)) {
  const server = await startScriptedServer(t, script)
  const changes: string[] = []
  const relay = newRelay(
    { ...relayTo(server.port), connectionsMax: 4 },
    {
      random: () => 0.5,
      onChange: ({ available, reason }) => void changes.push(available ? 'available' : reason),
    },
  )
  atEnd(t, () => relay.close())
  const submit = (change?: Parameters<typeof testMessage>[0]) =>
    relay.submit(testMessage(change), { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true })
  return { changes, relay, server, submit }
}

test('a relay that refuses its only connection is down, and not at its limit of connections', async (t) => {
  const { changes, relay, submit } = await startRelay(t, { greeting: '421 4.3.2 too busy' })
  for (let n = 0; n < 3; n++) await submit()
  assert.deepEqual([relay.isAvailable(), changes], [false, ['421 4.3.2 too busy']])
})

test('a relay that refuses one connection while it serves another is at its limit', async (t) => {
  const held: Socket[] = []
  const { changes, relay, submit } = await startRelay(t, (connection) =>
    connection === 0 ? { dot: (socket) => void held.push(socket) } : { greeting: '421 4.7.0 too many' },
  )
  const first = submit()
  await eventually(() => held.length === 1)
  for (let n = 0; n < 3; n++) await submit()
  assert.deepEqual([relay.isAvailable(), relay.capacity(), changes], [true, 1, []])
  held[0]?.write('250 2.0.0 taken\r\n')
  assert.equal((await first).kind, 'accepted')
})

test('connections that the server has ended are not counted as open', async (t) => {
  let served: Socket | undefined
  const { relay, submit } = await startRelay(t, {
    greeting: (socket) => {
      served = socket
      socket.write('220 ready\r\n')
    },
  })
  await submit()
  assert.equal(relay.connections().open, 1)
  served?.destroy()
  await eventually(() => relay.connections().open === 0)
})

test('a relay that asks to slow down gets half of the connections; a plain refusal changes nothing', async (t) => {
  for (const [reply, capacity] of [
    ['450 4.7.1 too many connections', 2],
    ['421 4.3.2 closing', 2],
    ['450 4.7.1 too many emails', 4],
    ['450 4.2.0 greylisted', 4],
    ['550 5.1.1 nobody', 4],
  ] as const) {
    const { relay, submit } = await startRelay(t, { rcpt: reply })
    await submit()
    assert.equal(relay.capacity(), capacity, reply)
  }
})

test('an unclear refusal is believed once the relay has accepted another email since', async (t) => {
  let reply = '554 sending paused'
  const { submit } = await startRelay(t, { rcpt: (socket) => void socket.write(`${reply}\r\n`) })
  const takesOthers = async (n: number) => {
    const submission = await submit({ id: `em_${n}` as EmailId })
    return submission.kind === 'failed' && submission.takesOthers === true
  }
  const [refused, other] = [0, 1]
  assert.deepEqual([await takesOthers(refused), await takesOthers(refused)], [false, false])
  reply = '550 5.1.1 nobody'
  await takesOthers(other)
  reply = '554 sending paused'
  assert.equal(await takesOthers(refused), false, 'another one was refused, too')
  reply = '250 2.1.5 ok'
  await takesOthers(other)
  reply = '554 sending paused'
  assert.deepEqual([await takesOthers(other), await takesOthers(refused)], [false, true])
})

test('a relay that refuses all mail is unavailable, and still gets mail; the first it takes ends that', async (t) => {
  let rcpt = '554 5.7.1 sending paused'
  const { changes, relay, submit } = await startRelay(t, { rcpt: (socket) => void socket.write(`${rcpt}\r\n`) })
  for (let n = 0; n < 3; n++) await submit()
  assert.deepEqual([relay.isAvailable(), relay.isLast(), relay.free()], [false, true, 4])
  rcpt = '250 2.1.5 ok'
  await submit()
  assert.deepEqual(
    [relay.isAvailable(), relay.isLast(), changes],
    [true, false, ['554 5.7.1 sending paused', 'available']],
  )
})

test('a relay that answers no message is unavailable after three emails, and not after one that is repeated', async (t) => {
  const { changes, relay, submit } = await startRelay(t, { dot: (socket) => void socket.destroy() })
  const send = (n: number) => submit({ id: `em_${n}` as EmailId })
  for (const n of [0, 0, 0, 0, 1]) await send(n)
  assert.equal(relay.isAvailable(), true)
  await send(2)
  assert.equal(relay.isAvailable(), false)
  assert.equal(changes.length, 1)
})

test('a relay that refuses the rate gets its next email later, and others come first meanwhile', async (t) => {
  const tooFast = '454 Maximum sending rate exceeded'
  const replies = ['250 2.1.5 ok', tooFast, tooFast, '250 2.1.5 ok']
  const { relay, submit } = await startRelay(t, { rcpt: (socket) => void socket.write(`${replies.shift()}\r\n`) })
  const begun = performance.now()
  await submit()
  assert.equal(relay.isLast(), false)
  await submit()
  assert.equal(relay.isLast(), false, 'it may be about one sender')
  await submit()
  assert.equal(relay.isLast(), true)
  await submit()
  assert.ok(performance.now() - begun >= 1000, 'a second after the first')
})

test('a relay that takes so many emails in a connection gets the next one in another', async (t) => {
  let mails = 0
  const { relay, server, submit } = await startRelay(t, {
    mail: (socket) => void socket.write(++mails === 2 ? '421 4.7.0 Too many messages here\r\n' : '250 2.1.0 ok\r\n'),
  })
  assert.deepEqual([(await submit()).kind, (await submit()).kind], ['accepted', 'accepted'])
  assert.deepEqual([server.messages.length, relay.capacity()], [2, 4])
})

test('a relay is back as soon as it answers a message, also by refusing it', async (t) => {
  let isDown = true
  const { changes, relay, submit } = await startRelay(t, () =>
    isDown ? { greeting: '554 no service' } : { rcpt: '550 5.1.1 nobody' },
  )
  await submit()
  assert.equal(relay.isAvailable(), false)
  isDown = false
  await eventually(() => relay.probeInMs() === 0)
  assert.equal((await submit()).kind, 'failed')
  assert.deepEqual([relay.isAvailable(), changes], [true, ['554 no service', 'available']])
})

test('without a name of its own, a relay is greeted with the domain of each sender, on a connection of its own', async (t) => {
  const { relay, server } = await startRelay(t, {})
  const clearance = { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true }
  for (const domain of ['acme.test', 'globex.test', 'globex.test', 'acme.test']) {
    const from = `auth@${domain}` as EmailAddress
    assert.equal((await relay.submit(testMessage({ from }), clearance)).kind, 'accepted')
    assert.equal(relay.connections().open, 1, 'the one of another name makes room')
  }
  const said = server.transcript.filter((line) => /^(EHLO|MAIL)/.test(line)).map((line) => line.split(' SIZE')[0])
  assert.deepEqual(said, [
    ...['EHLO acme.test', 'MAIL FROM:<auth@acme.test>'],
    ...['EHLO globex.test', 'MAIL FROM:<auth@globex.test>', 'MAIL FROM:<auth@globex.test>'],
    ...['EHLO acme.test', 'MAIL FROM:<auth@acme.test>'],
  ])
})
