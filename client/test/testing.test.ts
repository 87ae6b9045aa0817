/** The helpers for tests: the capturing client and the reader of the inbox. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { startTestService, validBody } from '../../test/support/service.ts'
import { CapturingPostern, DevInbox } from '../src/testing.ts'

const service = await startTestService({ after })
// Created before any email, so that it returns them all.
const old = new DevInbox(service.urls.inbox ?? '')
const inbox = () => new DevInbox(`${service.urls.inbox}/`)

test('captured emails are what the service would have got; a refusal captures nothing', async () => {
  const postern = new CapturingPostern()
  const email = { to: 'a@example.com', type: 'magic_link', url: new URL('https://a.test/?token=t') } as const
  const { emailId } = await postern.send({ ...email, expiresAt: new Date(0) })
  assert.ok(emailId)
  const captured = { ...email, url: 'https://a.test/?token=t', expiresAt: '1970-01-01T00:00:00.000Z' }
  assert.deepEqual(postern.latest('a@example.com'), captured)
  postern.refusal = { status: 403, code: 'url_not_allowed' }
  await assert.rejects(postern.send({ ...email, expiresAt: new Date(0) }), {
    code: 'url_not_allowed',
    status: 403,
  })
  assert.equal(postern.emails.length, 1)
  assert.equal(postern.latest('b@example.com'), undefined)
})

test('captured like the service: one email a key, any case of letters, refusals without retries', async () => {
  const postern = new CapturingPostern()
  const email = {
    to: 'a@example.com',
    type: 'magic_link',
    url: 'https://a.test/?token=t',
    expiresAt: new Date(0),
  } as const
  const first = await postern.send(email, { idempotencyKey: 'k' })
  assert.deepEqual(await postern.send(email, { idempotencyKey: 'k' }), { ...first, replayed: true })
  assert.equal(postern.emails.length, 1)
  assert.ok(postern.latest('A@Example.com'))
  const issues = [{ field: 'to', code: 'required', message: 'Give to.' }]
  postern.refusal = { status: 503, code: 'queue_full', issues }
  const outcome = await postern.safeSend(email)
  assert.ok(!outcome.ok)
  assert.deepEqual(outcome.error.issues, issues)
})

test('the inbox gives each email once, the oldest first, and waits for the next', async () => {
  const to = 'reader+1@example.com'
  await service.post(validBody({ to, type: 'password_reset' }))
  await old.next(to)
  const reader = inbox()
  const waiting = reader.next(to)
  await service.post(validBody({ to, url: 'https://app.acme.test/?token=first' }))
  const first = await waiting
  assert.equal(first.url, 'https://app.acme.test/?token=first', 'not what came before the reader')
  await service.post(validBody({ to, type: 'email_verification' }))
  await service.post(validBody({ to, url: 'https://app.acme.test/?token=second' }))
  assert.match((await reader.next(to.toUpperCase(), 'magic_link')).url, /second/)
  assert.equal((await reader.next(to)).type, 'email_verification', 'also what is not the newest')
  await assert.rejects(reader.next(to, undefined, 30), { code: 'timeout' })
})

test('an address that is no inbox is reported, in time', async () => {
  for (const url of [service.urls.ops, service.urls.api]) {
    await assert.rejects(new DevInbox(url ?? '').next('a@example.com'), { code: 'unexpected_response' })
  }
  await assert.rejects(new DevInbox('http://127.0.0.1:9').next('a@example.com'), { code: 'network_error' })
})

test('a wait of more than 25 s is several of the inbox’s, and the error says what came instead', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
  const asked: number[] = []
  const server = createServer(({ url = '' }, response) => {
    const timeoutS = Number(new URL(url, 'http://a').searchParams.get('timeout'))
    asked.push(timeoutS)
    t.mock.timers.tick(timeoutS * 1000)
    const found = asked.length === 2
    const body = found ? { id: 'em_1', seq: 1 } : { error: { code: 'no_such_email', message: 'The newest: x.' } }
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const reader = new DevInbox(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  assert.equal((await reader.next('a@example.com', undefined, 60_000)).id, 'em_1')
  assert.deepEqual(asked, [25, 25])
  await assert.rejects(reader.next('a@example.com', undefined, 0), {
    code: 'timeout',
    message: /The newest: x/,
  })
})

test('an inbox that answers before its time is not asked again and again', async (t) => {
  let asked = 0
  const server = createServer((_request, response) => {
    asked++
    const error = { code: 'no_such_email', message: 'This email is not in the inbox.' }
    response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const reader = new DevInbox(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await assert.rejects(reader.next('a@example.com'), {
    code: 'unexpected_response',
    message: /not in the inbox/,
  })
  assert.equal(asked, 1)
})
