/** The Supabase hook: signatures by another implementation, emails through the real service. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { newSender, startTestService, testSettings } from '../../test/support/service.ts'
import { Postern } from '../src/postern.ts'
import { verifyWebhook } from '../src/standard-webhook.ts'
import { type SendEmailHookOptions, sendEmailHook, splitToken } from '../src/supabase.ts'
import { CapturingPostern, DevInbox } from '../src/testing.ts'

const service = await startTestService({ after })
const baseUrl = service.urls.api ?? ''
const postern = new Postern({ deliveryKey: service.key, baseUrl })
const inbox = new DevInbox(service.urls.inbox ?? '')
const webhook = new Webhook('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
const secret = 'v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const page = 'https://app.acme.test/auth/confirm'
const failures: unknown[] = []
const options: SendEmailHookOptions = {
  postern,
  onError: (error) => failures.push(error),
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

const bodyOf = (action: string, email: string, data: Record<string, string> = {}, user: Record<string, string> = {}) =>
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

/** Reads an answer as Supabase does: status 200, perhaps an `error`. */
async function answerOf(response: Response): Promise<{ status: number; message: string }> {
  assert.equal(response.status, 200)
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
  const { error } = (await response.json()) as { error?: { http_code: number; message: string } }
  return { status: error?.http_code ?? 200, message: error?.message ?? '' }
}

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
  for (const several of [`v1a,xx v1,AAAA v1,?? ${good}`, `v1,AAAA=, ${good}`, `${good}, v1,AAAA=`]) {
    const change = { 'webhook-signature': several }
    assert.equal(await verifyWebhook(secret, headers(change), body, nowMs + 299_000), true, several)
  }
  assert.equal(await verifyWebhook(`v1,whsec_${btoa('another secret of it')}|${secret}`, headers(), body, nowMs), true)
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
    assert.deepEqual(await answerOf(response), { status: 200, message: '' })
    const received = await inbox.next(to, type)
    assert.equal(received.url, `${page}?token=7d5b7b1964cf5d388340a7f04f1dbb5eeb6c7b52ef8270e1737a58d0`)
    const left = (Date.parse(received.expiresAt) - Date.now()) / 1000
    assert.ok(left <= 900 && left > 840, `${left}`)
  })
}

test('a change of address that both addresses confirm is refused: its emails would ask a victim to approve it', async () => {
  const data = { token_hash: 'a'.repeat(56), token_new: '1', token_hash_new: 'b'.repeat(56) }
  const body = bodyOf('email_change', 'old@example.com', data, { new_email: 'new@example.com' })
  const answer = await answerOf(await sendEmailHook(options)(signed(body)))
  assert.equal(answer.status, 422)
  assert.match(answer.message, /^unsupported_email: .*"Secure email change".*postern auth-hook connect APP supabase/)
  for (const address of ['old@example.com', 'new@example.com'])
    await assert.rejects(inbox.next(address, undefined, 50), { code: 'timeout' })
})

test('a change of address confirmed at the new one alone', async () => {
  for (const [at, data] of [
    ['one@example.com', { token_hash: 'c'.repeat(56) }],
    ['two@example.com', { token_hash: '', token_hash_new: 'c'.repeat(56) }],
  ] as const) {
    const body = bodyOf('email_change', 'still@example.com', data, { new_email: at })
    assert.equal((await sendEmailHook(options)(signed(body))).status, 200)
    assert.equal((await inbox.next(at)).url, `${page}?token=${'c'.repeat(56)}`)
    await assert.rejects(inbox.next('still@example.com', undefined, 50), { code: 'timeout' })
  }
})

test('the code beside the link, if it is asked for: of a change, that of the new address', async () => {
  const capturing = new CapturingPostern()
  const answer = (body: string, code: boolean) =>
    sendEmailHook({ ...options, postern: capturing, code })(signed(body)).then(answerOf)
  await answer(bodyOf('magiclink', 'code@example.com'), true)
  await answer(bodyOf('magiclink', 'none@example.com'), false)
  await answer(bodyOf('magiclink', 'empty@example.com', { token: '' }), true)
  await answer(bodyOf('invite', 'invited@example.com'), true)
  await answer(bodyOf('magiclink', 'stale@example.com', { token_new: '305806' }), true)
  const changed = { token_new: '305806', token_hash_new: 'h', token_hash: '' }
  await answer(bodyOf('email_change', 'old@example.com', changed, { new_email: 'new@example.com' }), true)
  assert.deepEqual(
    capturing.emails.map(({ to, code }) => [to, code]),
    [
      ['code@example.com', '305805'],
      ['none@example.com', undefined],
      ['empty@example.com', undefined],
      ['invited@example.com', undefined],
      ['stale@example.com', '305805'],
      ['new@example.com', '305806'],
    ],
  )
})

test('an address that is not confirmed gets no link but that of the change, whatever else the event holds', async () => {
  const data = { token_hash: 'd'.repeat(56), token_hash_new: 'e'.repeat(56) }
  const body = bodyOf('magiclink', 'now@example.com', data, { new_email: 'pending@example.com' })
  assert.equal((await sendEmailHook(options)(signed(body))).status, 200)
  assert.equal((await inbox.next('now@example.com')).url, `${page}?token=${'d'.repeat(56)}`)
  await assert.rejects(inbox.next('pending@example.com', undefined, 50), { code: 'timeout' })
})

test('called three times for one token, each with an id and an expiry of its own: one email', async () => {
  const to = 'three-times@example.com'
  for (const otpExpiresIn of [3600, 3601, 3602]) {
    const hook = sendEmailHook({ ...options, otpExpiresIn })
    assert.equal((await hook(signed(bodyOf('magiclink', to)))).status, 200)
  }
  await inbox.next(to)
  const list = (await (await fetch(`${service.urls.inbox}/api/inbox`)).json()) as { to: string }[]
  assert.equal(list.filter((email) => email.to === to).length, 1)
})

test('codes and notifications have no link: refused clearly', async () => {
  for (const action of ['reauthentication', 'password_changed_notification', '<script>']) {
    const answer = await answerOf(await sendEmailHook(options)(signed(bodyOf(action, 'a@example.com'))))
    assert.equal(answer.status, 422)
    assert.match(answer.message, /no type for the email/)
    assert.doesNotMatch(answer.message, /</)
  }
})

test('redirect_to is left out, or travels in the token', async () => {
  const captured = new CapturingPostern()
  const hook = sendEmailHook({ ...options, postern: captured, redirectTo: 'in-token' })
  await hook(signed(bodyOf('magiclink', 'a@example.com')))
  const token = new URL(captured.emails[0]?.url ?? '').searchParams.get('token') ?? ''
  const rest = `redirect_to=${encodeURIComponent('https://app.acme.test/welcome')}`
  assert.equal(splitToken(token)?.rest, rest)
})

test('what fails is in the answer as Supabase reads it, and reported to onError', async () => {
  const settings = { ...testSettings, limits: { ...testSettings.limits, recipientPerHour: 1 } }
  const { key } = await newSender(service, 'one-an-hour', settings)
  const limited = { ...options, postern: new Postern({ deliveryKey: key, baseUrl }) }
  await sendEmailHook(limited)(signed(bodyOf('magiclink', 'limit@example.com')))
  const second = bodyOf('magiclink', 'limit@example.com', { token_hash: 'd'.repeat(56) })
  const seen = failures.length
  const answer = await answerOf(await sendEmailHook(limited)(signed(second)))
  assert.equal(answer.status, 429)
  assert.match(answer.message, /^recipient_rate_limited: /)
  assert.equal((failures[seen] as { code: string }).code, 'recipient_rate_limited')

  const captured = new CapturingPostern()
  for (const [status, code, expected] of [
    [503, 'queue_full', 503],
    [403, 'url_not_allowed', 500],
  ] as const) {
    captured.refusal = { status, code }
    const hook = sendEmailHook({ ...options, postern: captured })
    const refused = await answerOf(await hook(signed(bodyOf('magiclink', 'a@example.com'))))
    assert.equal(refused.status, expected)
    assert.match(refused.message, new RegExp(`^${code}: `))
  }
  const broken = { send: () => Promise.reject(new Error('canary')) }
  const onError = () => {
    throw new Error('the log is full')
  }
  const deaf = await sendEmailHook({ ...options, postern: broken, onError })(signed(bodyOf('signup', 'a@b.co')))
  assert.equal((await answerOf(deaf)).status, 500)
  const odd = await answerOf(await sendEmailHook({ ...options, postern: broken })(signed(bodyOf('signup', 'a@b.co'))))
  assert.equal(odd.status, 500)
  assert.doesNotMatch(odd.message, /canary/)
})

test('a wrong signature is 401; another body or a missing setting is an error: nothing is sent', async () => {
  const captured = new CapturingPostern()
  const hook = (change: Partial<SendEmailHookOptions> = {}) =>
    sendEmailHook({ ...options, postern: captured, ...change })
  const body = bodyOf('magiclink', 'a@example.com')
  const { headers } = signed(`${body} `)
  const forged = new Request('https://hooks.acme.test/', { method: 'POST', body, headers })
  assert.equal((await hook()(forged)).status, 401)
  assert.equal((await hook()(signed(body, new Date(Date.now() - 400_000)))).status, 401)
  const noHash = bodyOf('magiclink', 'a@example.com', { token_hash: '' })
  for (const [odd, expected] of [
    ['not JSON', /no JSON/],
    ['[]', /no type/],
    ['null', /no type/],
    [noHash, /lacks the address or token_hash/],
    [bodyOf('magiclink', ''), /lacks the address or token_hash/],
  ] as const) {
    const answer = await answerOf(await hook()(signed(odd)))
    assert.ok(answer.status >= 400)
    assert.match(answer.message, expected)
  }
  for (const [change, action, expected] of [
    [{ pages: {} }, 'magiclink', /pages\.magiclink/],
    [{ organisationName: undefined }, 'invite', /organisationName/],
    [{ secret: 'v1,whsec_' }, 'magiclink', /secret/],
  ] as const) {
    const answer = await answerOf(await hook(change)(signed(bodyOf(action, 'a@example.com'))))
    assert.equal(answer.status, 500)
    assert.match(answer.message, expected)
  }
  assert.deepEqual(captured.emails, [])
  assert.throws(() => hook({ pages: { signup: '/relative' } }), /pages\.signup must be an absolute address/)
})

test('the language is what a function finds in the user of the hook', async () => {
  const captured = new CapturingPostern()
  const hook = sendEmailHook({ ...options, postern: captured, locale: (user) => user.user_metadata?.locale })
  for (const [n, user_metadata] of [{ locale: 'pt-BR' }, {}, undefined].entries()) {
    const body = JSON.parse(bodyOf('magiclink', `ana${n}@example.com`))
    const call = JSON.stringify({ ...body, user: { ...body.user, user_metadata } })
    assert.equal((await hook(signed(call))).status, 200)
  }
  assert.deepEqual(
    captured.emails.map(({ locale }) => locale),
    ['pt-BR', undefined, undefined],
  )
})
