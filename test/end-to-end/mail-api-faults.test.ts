/** Servers of mail APIs and of tokens that misbehave, are late, or are not there. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { newAgent, type PostOptions, post } from '../../src/delivery/relay/http/post.ts'
import { checkRelay } from '../../src/management/service/check-relay.ts'
import {
  accepting,
  describeSubmission,
  newApiAddress,
  type Provider,
  startApi,
  submit,
  submitTo,
} from '../support/api-relay.ts'
import { type Answering, localCa, sendJson, startApiServer } from '../support/api-server.ts'
import { newTestRelay, relayTo } from '../support/service.ts'
import { testMessage } from '../support/smtp.ts'
import { atEnd, type Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const hostile: [name: string, answering: Answering, meaning: string][] = [
  ['HTML behind 200', (_, r) => void r.writeHead(200).end('<html>'), 'message ambiguous'],
  ['a reset after the message', (_, r) => void r.destroy(), 'message ambiguous'],
  [
    'a cut answer',
    (_, r) => void r.writeHead(200, { 'content-length': '90' }).write('{"id"', () => r.destroy()),
    'message ambiguous',
  ],
  ['a gigabyte behind 200', (_, r) => flood(r, 200), 'message ambiguous'],
  ['a gigabyte behind 422', (_, r) => flood(r, 422), 'relay lasting'],
  ['HTML behind 400', (_, r) => void r.writeHead(400).end('<html>'), 'relay lasting'],
  ['408', (_, r) => void r.writeHead(408).end(), 'unclear'],
  ['a redirect', (_, r) => void r.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(), 'relay lasting'],
  ['a bad gateway', (_, r) => void r.writeHead(502).end('<html>'), 'message ambiguous'],
  ['a huge head', (_, r) => void r.writeHead(200, { 'x-long': 'x'.repeat(100_000) }).end('{}'), 'message ambiguous'],
]

function flood(response: Parameters<Answering>[1], status: number): void {
  response.writeHead(status)
  const write = () => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536))) {}
  }
  response.on('drain', write).on('error', () => {})
  write()
}

for (const [name, answering, meaning] of hostile)
  test(`a server that answers with ${name}: ${meaning}`, async (t) => {
    const { asked, config } = await startApi(t, 'postmark', answering, { tls: true })
    assert.equal(describeSubmission(await submit(config)), meaning)
    assert.equal(asked.length, 1)
  })

for (const provider of ['gmail', 'ses', 'resend'] as const)
  test(`${provider}: a proxy’s page with status 200 is not an acceptance`, async (t) => {
    const { config } = await startApi(t, provider, (_, r) => void r.writeHead(200).end('<html>'))
    assert.equal(describeSubmission(await submit(config)), 'message ambiguous')
  })

test('an answer counts that comes after the link has expired: the message was handed over before', async (t) => {
  const lifeMs = 2500
  const { config } = await startApi(t, 'postmark', (_, response) => {
    setTimeout(() => accepting.postmark(response), lifeMs + 100)
  })
  assert.equal(describeSubmission(await submit(config, lifeMs)), 'accepted')
})

for (const [name, answering, meaning] of [
  ['is not there', null, 'relay'],
  ['refuses the client', (_, r) => sendJson(r, 401, { error: 'invalid_client' }), 'relay lasting'],
] as [string, Answering | null, string][])
  test(`a token server that ${name}: ${meaning}, and nothing is handed over`, async (t) => {
    const { asked, config, server } = await startApi(t, 'graph', (_, response) => accepting.graph(response))
    const url = answering === null ? 'http://127.0.0.1:1/token' : (await startApiServer(t, answering)).url
    const address = newApiAddress('graph', server.url, url)
    assert.equal(describeSubmission(await submit({ ...config, address })), meaning)
    assert.equal(asked.length, 0)
  })

test('a link that expires while the token server is asked ends the email, and is no fault of the relay', async (t) => {
  const { config, server } = await startApi(t, 'graph', (_, response) => accepting.graph(response))
  const mute = await startApiServer(t, () => {})
  const address = newApiAddress('graph', server.url, mute.url)
  assert.equal(describeSubmission(await submit({ ...config, address }, 300)), 'expired')
})

test('a Resend account without a verified domain fails the check', async (t) => {
  const { config } = await startApi(t, 'resend', (_, r) =>
    sendJson(r, 403, { name: 'validation_error', message: 'the domain is not verified' }),
  )
  const { ok, detail } = await checkRelay(config)
  assert.equal(ok, false, detail)
})

/** One POST to a server, whose connections are kept. */
async function postTo(t: Scope, answering: Answering, more: Partial<PostOptions> = {}) {
  const server = await startApiServer(t, answering)
  const url = new URL(server.url)
  const agent = newAgent(url, { connectionsMax: 2, idleMs: 60_000 })
  atEnd(t, () => agent.destroy())
  const stopped = new AbortController().signal
  const options = { connecting: AbortSignal.timeout(5000), stopped, mayHandOver: () => true, ...more }
  const exchange = await post(agent, { url, headers: {}, body: Buffer.from('x') }, options)
  return { exchange, options, server }
}

test('a server that never answers is given up after a time', async (t) => {
  const { exchange } = await postTo(t, () => {}, { answerMs: 50 })
  assert.deepEqual(exchange, { kind: 'lost', why: 'no answer within 0.05 s' })
})

test('an exchange that has ended leaves nothing on the signals, which live as long as the process', async (t) => {
  const { exchange, options, server } = await postTo(t, (_, response) => sendJson(response, 200, {}))
  assert.equal(exchange.kind, 'answered')
  for (const signal of [options.connecting, options.stopped]) assert.deepEqual(getEventListeners(signal, 'abort'), [])
  assert.equal(server.sockets.size, 1, 'the connection is kept')
})

test('what is withheld, or cut for its length, gives its connection up', async (t) => {
  const withheld = await postTo(t, () => {}, { mayHandOver: () => false })
  assert.deepEqual(withheld.exchange, { kind: 'withheld' })
  await eventually(() => withheld.server.sockets.size === 0)
  const flooded = await postTo(t, (_, response) => flood(response, 200))
  assert.equal(flooded.exchange.kind, 'answered')
  await eventually(() => flooded.server.sockets.size === 0)
})

test('a key that a request cannot carry is the relay’s fault, and leaves no connection counted', async (t) => {
  const { config } = await startApi(t, 'resend', () => {})
  assert.ok(config.address.protocol === 'https')
  const account = { key: 're_\u200bKEY' }
  const relay = newTestRelay({ ...config, address: { ...config.address, account } })
  assert.equal(describeSubmission(await submitTo(relay)), 'relay lasting')
  assert.deepEqual([relay.connections().connecting, relay.connections().busy], [0, 0])
})

const repeating: [provider: Provider, status: number, toBody: (said: string) => object][] = [
  ['resend', 422, (said) => ({ name: `${said}: x`, message: 'no' })],
  ['resend', 200, (said) => ({ id: said })],
  ['graph', 400, (said) => ({ error: { code: 'BadRequest', message: said } })],
]
for (const [provider, status, toBody] of repeating)
  test(`${provider}: an answer of ${status} that repeats the key or the token leaves none in the record`, async (t) => {
    const { asked, config } = await startApi(t, provider, ({ headers }, response) =>
      sendJson(response, status, toBody(headers.authorization ?? '')),
    )
    const record = JSON.stringify(await submit(config))
    const secret = asked.at(-1)?.headers.authorization?.slice('Bearer '.length) ?? ''
    assert.ok(secret.length > 3 && record.includes('<secret>') && !record.includes(secret), record)
  })

test('a certificate that is not trusted, and a server that is not there: nothing is handed over', async (t) => {
  const { asked, close, config } = await startApi(t, 'postmark', () => {}, { tls: true })
  assert.ok(config.address.protocol === 'https')
  const { ca: _ca, ...untrusting } = config.address
  assert.equal(describeSubmission(await submit({ ...config, address: untrusting })), 'relay lasting')
  close()
  assert.equal(describeSubmission(await submit(config)), 'relay')
  assert.equal(asked.length, 0)
})

const countConnections = (relay: ReturnType<typeof newTestRelay>) => {
  const { connecting, open, busy } = relay.connections()
  return { connecting, open, busy }
}

test('a relay that is closed while it waits for the answer: the record says why, and in doubt', async (t) => {
  const { asked, config } = await startApi(t, 'postmark', () => {})
  const relay = newTestRelay(config)
  const submission = submitTo(relay)
  await eventually(() => asked.length === 1)
  assert.deepEqual(countConnections(relay), { connecting: 0, open: 1, busy: 1 })
  relay.close()
  const ended = await submission
  assert.equal(describeSubmission(ended), 'message ambiguous')
  assert.equal(ended.kind === 'failed' && ended.reply.text, 'the worker stopped')
})

test('a link that expires while the connection is opened: the server gets no byte of the request', async (t) => {
  const received: number[] = []
  const counts: ReturnType<typeof countConnections>[] = []
  const { createServer } = await import('node:net')
  const silent = createServer((socket) => {
    counts.push(countConnections(relay))
    socket.on('data', (data) => received.push(data.length)).on('error', () => {})
  })
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  atEnd(t, () => silent.close())
  const { port } = silent.address() as { port: number }
  const address = { ...newApiAddress('resend', `https://localhost:${port}`), ca: localCa }
  const relay = newTestRelay({ ...relayTo(0), address })
  assert.deepEqual(await submitTo(relay, 300), { kind: 'expired' })
  assert.deepEqual(counts, [{ connecting: 1, open: 0, busy: 1 }])
  const handshakes = received.length
  assert.ok(handshakes <= 1, 'TLS greeted, and nothing else was sent')
})

test('a lease that is lost while the connection is opened: nothing is handed over', async (t) => {
  const { asked, config } = await startApi(t, 'resend', (_asked, response) => accepting.resend(response))
  const relay = newTestRelay(config)
  atEnd(t, () => relay.close())
  const clearance = { deadlineMs: performance.now() + 60_000, isLeaseValid: () => false }
  const message = testMessage({ describe: () => ({ headers: [], from: { name: '', address: '' } }) as never })
  assert.equal((await relay.submit(message, clearance)).kind, 'stopped')
  assert.equal(asked.length, 0)
})
