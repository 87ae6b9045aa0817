/** Webhooks to receivers on real sockets, checked by the library of Standard Webhooks. */
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { readWebhook } from '../../../client/src/webhook.ts'
import { composeRunner } from '../../../src/compose/management.ts'
import { openStore } from '../../../src/compose/store.ts'
import { type AppId, type EmailId, newId } from '../../../src/domain/id.ts'
import type { EmailAddress } from '../../../src/domain/request/email-address.ts'
import type { CallInput, OperationName } from '../../../src/management/operations.ts'
import { makeWebhookSecret, sealWebhookSecret } from '../../../src/store/crypto/webhook-secret.ts'
import { listEmails, operator } from '../../support/operator.ts'
import {
  newRing,
  newSender,
  relayTo,
  send,
  startTestService,
  type TestService,
  testSettings,
  validBody,
} from '../../support/service.ts'
import { startScriptedServer } from '../../support/smtp.ts'
import { atEnd, type Scope } from '../../support/temporary.ts'
import { eventually } from '../../support/wait.ts'

type Call = { readonly headers: Record<string, string>; readonly body: string; readonly path: string }
type Answer = (response: ServerResponse, n: number) => void

/** Answers each call by `answer`, which is 204 unless it is given. */
async function startReceiver(scope: Scope, answer: Answer = (response) => response.writeHead(204).end()) {
  const calls: Call[] = []
  const sockets = new Set<Socket>()
  const server = createServer(async (request: IncomingMessage, response) => {
    const body = (await request.toArray()).join('')
    calls.push({ headers: request.headers as Record<string, string>, body, path: request.url ?? '' })
    answer(response, calls.length)
  })
  server.on('connection', (socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(scope, () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks?app=1` }
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>

async function call<Name extends OperationName>(service: TestService, name: Name, input: CallInput<Name>) {
  const runner = composeRunner(service.config, { store: service.store, version: 'test', user: 'test' })
  const result = await runner.call(name, input)
  assert.ok(result.ok, JSON.stringify(result))
  return result.value
}

async function connect(service: TestService, { url }: Pick<Receiver, 'url'>, app = service.app): Promise<string> {
  const settings = { ...testSettings, webhookUrl: url }
  const updated = await service.store.updateApp(app.id, { settings }, operator)
  assert.ok(updated !== null && typeof updated === 'object')
  return (await call(service, 'webhook.secret', { params: { app: app.slug }, body: {} })).secret
}

/** The message, if the library accepts its signature. */
const verify = ({ body, headers }: Call, secret: string) =>
  new Webhook(secret).verify(body, headers) as {
    type: string
    timestamp: string
    data: Record<string, unknown>
  }

async function post(service: TestService, change: object = {}): Promise<EmailId> {
  const answer = await service.post(validBody({ ...change }, service.store.now()))
  assert.equal(answer.status, 202, JSON.stringify(answer.body))
  return answer.headers.get('email-id') as EmailId
}

test('webhooks about the mail of a test key say that it is a test', async (t) => {
  const receiver = await startReceiver(t)
  const service = await startTestService(t)
  const secret = await connect(service, receiver)
  const { key } = await call(service, 'key.create', { params: { app: service.app.slug }, body: { test: true } })
  for (const outcome of ['refused', 'bounced', 'complained', 'suppressed', 'delivered']) {
    const body = JSON.stringify(validBody({ to: `${outcome}@postern.test` }))
    assert.equal((await send(service.apiUrl, body, { authorization: `Bearer ${key}` })).status, 202)
  }
  await eventually(() => receiver.calls.length === 4, 15_000)
  const said = receiver.calls.map((each) => verify(each, secret)).toSorted((a, b) => (a.type < b.type ? -1 : 1))
  const test = { emailType: 'magic_link', test: true }
  assert.deepEqual(
    said.map(({ data: { emailId: _, ...data }, type }) => [type, data]),
    [
      ['email.bounced', { ...test, to: 'bounced@postern.test', cause: 'no_mailbox', permanent: true }],
      ['email.complained', { ...test, to: 'complained@postern.test' }],
      ['email.failed', { ...test, to: 'refused@postern.test', cause: 'no_mailbox' }],
      ['email.suppressed', { ...test, to: 'suppressed@postern.test', cause: 'no_mailbox' }],
    ],
  )
  assert.deepEqual(await service.store.listSuppressions({ apps: null, limit: 10 }), { items: [], next: null })
})

test('an email that fails, and the next one to its recipient, are webhooks that the library verifies', async (t) => {
  const relay = await startScriptedServer(t, { rcpt: '550 5.1.1 no such user' })
  const receiver = await startReceiver(t)
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const secret = await connect(service, receiver)
  const failed = await post(service)
  await eventually(() => receiver.calls.length === 1)
  const suppressed = await post(service, { type: 'password_reset' })
  await eventually(() => receiver.calls.length === 2)
  const [first, second] = receiver.calls.map((each) => verify(each, secret))
  assert.ok(first && second)
  const { suppressedUntil } = first.data
  assert.ok(Date.parse(String(suppressedUntil)) > service.store.now())
  const to = 'ada@example.com'
  assert.deepEqual(
    [first.type, first.data],
    ['email.failed', { emailId: failed, emailType: 'magic_link', to, cause: 'no_mailbox', suppressedUntil }],
  )
  assert.deepEqual(
    [second.type, second.data],
    [
      'email.suppressed',
      { emailId: suppressed, emailType: 'password_reset', to, cause: 'no_mailbox', suppressedUntil },
    ],
  )
  const [one] = receiver.calls
  assert.ok(one)
  const { body, headers } = one
  const request = new Request('https://app.acme.test/', { method: 'POST', headers, body })
  const read = await readWebhook(secret, request)
  assert.deepEqual([read.id, read.type], [headers['webhook-id'], 'email.failed'])
  assert.equal(one.path, '/hooks?app=1')
  assert.equal(one.headers['content-type'], 'application/json')
  assert.match(`${one.headers['user-agent']}`, /^Postern\//)
  assert.doesNotMatch(one.body, /token/)
  await eventually(() => service.log.filter((line) => line.includes('a webhook was sent')).length === 2)
  assert.equal(
    service.log.some((line) => line.includes(to)),
    false,
  )
})

test('a bounce and a complaint are webhooks; a second report of the same is none', async (t) => {
  const relay = await startScriptedServer(t, {})
  const receiver = await startReceiver(t)
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const secret = await connect(service, receiver)
  const [bounced, complained] = [await post(service), await post(service, { to: 'bob@example.com' })]
  await eventually(async () => (await service.store.readQueueGauge()).depth === 0)
  const reference = (id: EmailId) => service.store.makeReference(id)
  const bounce = `From: MAILER-DAEMON\r\nSubject: failed\r\n\r\nFinal-Recipient: rfc822; ada@example.com\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 no such user\r\n\r\nOriginal-Envelope-ID: ${reference(bounced)}\r\n`
  const complaint = `From: fbl@example.net\r\n\r\nFeedback-Type: abuse\r\n\r\nX-Entity-Ref-ID: ${reference(complained)}\r\n`
  for (const report of [bounce, bounce, complaint]) await call(service, 'report.read', { body: { report } })
  await eventually(() => receiver.calls.length === 2)
  const messages = receiver.calls.map((each) => verify(each, secret)).toSorted((a, b) => a.type.localeCompare(b.type))
  assert.deepEqual(
    messages.map(({ type, data: { suppressedUntil, ...data } }) => [type, typeof suppressedUntil, data]),
    [
      [
        ...['email.bounced', 'string'],
        {
          emailId: bounced,
          emailType: 'magic_link',
          to: 'ada@example.com',
          cause: 'no_mailbox',
          permanent: true,
        },
      ],
      ['email.complained', 'string', { emailId: complained, emailType: 'magic_link' }],
    ],
  )
})

test('both secrets sign until the old one ends', async (t) => {
  const receiver = await startReceiver(t)
  const service = await startTestService(t)
  const old = await connect(service, receiver)
  const params = { app: service.app.slug }
  const { secret } = await call(service, 'webhook.secret', { params, body: { graceSeconds: 3600 } })
  await call(service, 'webhook.test', { params, body: {} })
  const first = await eventually(() => receiver.calls[0])
  for (const each of [old, secret]) assert.equal(verify(first, each).type, 'webhook.test')
  service.advance(3_600_000)
  await call(service, 'webhook.test', { params, body: {} })
  const second = await eventually(() => receiver.calls[1])
  assert.equal(second.headers['webhook-signature']?.split(' ').length, 1)
  assert.notEqual(second.headers['webhook-id'], first.headers['webhook-id'])
  const listed = await eventually(async () => {
    const { items } = await call(service, 'webhook.list', { params })
    return items.every(({ state }) => state === 'sent') ? items : null
  })
  assert.deepEqual(
    listed.map(({ event, result, tries }) => [event, result, tries]),
    [
      ['webhook.test', '204', 1],
      ['webhook.test', '204', 1],
    ],
  )
})

test('a redirect, an error and a cut connection are failures, which are tried again with the same id and body', async (t) => {
  const elsewhere = await startReceiver(t)
  const answers: Answer[] = [
    (response) => response.writeHead(307, { location: elsewhere.url }).end(),
    (response) => response.socket?.destroy(),
    (response) => response.writeHead(500).end('x'.repeat(100_000)),
    (response) => response.writeHead(200).write('and then nothing more'),
  ]
  const receiver = await startReceiver(t, (response, n) => answers[n - 1]?.(response, n))
  const service = await startTestService(t)
  await connect(service, receiver)
  const params = { app: service.app.slug }
  await call(service, 'webhook.test', { params, body: {} })
  const newest = async () => (await call(service, 'webhook.list', { params })).items[0]
  const results: unknown[] = []
  for (let n = 1; n <= answers.length; n++) {
    const tried = await eventually(async () => {
      const message = await newest()
      return message?.tries === n && message.result !== (results.at(-1) ?? null) ? message : null
    })
    results.push(tried.result)
    service.advance(3 * 3_600_000) // beyond every wait so far, and within three days
  }
  assert.deepEqual(results, ['307', 'no answer (ECONNRESET)', '500', '200'])
  assert.equal(elsewhere.calls.length, 0)
  const [first, ...others] = receiver.calls
  for (const { body, headers } of others) {
    assert.equal(body, first?.body)
    assert.equal(headers['webhook-id'], first?.headers['webhook-id'])
  }
  assert.equal((await newest())?.state, 'sent')
})

test('410 ends a message, and needs attention at once; a success ends that', async (t) => {
  let status = 410
  const receiver = await startReceiver(t, (response) => response.writeHead(status).end())
  const service = await startTestService(t)
  await connect(service, receiver)
  const params = { app: service.app.slug }
  await call(service, 'webhook.test', { params, body: {} })
  const { items } = await eventually(async () => {
    const listed = await call(service, 'webhook.list', { params })
    return listed.failingSince === null ? null : listed
  })
  assert.deepEqual([items[0]?.state, items[0]?.result, items[0]?.nextTryAt], ['given_up', '410', null])
  const attention = async () => (await call(service, 'status.show', {})).attention.map(({ kind }) => kind)
  assert.ok((await attention()).includes('webhook_failing'))
  status = 204
  service.advance(10_000)
  await call(service, 'webhook.test', { params, body: {} })
  await eventually(async () => !(await attention()).includes('webhook_failing'), 15_000)
})

test('a receiver that hangs delays no email, and no message of another app', async (t) => {
  const relay = await startScriptedServer(t, { rcpt: '550 5.1.1 no such user' })
  const [hung, other] = [await startReceiver(t, () => {}), await startReceiver(t)]
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  await connect(service, hung)
  const { app, key } = await newSender(service, 'other')
  const secret = await connect(service, other, app)
  for (let n = 0; n < 20; n++) await post(service, { to: `r${n}@example.com` })
  await eventually(() => hung.calls.length === 2)
  for (let n = 0; n < 20; n++) {
    const body = JSON.stringify(validBody({ to: `o${n}@example.com` }, service.store.now()))
    assert.equal((await send(service.apiUrl, body, { authorization: `Bearer ${key}` })).status, 202)
  }
  await eventually(() => other.calls.length === 20)
  for (const each of other.calls) assert.equal(verify(each, secret).type, 'email.failed')
  assert.equal((await service.store.readQueueGauge()).depth, 0)
  assert.equal(hung.calls.length, 2, 'and it gets no more than two at a time')
  await service.stop({ graceMs: 0 })
  const store = await openStore(service.config, { onFatal: assert.fail })
  atEnd(t, () => store.close())
  const results = (await store.listWebhookMessages(service.app.id, 100)).map(({ result }) => result)
  assert.deepEqual(new Set(results), new Set([null]), 'what was not answered is sent again')
})

test('a receiver that fails is left alone for a while, and then gets one message at a time', async (t) => {
  const held: ServerResponse[] = []
  const failing = await startReceiver(t, (response, n) =>
    n === 1 ? response.writeHead(500).end() : void held.push(response),
  )
  const other = await startReceiver(t)
  const service = await startTestService(t)
  await connect(service, failing)
  const { app } = await newSender(service, 'other')
  await connect(service, other, app)
  const add = (id: AppId) =>
    service.store.addWebhookMessage({
      ...{ app: id, event: 'email.failed', email: newId('em', 0), facts: {}, sealed: null },
    })
  /** Once another app has got two messages, the sender has looked at both apps. */
  const letSenderLook = async () => {
    for (let n = 0; n < 2; n++) {
      const before = other.calls.length
      await add(app.id)
      await eventually(() => other.calls.length > before)
    }
  }
  await add(service.app.id)
  await eventually(async () => (await service.store.findReceiver(service.app.id))?.failingSince != null)
  for (let n = 0; n < 3; n++) await add(service.app.id)
  await letSenderLook()
  assert.equal(failing.calls.length, 1)
  service.advance(5000)
  await eventually(() => held.length === 1)
  await letSenderLook()
  assert.equal(failing.calls.length, 2)
  // A test does not wait for the end of the pause.
  held[0]?.writeHead(500).end()
  await call(service, 'webhook.test', { params: { app: service.app.slug }, body: {} })
  await eventually(() => held.length === 2)
  assert.equal(failing.calls.at(-1)?.body.includes('webhook.test'), true)
  held[1]?.writeHead(204).end()
  await eventually(() => held.length === 4)
  for (const response of held) response.end()
})

test('a secret that the key ring cannot open signs nothing', async (t) => {
  const receiver = await startReceiver(t)
  const service = await startTestService(t)
  await connect(service, receiver)
  const sealed = sealWebhookSecret(newRing(), service.app.id, makeWebhookSecret())
  await service.store.setWebhookSecret({ app: service.app.id, sealed, oldUntil: 0 }, operator)
  const params = { app: service.app.slug }
  await call(service, 'webhook.test', { params, body: {} })
  const message = await eventually(async () => {
    const [newest] = (await call(service, 'webhook.list', { params })).items
    return newest?.result == null ? null : newest
  })
  assert.deepEqual([message.state, message.result], ['waiting', 'the key ring lacks the key that sealed it'])
  assert.equal((await service.store.findReceiver(service.app.id))?.failingSince, null, 'no fault of the receiver')
  assert.equal(receiver.calls.length, 0)
})

test('unless it is allowed, nothing goes to the private network', async (t) => {
  const receiver = await startReceiver(t)
  const service = await startTestService(t, { allowsPrivateWebhooks: false })
  await connect(service, { url: receiver.url.replace('http:', 'https:') })
  const params = { app: service.app.slug }
  await call(service, 'webhook.test', { params, body: {} })
  const result = await eventually(async () => (await call(service, 'webhook.list', { params })).items[0]?.result)
  assert.equal(result, 'its address is not on the public Internet')
  assert.equal(receiver.calls.length, 0)
})

test('an app that takes its address away is sent nothing more', async (t) => {
  const receiver = await startReceiver(t, (response) => response.writeHead(500).end())
  const service = await startTestService(t)
  await connect(service, receiver)
  const params = { app: service.app.slug }
  await call(service, 'webhook.test', { params, body: {} })
  await eventually(() => receiver.calls.length === 1)
  await service.store.updateApp(service.app.id, { settings: testSettings }, operator)
  const ended = await eventually(async () => {
    service.advance(300_000)
    const [message] = (await call(service, 'webhook.list', { params })).items
    return message?.state === 'given_up' ? message : null
  }, 15_000)
  assert.equal(ended.result, 'the app has no webhook address any more')
  assert.equal((await service.store.findReceiver(service.app.id))?.result, '500', 'of the receiver')
  assert.equal(receiver.calls.length, 1)
})

test('a service that stops stores the webhooks of the emails that have just ended', async (t) => {
  const relay = await startScriptedServer(t, { rcpt: '550 5.1.1 no such user' })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  await connect(service, { url: 'http://127.0.0.1:9/' })
  const suppressed = 'noa@example.com'
  const recipient = service.store.nameRecipient(suppressed as EmailAddress)
  const until = service.store.now() + 3_600_000
  await service.store.setSuppression({ app: service.app.id, recipient, destination: 'other', until }, operator)
  const posts = Array.from({ length: 6 }, (_, n) => post(service, { to: `r${n}@example.com` }))
  await Promise.all([...posts, ...Array.from({ length: 6 }, () => post(service, { to: suppressed }))])
  await eventually(() => relay.transcript.filter((line) => line.startsWith('RCPT')).length >= 6)
  await service.stop()
  const store = await openStore(service.config, { onFatal: assert.fail })
  atEnd(t, () => store.close())
  const events = (await store.listWebhookMessages(service.app.id, 100)).map(({ event }) => event)
  const failed = (await listEmails(store, { limit: 20 })).filter(({ state }) => state === 'failed')
  assert.equal(events.filter((event) => event === 'email.suppressed').length, 6)
  assert.equal(events.filter((event) => event === 'email.failed').length, failed.length)
  assert.ok(failed.length >= 6)
})
