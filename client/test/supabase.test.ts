/** The Supabase hook: signatures by another implementation, emails through the real service. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { newSender, startTestService, testSettings } from '../../test/support/service.ts'
import { Postern } from '../src/postern.ts'
import { verifyWebhook } from '../src/standard-webhook.ts'
import { type SendEmailHookOptions, sendEmailHook } from '../src/supabase.ts'
import { CapturingPostern, DevInbox } from '../src/testing.ts'

const service = await startTestService({ after })
const baseUrl = service.urls.api ?? ''
const postern = new Postern({ deliveryKey: service.key, baseUrl })
const inbox = new DevInbox(service.urls.console ?? '')
const webhook = new Webhook('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
const secret = 'v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const page = 'https://app.acme.test/auth/confirm'
const options: SendEmailHookOptions = {
  postern,
  secret,
  pages: { signup: page, magiclink: page, recovery: page, invite: page, email_change: page },
  organisationName: 'Blue',
}
let serial = 0

const signed = (body: string, at = new Date(), id = `msg_${serial++}`): Request =>
  new Request('https://hooks.acme.test/send-email', {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': webhook.sign(id, at, body),
    },
  })

const bodyOf = (
  action: string,
  email: string,
  data: Record<string, string> = {},
  user: Record<string, string> = {},
) =>
  JSON.stringify({
    user: { id: '8484b834-f29e-4af2-bf42-80644d154f76', aud: 'authenticated', email, ...user },
    email_data: {
      token: '305805',
      token_hash: '7d5b7b1964cf5d388340a7f04f1dbb5eeb6c7b52ef8270e1737a58d0',
      redirect_to: 'https://app.acme.test/welcome',
      email_action_type: action,
      site_url: 'https://app.acme.test',
      token_new: '',
      token_hash_new: '',
      ...data,
    },
  })

const answerOf = async (response: Response) => ({
  status: response.status,
  retryAfter: response.headers.get('retry-after'),
  ...((await response.json()) as { error?: { http_code: number; message: string } }),
})

test('the specification’s own example is valid, and nothing that differs from it', async () => {
  const body = '{"test": 2432232314}'
  const nowMs = 1_614_265_330_000
  const headers = (change: Record<string, string> = {}) =>
    new Headers({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
      ...change,
    })
  assert.equal(await verifyWebhook(secret, headers(), body, nowMs), true)
  const good = headers().get('webhook-signature')
  const several = { 'webhook-signature': `v1a,xx v1,AAAA v1,?? ${good}` }
  assert.equal(await verifyWebhook(secret, headers(several), body, nowMs + 299_000), true)
  assert.equal(
    await verifyWebhook(`v1,whsec_${btoa('another secret of it')}|${secret}`, headers(), body, nowMs),
    true,
  )
  for (const [change, text, at] of [
    [{ 'webhook-id': 'msg_other' }, body, nowMs],
    [{ 'webhook-timestamp': '1614265331' }, body, nowMs],
    [{ 'webhook-timestamp': 'soon' }, body, nowMs],
    [{ 'webhook-signature': 'v1,' }, body, nowMs],
    [{ 'webhook-signature': String(good).replace('v1,', 'v2,') }, body, nowMs],
    [{ 'webhook-signature': String(good).slice(3) }, body, nowMs],
    [{}, `${body} `, nowMs],
    [{}, body, nowMs + 301_000],
    [{}, body, nowMs - 301_000],
  ] as const) {
    assert.equal(await verifyWebhook(secret, headers(change), text, at), false, JSON.stringify(change))
  }
  await assert.rejects(verifyWebhook('v1,whsec_', headers(), body, nowMs), { code: 'invalid_config' })
})

for (const [action, type] of [
  ['signup', 'email_verification'],
  ['magiclink', 'magic_link'],
  ['recovery', 'password_reset'],
  ['invite', 'organisation_invite'],
] as const) {
  test(`${action}: ${type}, with the token's hash, for as long as the project says`, async () => {
    const to = `${action}@example.com`
    const response = await sendEmailHook({ ...options, otpExpiresIn: 900 })(signed(bodyOf(action, to)))
    assert.deepEqual(await answerOf(response), { status: 200, retryAfter: null })
    const received = await inbox.next(to, type)
    assert.equal(received.url, `${page}?token=7d5b7b1964cf5d388340a7f04f1dbb5eeb6c7b52ef8270e1737a58d0`)
    const left = (Date.parse(received.expiresAt) - Date.now()) / 1000
    assert.ok(left <= 900 && left > 840, `${left}`)
  })
}

test('a change of address confirmed at both: each gets its own token, whose names are crossed over', async () => {
  const data = { token_hash: 'a'.repeat(56), token_new: '1', token_hash_new: 'b'.repeat(56) }
  const body = bodyOf('email_change', 'old@example.com', data, { new_email: 'new@example.com' })
  assert.equal((await sendEmailHook(options)(signed(body))).status, 200)
  assert.equal((await inbox.next('new@example.com')).url, `${page}?token=${'a'.repeat(56)}`)
  assert.equal((await inbox.next('old@example.com')).url, `${page}?token=${'b'.repeat(56)}`)
})

test('a change of address confirmed at the new one alone', async () => {
  for (const [at, data] of [
    ['one@example.com', { token_hash: 'c'.repeat(56) }],
    ['two@example.com', { token_hash: '', token_hash_new: 'c'.repeat(56) }],
  ] as const) {
    const body = bodyOf('email_change', 'still@example.com', data, { new_email: at })
    assert.equal((await sendEmailHook(options)(signed(body))).status, 200)
    assert.equal((await inbox.next(at)).url, `${page}?token=${'c'.repeat(56)}`)
    assert.equal(await inbox.latest('still@example.com'), null)
  }
})

test('called three times for one token, each with an id and an expiry of its own: one email', async () => {
  const to = 'thrice@example.com'
  for (const otpExpiresIn of [3600, 3601, 3602]) {
    const hook = sendEmailHook({ ...options, otpExpiresIn })
    assert.equal((await hook(signed(bodyOf('magiclink', to)))).status, 200)
  }
  await inbox.next(to)
  const list = (await (await fetch(`${service.urls.console}/api/inbox`)).json()) as { to: string }[]
  assert.equal(list.filter((email) => email.to === to).length, 1)
})

test('codes and notifications have no link: refused clearly', async () => {
  for (const action of ['reauthentication', 'password_changed_notification', '<script>']) {
    const { status, error } = await answerOf(
      await sendEmailHook(options)(signed(bodyOf(action, 'a@example.com'))),
    )
    assert.equal(status, 422)
    assert.match(error?.message ?? '', /no type for the email/)
    assert.doesNotMatch(error?.message ?? '', /</)
  }
})

test('what Supabase should try again says when, what it should not does not', async () => {
  const settings = { ...testSettings, limits: { ...testSettings.limits, recipientPerHour: 1 } }
  const { key } = await newSender(service, 'one-an-hour', settings)
  const limited = { ...options, postern: new Postern({ deliveryKey: key, baseUrl }) }
  await sendEmailHook(limited)(signed(bodyOf('magiclink', 'limit@example.com')))
  const second = bodyOf('magiclink', 'limit@example.com', { token_hash: 'd'.repeat(56) })
  const answer = await answerOf(await sendEmailHook(limited)(signed(second)))
  assert.equal(answer.status, 429)
  assert.match(answer.error?.message ?? '', /^recipient_rate_limited: /)
  assert.ok(Number(answer.retryAfter) > 0)

  const captured = new CapturingPostern()
  for (const [refusal, expected] of [
    [
      { status: 503, code: 'queue_full', retryAfterS: 30 },
      { status: 503, retryAfter: '30' },
    ],
    [
      { status: 403, code: 'url_not_allowed' },
      { status: 500, retryAfter: null },
    ],
  ] as const) {
    captured.refusal = refusal
    const { status, retryAfter } = await answerOf(
      await sendEmailHook({ ...options, postern: captured })(signed(bodyOf('magiclink', 'a@example.com'))),
    )
    assert.deepEqual({ status, retryAfter }, expected)
  }
})

test('a wrong signature is 401, a body of something else 400, a missing setting 500: nothing is sent', async () => {
  const captured = new CapturingPostern()
  const hook = (change: Partial<SendEmailHookOptions> = {}) =>
    sendEmailHook({ ...options, postern: captured, ...change })
  const body = bodyOf('magiclink', 'a@example.com')
  const forged = new Request('https://hooks.acme.test/', {
    method: 'POST',
    body,
    headers: signed(`${body} `).headers,
  })
  assert.equal((await hook()(forged)).status, 401)
  assert.equal((await hook()(signed(body, new Date(Date.now() - 400_000)))).status, 401)
  assert.equal((await hook()(signed('[]'))).status, 400)
  assert.equal((await hook()(signed('not JSON'))).status, 400)
  for (const [change, action, expected] of [
    [{ pages: {} }, 'magiclink', /pages\.magiclink/],
    [{ organisationName: undefined }, 'invite', /organisationName/],
    [{ secret: 'v1,whsec_' }, 'magiclink', /secret/],
  ] as const) {
    const { status, error } = await answerOf(await hook(change)(signed(bodyOf(action, 'a@example.com'))))
    assert.equal(status, 500)
    assert.match(error?.message ?? '', expected)
  }
  assert.deepEqual(captured.emails, [])
})
