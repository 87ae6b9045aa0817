/** The client and the real service: what each email becomes, what each refusal says. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import type { EmailType as ServerEmailType } from '../../src/domain/request/email-kinds.ts'
import type { EmailRequest } from '../../src/domain/request/email-request.ts'
import type { refusals } from '../../src/domain/request/rejection.ts'
import { newSender, startTestService, testSettings } from '../../test/support/service.ts'
import { type Email, type EmailType, Postern, PosternError, type PosternErrorCode } from '../src/postern.ts'
import { DevInbox } from '../src/testing.ts'

const service = await startTestService({ after })
const inbox = new DevInbox(service.urls.inbox ?? '')
const baseUrl = service.urls.api ?? ''
const postern = new Postern({ deliveryKey: service.key, baseUrl })
let serial = 0

const emailTo = (change: Partial<Email> = {}): Email =>
  ({
    to: `client${serial++}@example.com`,
    type: 'magic_link',
    url: 'https://app.acme.test/auth?token=abc',
    expiresAt: new Date(Date.now() + 900_000),
    ...change,
  }) as Email

const emails: Email[] = [
  emailTo({ type: 'magic_link' }),
  emailTo({ type: 'email_verification', url: new URL('https://app.acme.test/verify?token=x.y.z') }),
  emailTo({ type: 'password_reset', expiresAt: '2099-01-01T00:00:00+02:00' }),
  emailTo({ type: 'organisation_invite', organisationName: 'Blue', inviterName: 'Grace' }),
]

for (const email of emails) {
  test(`${email.type}: queued, delivered, with its link and its end`, async () => {
    const { emailId, replayed } = await postern.send(email)
    const received = await inbox.next(email.to, email.type)
    assert.equal(received.id, emailId)
    assert.equal(replayed, false)
    assert.equal(received.url, String(email.url))
    assert.equal(received.expiresAt, new Date(email.expiresAt).toISOString())
    if (email.type === 'organisation_invite') assert.match(received.text, /Grace[\s\S]*Blue/)
  })
}

test('two calls under one key queue one email', async () => {
  const email = emailTo()
  const options = { idempotencyKey: 'order-1' }
  const first = await postern.send(email, options)
  const second = await postern.send(email, options)
  assert.deepEqual(second, { emailId: first.emailId, replayed: true, codeIgnored: false })
})

test('a code is ignored if the answer says `code`, and not for what else may be ignored later', async () => {
  const codeIgnored = async (value: string | null) => {
    const client = new Postern({
      deliveryKey: service.key,
      baseUrl,
      fetch: async (url, options) => {
        const answer = await fetch(url, options)
        const headers = new Headers(answer.headers)
        assert.equal(headers.get('postern-ignored'), 'code')
        if (value !== 'code') headers.delete('postern-ignored')
        if (value !== null) headers.set('postern-ignored', value)
        return new Response(answer.body, { status: answer.status, headers })
      },
    })
    return (await client.send(emailTo({ code: '246813' }))).codeIgnored
  }
  assert.equal(await codeIgnored('code'), true)
  for (const value of [null, '', 'locale', 'codec', 'code-page']) assert.equal(await codeIgnored(value), false)
})

const past = new Date(Date.now() - 1000)
for (const [name, change, expected] of [
  ['half a character', { to: '\ud800@example.com' }, { status: 400, code: 'invalid_body', field: 'to' }],
  ['a field', { to: 'nobody' }, { status: 400, code: 'invalid_body', field: 'to' }],
  ['an end in the past', { expiresAt: past }, { status: 400, code: 'invalid_body', field: 'expiresAt' }],
  ['a link', { url: 'https://app.acme.test/a?b=c' }, { status: 400, code: 'invalid_url', field: 'url' }],
  ['an address', { url: 'https://evil.test/?token=a' }, { status: 403, code: 'url_not_allowed', field: undefined }],
] as [string, Partial<Email>, { status: number; code: string; field: string | undefined }][]) {
  test(`a refusal for ${name} says what is wrong`, async () => {
    const error = await postern.send(emailTo(change)).then(
      () => assert.fail('was queued'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof PosternError)
    const { status, code, issues, requestId, message } = error
    assert.deepEqual({ status, code, field: issues[0]?.field }, expected)
    assert.match(requestId ?? '', /^req_/)
    assert.ok(message.length > 10)
  })
}

test('a 400 names its first fault in the message, for logs that keep no more', async () => {
  await assert.rejects(postern.send(emailTo({ url: 'https://app.acme.test/a?b=c' })), /url: The query must hold/)
})

test('a base address with the path in it is taken; another port of the service is recognised', async () => {
  const whole = new Postern({ deliveryKey: service.key, baseUrl: `${baseUrl}/v1/email/` })
  assert.ok((await whole.send(emailTo())).emailId)
  for (const url of [`${baseUrl}/v1`, service.urls.ops ?? '']) {
    const lost = new Postern({ deliveryKey: service.key, baseUrl: url })
    await assert.rejects(lost.send(emailTo()), {
      code: 'unexpected_response',
      status: 404,
      message: /baseUrl/,
    })
  }
})

test('a key that nobody knows is refused, as a value where that is asked for', async () => {
  const stranger = new Postern({ deliveryKey: 'pst_nonsense', baseUrl })
  const outcome = await stranger.safeSend(emailTo())
  assert.ok(!outcome.ok && outcome.error.code === 'invalid_key' && outcome.error.status === 401)
})

test('each limit says which one it is and when to come back', async () => {
  const codes: [PosternErrorCode, Partial<typeof testSettings.limits>][] = [
    ['key_rate_limited', { keyPerMinute: 1 }],
    ['recipient_rate_limited', { recipientPerHour: 1 }],
    ['daily_limit_reached', { daily: 1 }],
  ]
  for (const [code, limits] of codes) {
    const settings = { ...testSettings, limits: { ...testSettings.limits, ...limits } }
    const { key } = await newSender(service, `limit-${serial++}`, settings)
    const client = new Postern({ deliveryKey: key, baseUrl })
    const email = emailTo()
    await client.send(email)
    const outcome = await client.safeSend(email)
    assert.ok(!outcome.ok)
    assert.equal(outcome.error.code, code)
    assert.equal(outcome.error.status, 429)
    assert.ok((outcome.error.retryAfterMs ?? 0) > 0)
  }
})

test('a request that cannot be sent fails before anything is sent', async () => {
  const invalid = new Date('never')
  await assert.rejects(postern.send(emailTo({ expiresAt: invalid })), { code: 'invalid_body' })
  await assert.rejects(postern.send(emailTo(), { idempotencyKey: 'two words' }), { code: 'invalid_body' })
})

test('options that cannot work are named, and their values never repeated', async () => {
  const bad = [
    [{ baseUrl }, /POSTERN_DELIVERY_KEY/],
    [{ deliveryKey: 'pst_canary\n', baseUrl }, /delivery key/],
    [{ deliveryKey: 'pst_a' }, /POSTERN_BASE_URL/],
    [{ deliveryKey: 'pst_a', baseUrl: 'canary' }, /absolute URL/],
    [{ deliveryKey: 'pst_a', baseUrl: 'https://u:canary@postern.test' }, /without user name/],
    [{ deliveryKey: 'pst_a', baseUrl: 'ftp://canary.test' }, /http or https/],
    [{ deliveryKey: 'pst_a', baseUrl, timeoutMs: 0 }, /timeoutMs/],
    [{ deliveryKey: 'pst_a', baseUrl, budgetMs: Number.POSITIVE_INFINITY }, /budgetMs/],
    [{ deliveryKey: 'pst_a', baseUrl, maxRetries: -1 }, /maxRetries/],
  ] as const
  for (const [options, expected] of bad) {
    const isExpected = (error: PosternError) => {
      assert.equal(error.code, 'invalid_config')
      assert.match(error.message, expected)
      assert.doesNotMatch(error.message, /canary/)
      return true
    }
    const isMissing = /POSTERN_/.test(expected.source)
    if (!isMissing) {
      assert.throws(() => new Postern(options), isExpected)
      continue
    }
    assert.throws(() => new Postern(options).check(), isExpected)
    const outcome = await new Postern(options).safeSend(emailTo())
    assert.ok(!outcome.ok && isExpected(outcome.error))
  }
})

test('a check at the start of an app passes with a whole key, and names everything that is missing', () => {
  for (let n = 0; n < 50; n++) new Postern({ deliveryKey: newDeliveryKey(), baseUrl }).check()
  const bare = new Postern({ deliveryKey: '', baseUrl: '' })
  assert.throws(() => bare.check(), /POSTERN_DELIVERY_KEY.*POSTERN_BASE_URL/)
})

test('a check refuses a key that is mistyped, cut short or quoted, without repeating it', () => {
  const { key } = service
  const last = key.at(-1) === 'a' ? 'b' : 'a'
  const token = newDeliveryKey().replace('pst_', 'psa_')
  for (const wrong of ['pst_x', key.slice(0, -1), key.slice(0, -1) + last, `"${key}"`, `${key}0`, token]) {
    const client = new Postern({ deliveryKey: wrong, baseUrl })
    const isExpected = ({ message }: Error) => /mistyped or cut short/.test(message) && !message.includes(wrong)
    assert.throws(() => client.check(), isExpected, wrong)
  }
})

test('the environment stands in for options, at the first call and not before', async () => {
  const client = new Postern()
  process.env.POSTERN_DELIVERY_KEY = service.key
  process.env.POSTERN_BASE_URL = `${baseUrl}/`
  try {
    assert.ok((await client.send(emailTo())).emailId)
  } finally {
    delete process.env.POSTERN_DELIVERY_KEY
    delete process.env.POSTERN_BASE_URL
  }
})

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
type Fields<T> = T extends unknown ? keyof T : never
type Sendable<T> = T extends Email ? true : false
type Common = { to: string; url: string; expiresAt: string }

test('the types are those of the service, and keep out what it would refuse', () => {
  // The other two are for auth servers alone.
  type Code = Exclude<keyof typeof refusals, 'notice_not_sent' | 'unsupported_email'>
  const codes: Same<Code, Extract<PosternErrorCode, Code>> = true
  const types: Same<EmailType, ServerEmailType> = true
  // These two are for auth servers alone.
  const fields: Same<Exclude<keyof EmailRequest, 'purpose' | 'rule'>, Fields<Email>> = true
  assert.ok(codes && types && fields)
  const named: Sendable<Common & { type: 'organisation_invite'; organisationName: string }> = true
  const nameless: Sendable<Common & { type: 'organisation_invite' }> = false
  const ofOurs: Sendable<Common & { type: 'magic_link' }> = true
  const ofNoType: Sendable<Common & { type: 'newsletter' }> = false
  const endless: Sendable<Omit<Common, 'expiresAt'> & { type: 'magic_link' }> = false
  assert.ok(named && ofOurs && !nameless && !ofNoType && !endless)
})

test('a delivery key crosses a network by https alone, unless the network is private or the option says so', () => {
  const { key } = service
  const check = (url: string, more = {}) => new Postern({ deliveryKey: key, baseUrl: url, ...more }).check()
  for (const host of [
    'localhost:4020',
    '127.0.0.1:4020',
    '[::1]',
    'postern',
    'postern.default.svc',
    'mail.local',
    '10.1.2.3',
  ])
    assert.doesNotThrow(() => check(`http://${host}`), host)
  for (const host of [
    'postern.example.com',
    'evil.mylocal',
    'a.contest',
    '203.0.113.7',
    '[2001:db8::1]',
    'localhost.example.com',
    '127.0.0.1.example.com',
    '172.32.0.1',
  ]) {
    assert.throws(
      () => check(`http://${host}`),
      { code: 'invalid_config', message: /must be https.*insecureHttp/ },
      host,
    )
    assert.doesNotThrow(() => check(`http://${host}`, { insecureHttp: true }), host)
    assert.doesNotThrow(() => check(`https://${host}`), host)
  }
})
