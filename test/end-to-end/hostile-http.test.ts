/** Hostile requests to the public listener: rows 36 to 46 of the fault matrix. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { listEmails } from '../support/operator.ts'
import { startTestService, validBody } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const service = await startTestService({ after }, { authHooks: true, linksBaseUrl: 'https://links.acme.test' })
const port = Number(new URL(service.apiUrl).port)
const bearer = `Authorization: Bearer ${service.key}`

/** Sends raw bytes. Returns all received until `answers` answers, a close by the server, or `quietMs`. */
function raw(text: string, options: { quietMs?: number; answers?: number } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text, 'latin1'))
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1')
      const answers = answer.match(/\r\n\r\n\{.*?\}(?=HTTP|$)/gs)?.length ?? 0
      if (answers >= (options.answers ?? 1)) socket.end()
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? resolve(answer) : reject(error),
    )
    if (options.quietMs !== undefined) setTimeout(() => socket.destroy(), options.quietMs).unref()
  })
}

const request = (headers: string[], body = JSON.stringify(validBody()), line = 'POST /v1/email HTTP/1.1') =>
  `${[line, ...headers].join('\r\n')}\r\n\r\n${body}`
const usual = ['Host: x', bearer, 'Content-Type: application/json']
const lengthOf = (body: string) => `Content-Length: ${Buffer.byteLength(body)}`
const body = JSON.stringify(validBody())

const refusedBelowTheRoute = (answer: string) => {
  if (answer === '') return // closed without an answer
  assert.match(answer, /^HTTP\/1\.1 400 /)
  assert.match(answer, /content-type: application\/json\r\n/i)
  assert.match(answer, /\{"ok":false,"error":\{"code":"[a-z_]+","message":"[^"]+","requestId":"req_/)
}

test('row 36: numbers, arrays and objects for strings are 400', async () => {
  for (const wrong of [1, [], {}, true, ['a@b.example']]) {
    for (const field of ['to', 'type', 'url', 'expiresAt', 'inviterName']) {
      assert.equal((await service.post(validBody({ [field]: wrong }))).status, 400)
    }
  }
})

test('row 37: invalid UTF-8 and lone surrogates are 400', async () => {
  const invalid = Buffer.from(body.replace('ada', 'ad\xff'), 'latin1')
  assert.equal((await service.post(invalid)).body.error.issues?.[0]?.code, 'not_utf8')
  const surrogate = JSON.stringify(validBody({ type: 'organisation_invite', organisationName: 'x' })).replace(
    '"x"',
    '"\\ud83d"',
  )
  assert.equal((await service.post(surrogate)).body.error.issues?.[0]?.code, 'lone_surrogate')
})

test('row 38: __proto__ and deep nesting are 400 or ignored, never 500', async () => {
  assert.equal((await service.post('{"__proto__":{"to":"a@b.example"}}')).status, 400)
  assert.equal((await service.post(body.replace('{', '{"__proto__":{"polluted":1},'))).status, 202)
  assert.equal(({} as { polluted?: number }).polluted, undefined)
  assert.equal((await service.post(`${'['.repeat(8000)}`)).status, 400)
  assert.equal((await service.post(`${'['.repeat(8000)}${']'.repeat(8000)}`)).status, 400)
})

test('row 39: compressed bodies and other charsets are 400', async () => {
  assert.equal(
    (await service.post(gzipSync(body), { 'content-encoding': 'gzip' })).body.error.issues?.[0]?.code,
    'content_encoding',
  )
  assert.equal(
    (await service.post(body, { 'content-type': 'application/json; charset=utf-16' })).body.error.issues?.[0]?.code,
    'content_type',
  )
})

// Started here, since they last until the listener's timeouts (5 and 10 s).
const slowHeaders = raw('POST /v1/email HTTP/1.1\r\nHost: x\r\nX-Slow: ')
const slowBody = raw(request([...usual, 'Content-Length: 100'], '{"to":'))

test('row 41: Content-Length with Transfer-Encoding, and two Content-Lengths, are refused', async () => {
  refusedBelowTheRoute(await raw(request([...usual, lengthOf(body), 'Transfer-Encoding: chunked'])))
  refusedBelowTheRoute(await raw(request([...usual, lengthOf(body), 'Content-Length: 3'])))
  refusedBelowTheRoute(await raw(request([...usual, 'Transfer-Encoding: gzip, chunked, x'])))
})

test('row 41: bare line feeds, spaces in names and folded lines are refused', async () => {
  refusedBelowTheRoute(await raw(`POST /v1/email HTTP/1.1\nHost: x\n${bearer}\n\n`, { quietMs: 2000 }))
  refusedBelowTheRoute(await raw(request(['Host: x', 'Content-Length : 3'])))
  refusedBelowTheRoute(await raw(request(['Host: x', 'X-A: b', ' c: d', lengthOf(body)])))
  refusedBelowTheRoute(await raw('GARBAGE\r\n\r\n'))
  refusedBelowTheRoute(await raw('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'))
})

test('row 41: two Authorization headers are 401, whatever they hold', async () => {
  const answer = await raw(request([...usual, bearer, lengthOf(body)]))
  assert.match(answer, /^HTTP\/1\.1 401 /)
})

test('headers over their limit, an unknown Expect, no Host, two Hosts: 400 with our JSON', async () => {
  refusedBelowTheRoute(await raw(request([...usual, `X-Big: ${'x'.repeat(20_000)}`, lengthOf(body)])))
  refusedBelowTheRoute(await raw(request([...usual, 'Expect: a-miracle', lengthOf(body)])))
  refusedBelowTheRoute(await raw(request([bearer, lengthOf(body)])))
  refusedBelowTheRoute(await raw(request([...usual, 'Host: y', lengthOf(body)])))
  const malformedPath = await raw(request(usual, '', 'POST /%zz HTTP/1.1'))
  refusedBelowTheRoute(malformedPath)
})

test('Expect: 100-continue is honoured', async () => {
  const answer = await raw(request([...usual, 'Expect: 100-continue', lengthOf(body)]))
  assert.match(answer, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 202 /)
})

test('requests in one packet are answered one by one', async () => {
  const one = request([...usual, lengthOf(body)])
  const answer = await raw(one + request([...usual, 'Connection: close', lengthOf(body)]), { answers: 2 })
  assert.equal(answer.match(/HTTP\/1\.1 202/g)?.length ?? 0, 2)
})

const bodyTo = (to: string) => JSON.stringify(validBody({ to }))
const emailsOnRecord = async () => (await listEmails(service.store, { limit: 1000 })).length

test('what comes behind the last answer of a connection is not begun', async () => {
  const before = await emailsOnRecord()
  const behind = bodyTo('behind@example.com')
  const noHost = request([bearer, 'Content-Type: application/json', lengthOf(behind)], behind)
  const answer = await raw(noHost + request([...usual, lengthOf(behind)], behind), { answers: 2 })
  assert.deepEqual(answer.match(/HTTP\/1\.1 \d{3}/g), ['HTTP/1.1 400'])
  // Store calls keep their order: had the second one begun, it would be on record by now.
  assert.equal((await service.post(bodyTo('later@example.com'))).status, 202)
  assert.equal(await emailsOnRecord(), before + 1)
})

test('malformed HTTP behind a request is refused after that request’s own answer', async () => {
  const one = bodyTo('before-garbage@example.com')
  const answer = await raw(`${request([...usual, lengthOf(one)], one)}GARBAGE\r\n\r\n`, { answers: 2 })
  assert.deepEqual(answer.match(/HTTP\/1\.1 \d{3}/g), ['HTTP/1.1 202', 'HTTP/1.1 400'])
  // A malformed body is refused at once, or after the answer to a complete request before it.
  const broken = request([...usual, 'Transfer-Encoding: chunked'], 'ZZ\r\n')
  assert.match(await raw(broken), /^HTTP\/1\.1 400 /)
  const two = bodyTo('before-broken@example.com')
  const both = await raw(request([...usual, lengthOf(two)], two) + broken, { answers: 2 })
  assert.deepEqual(both.match(/HTTP\/1\.1 \d{3}/g), ['HTTP/1.1 202', 'HTTP/1.1 400'])
})

test('row 45: 17 requests may be unanswered at a time, and go one after another; more end the connection', async () => {
  const junk = request([...usual, lengthOf('{"to":1}')], '{"to":1}')
  const begun = await raw(junk.repeat(17), { answers: 17 })
  assert.equal(begun.match(/HTTP\/1\.1 400/g)?.length, 17)
  const cutOff = await raw(junk.repeat(2_000), { answers: 2_000 })
  assert.ok((cutOff.match(/HTTP\/1\.1/g)?.length ?? 0) < 100)
})

test('row 42: recipients and headers smuggled through fields are 400', async () => {
  for (const to of [
    'a@b.example\r\nRCPT TO:<c@d.example>',
    'a@b.example,c@d.example',
    'a@b.example c@d.example',
    '"a@b.example"@c.example',
    'a@b.example\u0000',
  ]) {
    assert.equal((await service.post(validBody({ to }))).status, 400, JSON.stringify(to))
  }
  const names = { type: 'organisation_invite', organisationName: 'x\r\nBcc: c@d.example' }
  assert.equal((await service.post(validBody(names))).status, 400)
})

test('row 45: junk keys, unknown keys and revoked keys differ by message alone', async () => {
  const answers = await Promise.all(
    ['Bearer pst_x', `Bearer ${newDeliveryKey()}`].map((authorization) => service.post(validBody(), { authorization })),
  )
  for (const answer of answers) {
    assert.equal(answer.status, 401)
    assert.equal(answer.body.error.code, 'invalid_key')
  }
})

test('row 46: no key, token, recipient or link reaches the log, whatever happens to a request', async () => {
  const canary = { to: 'canary-recipient@example.com', url: 'https://app.acme.test/auth?token=canary-token' }
  await service.post(validBody(canary))
  await service.post(validBody({ ...canary, url: 'https://evil.test/?token=canary-token' }))
  await service.post(validBody({ ...canary, type: 'canary-type' }))
  await service.post(JSON.stringify(validBody(canary)).slice(0, -5))
  await service.post(validBody(canary), { authorization: `Bearer ${newDeliveryKey()}` })
  await eventually(async () => (await service.store.readQueueGauge()).depth === 0)
  await eventually(() => service.log.some((line) => line.includes('delivered')))
  const log = service.log.join('\n')
  assert.doesNotMatch(log, /canary/)
  assert.ok(!log.includes(service.key))
  assert.doesNotMatch(process.title, /canary|pst_/)
})

test('row 40: headers and bodies that come too slowly are cut off, without an answer', async () => {
  const first = await Promise.race([slowHeaders.then(() => 'headers'), slowBody.then(() => 'body')])
  assert.equal(first, 'headers', 'headers have half the time of a whole request')
  assert.equal(await slowHeaders, '')
  assert.equal(await slowBody, '')
})

test('a program of HTTP/1.0 needs no Host; one of HTTP/1.1 does', async () => {
  const { port: ops } = new URL(service.urls.ops)
  const ask = (line: string) =>
    new Promise<string>((resolve, reject) => {
      let answer = ''
      const socket = connect(Number(ops), '127.0.0.1', () => socket.write(`${line}\r\n\r\n`))
      socket.on('data', (chunk) => (answer += chunk.toString('latin1')))
      socket.on('close', () => resolve(answer)).on('error', reject)
    })
  assert.match(await ask('GET /livez HTTP/1.0'), /^HTTP\/1\.1 200 /)
  assert.match(await ask('GET /livez HTTP/1.1'), /^HTTP\/1\.1 400 /)
})

test('a client that leaves amid its request, or names no type of content, is no fault of ours', async () => {
  const others = [service.urls.links, service.urls.console, service.urls.authHooks].filter((url) => url !== undefined)
  assert.equal(others.length, 3)
  for (const url of others) {
    const answer = await fetch(`${url}/x/go`, {
      method: 'POST',
      headers: { 'content-type': ';;;' },
      body: 'x',
    })
    assert.ok(answer.status >= 400 && answer.status < 500, `${url} ${answer.status}`)
    await new Promise<void>((resolve) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
        socket.write(
          request(
            ['Host: localhost', 'Content-Type: text/plain', 'Content-Length: 100'],
            'half',
            'POST /x/go HTTP/1.1',
          ),
          () => socket.destroy(),
        ),
      )
      socket.once('close', () => resolve())
    })
    assert.ok((await fetch(`${service.urls.ops}/livez`)).ok)
  }
  await eventually(async () => (await service.post()).status === 202)
  assert.deepEqual(
    service.log.filter((line) => line.includes('"level":50')),
    [],
  )
})
