/** Relays that are mail APIs: what each is sent, what its answers mean, and servers that misbehave. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import PostalMime, { addressParser } from 'postal-mime'
import { ServerClient } from 'postmark'
import { Resend } from 'resend'
import type { RelayConfig } from '../../src/config/relays.ts'
import type { EmailId } from '../../src/domain/id.ts'
import { checkRelay } from '../../src/management/service/check-relay.ts'
import {
  accepting,
  describeSubmission,
  newApiAddress,
  type Provider,
  providers,
  startApi,
  submit,
} from '../support/api-relay.ts'
import { type Answering, type Asked, sendJson, startApiServer } from '../support/api-server.ts'
import { newTestRelay, relayTo, startTestService, type TestService, validBody } from '../support/service.ts'
import { startSmtpServer, testMessage } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

async function post(service: TestService, change: Record<string, unknown> = {}): Promise<EmailId> {
  const answer = await service.post(validBody(change, service.store.now()))
  assert.equal(answer.status, 202)
  return answer.headers.get('email-id') as EmailId
}

const reaches = (service: TestService, id: EmailId, state: string) =>
  eventually(async () => {
    const record = await service.store.findEmail(id)
    return record?.state === state ? record : null
  })

/** The headers that every message has. All others are ours. */
const usualHeaders = /^(from|to|reply-to|subject|date|message-id|mime-version|content-(type|transfer-encoding))$/

const toRead = (mail: {
  from: unknown
  to: unknown
  replyTo: unknown
  subject: string | undefined
  text: string | undefined
  html: string | undefined
  headers: readonly (readonly [name: string, value: string])[]
}) => ({
  ...mail,
  text: lines(mail.text),
  html: lines(mail.html),
  headers: mail.headers
    .map(([name, value]) => [name.toLowerCase(), value])
    .filter(([name = '']) => !usualHeaders.test(name))
    .toSorted(),
})

async function readRaw(raw: string | Buffer) {
  const { headers, ...mail } = await PostalMime.parse(raw)
  const { from, to, replyTo, subject, text, html } = mail
  return toRead({
    ...{ from, to, replyTo, subject, text, html },
    headers: headers.map(({ key, value }) => [key, value] as const),
  })
}

/** The message in a request, as its reader sees it. */
async function readMessage(provider: Provider, { body }: Asked) {
  const json = () => JSON.parse(Buffer.from(body, 'latin1').toString('utf8'))
  switch (provider) {
    case 'graph':
      return readRaw(Buffer.from(body, 'base64'))
    case 'gmail':
      return readRaw(Buffer.from(body, 'latin1'))
    case 'ses':
      return readRaw(Buffer.from(json().Content.Raw.Data, 'base64'))
    case 'resend': {
      const { from, headers, html, reply_to, subject, text, to } = json()
      const [addresses, replyTo] = [addressParser(to.join()), addressParser(reply_to)]
      return toRead({
        ...{ from: addressParser(from)[0], to: addresses, replyTo, subject, text, html },
        headers: Object.entries<string>(headers),
      })
    }
    default: {
      const { From, Headers, HtmlBody, ReplyTo, Subject, TextBody, To } = json()
      const [from, to, replyTo] = [addressParser(From)[0], addressParser(To), addressParser(ReplyTo)]
      return toRead({
        ...{ from, to, replyTo, subject: Subject, text: TextBody, html: HtmlBody },
        headers: Headers.map(({ Name, Value }: { Name: string; Value: string }) => [Name, Value]),
      })
    }
  }
}

const lines = (text: string | undefined) => text?.replaceAll('\r\n', '\n').trimEnd()

for (const provider of providers)
  test(`${provider}: an email is accepted, and its reader sees what one by SMTP shows`, async (t) => {
    const { asked, config, tokens } = await startApi(t, provider, (_asked, response) => accepting[provider](response))
    const settings = {
      from: { name: 'Ärzte, "Söhne" & Co.', address: 'auth@acme.test' },
      replyTo: 'help@acme.test',
    }
    const service = await startTestService(t, { relays: [config], settings })
    const expiresAt = new Date(Date.now() + 900_000).toISOString() // its minute is in the text of both
    const id = await post(service, { expiresAt })
    const record = await reaches(service, id, 'delivered')
    assert.match(record.trail[0]?.reply?.text ?? '', /^20[02] accepted/)
    assert.equal(record.trail[0]?.relay, provider)
    const [request] = asked
    assert.ok(request)
    const byServer = await startSmtpServer(t)
    const other = await startTestService(t, { relays: [relayTo(byServer.port)], settings })
    const otherId = await post(other, { expiresAt })
    const [reference, otherReference] = [service.store.makeReference(id), other.store.makeReference(otherId)]
    const raw = (await byServer.first()).raw.replaceAll(otherReference, reference)
    const expected = await readRaw(raw)
    assert.deepEqual(await readMessage(provider, request), expected)
    assert.deepEqual(
      expected.headers.map(([name]) => name),
      ['auto-submitted', 'content-language', 'expires', 'feedback-id', 'x-auto-response-suppress', 'x-entity-ref-id'],
    )
    assert.deepEqual(expected.from, { ...settings.from })
    if (provider === 'graph' || provider === 'gmail') {
      assert.equal(request.headers.authorization, 'Bearer token-1')
      assert.equal(tokens.asked.length, 1)
    }
  })

test('Resend and Postmark are asked as their own libraries ask', async (t) => {
  const server = await startApiServer(t, ({ path }, response) =>
    accepting[path === '/emails' ? 'resend' : 'postmark'](response),
  )
  const details = {
    ...{ subject: 'Sign in', html: '<p>x</p>', text: 'x', language: 'en', id: 'em_x' as EmailId },
    ...{ app: 'Acme', type: 'magic_link', url: 'https://acme.test/?token=x', expiresAt: 0 },
    from: { name: 'Acme "A"', address: 'auth@acme.test' },
    replyTo: 'help@acme.test',
    headers: [['X-Entity-Ref-ID', 'em_x']],
  } as const
  for (const provider of ['resend', 'postmark'] as const) {
    const address = newApiAddress(provider, server.url)
    const relay = newTestRelay({ ...relayTo(0), address })
    atEnd(t, () => relay.close())
    const message = testMessage({ describe: () => ({ ...details }) as never })
    const clearance = { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true }
    assert.equal((await relay.submit(message, clearance)).kind, 'accepted')
  }
  const from = '"Acme \\"A\\"" <auth@acme.test>'
  const shared = { subject: details.subject, html: details.html, text: details.text }
  const resend = new Resend('re_secret_key', { baseUrl: server.url })
  await resend.emails.send(
    {
      ...{ from, to: ['ada@example.com'], replyTo: 'help@acme.test', ...shared },
      headers: Object.fromEntries(details.headers),
    },
    { idempotencyKey: 'em_x' },
  )
  const postmark = new ServerClient('postmark-token', {
    requestHost: `localhost:${server.port}`,
    useHttps: false,
  })
  await postmark.sendEmail({
    ...{ From: from, To: 'ada@example.com', ReplyTo: 'help@acme.test' },
    ...{ Subject: details.subject, HtmlBody: details.html, TextBody: details.text },
    Headers: details.headers.map(([Name, Value]) => ({ Name, Value })),
    ...{
      Metadata: { postern: testMessage().reference },
      MessageStream: 'outbound',
      TrackOpens: false,
      TrackLinks: 'None' as never,
    },
  })
  const proof = ['authorization', 'idempotency-key', 'x-postmark-server-token']
  const comparable = ({ body, headers, method, path }: Asked) => ({
    ...{ method, path, body: JSON.parse(body) },
    proof: proof.map((name) => headers[name]),
  })
  const [ownResend, ownPostmark, itsResend, itsPostmark] = server.asked.map(comparable)
  assert.deepEqual(ownResend, itsResend)
  assert.deepEqual(ownPostmark, itsPostmark)
})

const error =
  (status: number, body: unknown, headers = {}): Answering =>
  (_asked, response) =>
    sendJson(response, status, body, headers)
const graphError = (code: string) => ({ error: { code, message: 'no' } })
const gmailError = (reason: string) => ({ error: { errors: [{ reason }], message: 'no' } })

const meanings: [provider: Provider, name: string, answering: Answering, meaning: string][] = [
  ['graph', 'no permission', error(403, graphError('ErrorAccessDenied')), 'relay lasting'],
  ['graph', 'no mailbox', error(404, graphError('ErrorInvalidUser')), 'relay lasting'],
  ['graph', 'not its sender', error(403, graphError('ErrorSendAsDenied')), 'unclear permanent'],
  ['graph', 'bad message', error(400, graphError('ErrorMimeContentInvalid')), 'unclear permanent'],
  ['graph', 'throttled', error(429, graphError('TooManyRequests'), { 'retry-after': '9' }), 'relay wait 9000'],
  ['graph', 'busy', error(503, {}), 'relay wait 1000'],
  ['gmail', 'rate', error(403, gmailError('rateLimitExceeded'), { 'retry-after': '2' }), 'relay wait 2000'],
  ['gmail', 'daily limit', error(403, gmailError('dailyLimitExceeded')), 'relay lasting'],
  ['gmail', 'not enabled', error(400, gmailError('failedPrecondition')), 'relay lasting'],
  ['gmail', 'bad message', error(400, gmailError('invalidArgument')), 'unclear permanent'],
  [
    'ses',
    'signature',
    error(403, { message: 'no' }, { 'x-amzn-errortype': 'SignatureDoesNotMatch:x' }),
    'relay lasting',
  ],
  ['ses', 'paused', error(400, { message: 'no' }, { 'x-amzn-errortype': 'SendingPausedException' }), 'relay lasting'],
  [
    'ses',
    'too fast',
    error(429, { message: 'no' }, { 'x-amzn-errortype': 'TooManyRequestsException' }),
    'relay wait 1000',
  ],
  ['ses', 'throttled', error(400, { __type: 'x#ThrottlingException', message: 'no' }), 'relay wait 1000'],
  ['ses', 'prototype', error(400, { __type: 'x#constructor', message: 'no' }), 'unclear permanent'],
  ['ses', 'rejected', error(400, { __type: 'x#MessageRejected', message: 'no' }), 'unclear permanent'],
  ['resend', 'key', error(401, { name: 'invalid_api_key', message: 'no' }), 'relay lasting'],
  ['resend', 'quota', error(429, { name: 'daily_quota_exceeded', message: 'no' }), 'relay lasting'],
  [
    'resend',
    'rate',
    error(429, { name: 'rate_limit_exceeded', message: 'no' }, { 'retry-after': '1' }),
    'relay wait 1000',
  ],
  ['resend', 'domain', error(403, { name: 'validation_error', message: 'no' }), 'unclear permanent'],
  ['resend', 'at work', error(409, { name: 'concurrent_idempotent_requests', message: 'no' }), 'message'],
  ['resend', 'sent before', error(409, { name: 'invalid_idempotent_request', message: 'no' }), 'accepted'],
  ['postmark', 'token', error(401, { ErrorCode: 10, Message: 'no' }), 'relay lasting'],
  ['postmark', 'credit', error(422, { ErrorCode: 405, Message: 'no' }), 'relay lasting'],
  [
    'postmark',
    'recipient',
    error(422, { ErrorCode: 300, Message: "Invalid 'To' address: 'ada@example.com'." }),
    'message permanent',
  ],
  [
    'postmark',
    'inactive',
    error(422, { ErrorCode: 406, Message: 'You tried to send to recipient(s) that have been marked as inactive.' }),
    'message permanent',
  ],
  ['postmark', 'its fault', error(500, { ErrorCode: 0, Message: 'no' }), 'unclear'],
]
for (const [provider, name, answering, meaning] of meanings)
  test(`${provider}, ${name}: ${meaning}`, async (t) => {
    const { config } = await startApi(t, provider, answering)
    assert.equal(describeSubmission(await submit(config)), meaning)
  })

test('Resend is asked again at once with the same bytes when no answer came, and sends one email', async (t) => {
  const sent = new Map<string, string>()
  const { asked, config } = await startApi(t, 'resend', ({ body, headers }, response, count) => {
    const key = String(headers['idempotency-key'])
    if (sent.has(key) && sent.get(key) !== body)
      return sendJson(response, 409, { name: 'invalid_idempotent_request', message: 'other' })
    sent.set(key, body)
    if (count === 1) return void response.destroy()
    sendJson(response, 200, { id: 'r1' })
  })
  assert.equal(describeSubmission(await submit(config)), 'accepted')
  assert.equal(asked.length, 2)
  assert.equal(asked[0]?.body, asked[1]?.body)
  assert.equal(sent.size, 1)
})

test('a token that is refused is replaced once; a second refusal is the relay’s', async (t) => {
  const { asked, config, tokens } = await startApi(t, 'graph', ({ headers }, response) => {
    if (headers.authorization === 'Bearer token-2') accepting.graph(response)
    else sendJson(response, 401, graphError('InvalidAuthenticationToken'))
  })
  const relay = newTestRelay(config)
  atEnd(t, () => relay.close())
  const clearance = () => ({ deadlineMs: performance.now() + 60_000, isLeaseValid: () => true })
  assert.equal(describeSubmission(await relay.submit(testMessage(), clearance())), 'relay lasting')
  assert.equal(describeSubmission(await relay.submit(testMessage(), clearance())), 'accepted')
  assert.deepEqual([asked.length, tokens.asked.length], [2, 2])
})

test('a relay that asks for time is left alone for so long, and the next one gets the email at once', async (t) => {
  const { asked, config } = await startApi(
    t,
    'resend',
    error(429, { name: 'rate_limit_exceeded' }, { 'retry-after': '200' }),
  )
  const second = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [config, relayTo(second.port)] })
  for (const to of ['a@example.com', 'b@example.com']) {
    const { attempts, trail } = await reaches(service, await post(service, { to }), 'delivered')
    assert.deepEqual([attempts, trail.length], [1, 1])
  }
  assert.equal(asked.length, 1)
  assert.equal(second.received.length, 2)
})

test('mail for a reserved domain goes to no relay that did not ask for it, and is cancelled in words', async (t) => {
  const { asked, config } = await startApi(t, 'resend', (_asked, response) => accepting.resend(response))
  const service = await startTestService(t, { relays: [{ ...config, takesReserved: false }] })
  const reserved = await reaches(service, await post(service), 'cancelled')
  assert.equal(reserved.reason, 'reserved_domain')
  await reaches(service, await post(service, { to: 'ada@acme.dev' }), 'delivered')
  assert.equal(asked.length, 1)
  const local = await startSmtpServer(t)
  const both = await startTestService(t, {
    relays: [{ ...config, takesReserved: false }, relayTo(local.port)],
  })
  await reaches(both, await post(both), 'delivered')
  assert.deepEqual([asked.length, local.received.length], [1, 1])
})

const refusals: { readonly [name in Provider]: Answering } = {
  graph: error(400, graphError('ErrorInvalidRequest')),
  gmail: error(400, gmailError('invalidArgument')),
  ses: error(400, { message: 'no' }, { 'x-amzn-errortype': 'MessageRejected' }),
  resend: error(422, { name: 'missing_required_field', message: 'no' }),
  postmark: error(422, { ErrorCode: 300, Message: 'no' }),
}
for (const provider of providers)
  test(`the check of ${provider} sends nothing, and tells a good account from a bad one`, async (t) => {
    const good = await startApi(t, provider, refusals[provider])
    const { ok, detail } = await checkRelay(good.config)
    assert.equal(ok, true, detail)
    const hasToken = provider === 'graph' || provider === 'gmail'
    assert.match(detail, hasToken ? /takes the token \(client c…, 60 min left\)$/ : /accepts the credentials$/)
    const { account } = good.config.address as Extract<RelayConfig['address'], { protocol: 'https' }>
    const [own] = ['key', 'token', 'secret'].flatMap((name) => Reflect.get(account as object, name) ?? [])
    const said = { name: 'invalid_api_key', ErrorCode: 10, Message: own, message: own }
    const bad = await startApi(t, provider, error(401, said))
    const refused = await checkRelay(bad.config)
    assert.equal(refused.ok, false)
    assert.match(refused.detail, /^401.*Nothing is sent through this relay/)
    if (own !== undefined) assert.ok(!refused.detail.includes(own), refused.detail)
    for (const { body } of good.asked) assert.doesNotMatch(body, /acme/)
    good.close()
    const gone = await checkRelay(good.config)
    assert.equal(gone.ok, false)
    assert.match(gone.detail, /ECONNREFUSED.*Nothing is sent through this relay/)
    assert.equal(gone.detail.split('ECONNREFUSED').length, 2, 'said once')
    if (!hasToken) return
    const without = await checkRelay({ name: provider, address: newApiAddress(provider, good.url) })
    assert.equal(without.ok, false)
    assert.match(without.detail, /^no token: the token server: it cannot be reached.*Nothing is sent through/)
  })
