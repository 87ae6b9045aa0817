import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { AuthHookResult } from './auth-hook.ts'
import { supabase } from './supabase.ts'

/** The messages of a body, or its issues as text. */
function read(user: object, data: object) {
  const result = supabase.read({ user, email_data: data })
  return result.ok ? result.value : result.issues.map(({ field, code }) => `${field} ${code}`)
}

const email = 'ana@example.com'
const user = { email }
const link = {
  token: '246813',
  token_hash: 'abc1',
  redirect_to: 'https://app.example.com/in',
  site_url: 'https://x',
}

test('each action of Supabase has its email', () => {
  const actions = Object.entries(supabase.kinds).map(([name, kind]) =>
    kind === 'notice' ? `${name} -` : [name, kind.type, kind.purpose ?? '', kind.lifeSeconds].join(' '),
  )
  assert.deepEqual(actions, [
    'signup email_verification  3600',
    'magiclink magic_link  3600',
    'recovery password_reset  3600',
    'invite organisation_invite  3600',
    'email_change email_verification  3600',
    'reauthentication email_verification identity 3600',
    'password_changed_notification -',
    'email_changed_notification -',
    'phone_changed_notification -',
    'identity_linked_notification -',
    'identity_unlinked_notification -',
    'mfa_factor_enrolled_notification -',
    'mfa_factor_unenrolled_notification -',
  ])
})

test('an email with a link has its hash, its code and where the link leads; an invitation has no code', () => {
  for (const kind of ['signup', 'magiclink', 'recovery', 'invite']) {
    const code = kind === 'invite' ? {} : { code: '246813' }
    const once = JSON.stringify([kind, email, 'abc1'])
    const redirectTo = 'https://app.example.com/in'
    assert.deepEqual(read(user, { ...link, email_action_type: kind }), [
      { kind, to: email, token: 'abc1', ...code, redirectTo, once },
    ])
  }
  const bare = { token: '', token_hash: 'abc1', redirect_to: '', email_action_type: 'signup' }
  const once = '["signup","ana@example.com","abc1"]'
  assert.deepEqual(read(user, bare), [{ kind: 'signup', to: email, token: 'abc1', once }])
})

test('a secure change of address is two emails, and the names of its hashes are crossed', () => {
  const kind = 'email_change'
  const data = { email_action_type: kind, token: '111111', token_hash: 'forNew', redirect_to: '' }
  const changing = { email, new_email: 'ana@new.example.com' }
  const forNew = {
    kind,
    to: 'ana@new.example.com',
    token: 'forNew',
    once: '["email_change","ana@new.example.com","forNew"]',
  }
  assert.deepEqual(read(changing, { ...data, token_new: '222222', token_hash_new: 'forCurrent' }), [
    { ...forNew, code: '222222' },
    {
      kind,
      to: email,
      token: 'forCurrent',
      code: '111111',
      purpose: 'address_change',
      once: '["email_change","ana@example.com","forCurrent"]',
    },
  ])
  // Not secure, and of somebody who had no address.
  for (const former of [email, ''])
    assert.deepEqual(read({ ...changing, email: former }, { ...data, token_new: '', token_hash_new: '' }), [
      { ...forNew, code: '111111' },
    ])
  assert.deepEqual(read(user, data), ['user.new_email required'])
  assert.deepEqual(read({ new_email: email }, { ...data, token_hash_new: 'forCurrent' }), ['user.email required'])
})

test('a reauthentication has a code alone', () => {
  const kind = 'reauthentication'
  const once = '["reauthentication","ana@example.com","246813"]'
  assert.deepEqual(read(user, { ...link, email_action_type: kind }), [{ kind, to: email, code: '246813', once }])
  assert.deepEqual(read(user, { email_action_type: kind, token_hash: 'abc1' }), ['email_data.token required'])
  assert.deepEqual(read(user, { email_action_type: kind, token: 1 }), ['email_data.token not_a_string'])
})

test('a notice is taken, whatever else it says', () => {
  for (const [kind] of Object.entries(supabase.kinds).filter(([, value]) => value === 'notice')) {
    assert.deepEqual(read(user, { email_action_type: kind, token: 7 }), [{ kind, to: email, once: null }])
    assert.deepEqual(read({}, { email_action_type: kind }), [{ kind, to: '', once: null }])
  }
})

test('a body of Supabase that lacks something is refused by the names of its fields', () => {
  assert.deepEqual(read({}, {}), ['email_data.email_action_type required'])
  assert.deepEqual(read({}, { email_action_type: 'signup' }), ['email_data.token_hash required', 'user.email required'])
  assert.deepEqual(read({ email: 'ana' }, { ...link, token: 246813, email_action_type: 'signup' }), [
    'email_data.token not_a_string',
    'user.email not_an_address',
  ])
})

test('the link is the one that Supabase would send', () => {
  const verifyUrl = 'https://ref.supabase.co/auth/v1/verify'
  const build = (redirectTo: string | undefined, kind = 'signup') => {
    const whole = read(user, { ...link, redirect_to: redirectTo, email_action_type: kind })
    const message = whole[0]
    assert.ok(typeof message === 'object')
    return supabase.original?.(message, { verifyUrl })
  }
  const head = `${verifyUrl}?token=abc1&type=signup&redirect_to=`
  assert.equal(build(undefined), head)
  assert.equal(build('https://app.example.com/in?x'), `${head}https://app.example.com/in?x`)
  assert.equal(build('https://a.test/%3Fx%3D1'), `${head}https://a.test/%3Fx%3D1`)
  assert.equal(build('https://a.test/?x=1&y#z'), `${head}https%3A%2F%2Fa.test%2F%3Fx%3D1%26y%23z`)
  assert.equal(build('https://a.test/#z'), `${head}https%3A%2F%2Fa.test%2F%23z`)
  assert.equal(build('https://a.test/é "<>\\'), `${head}https://a.test/%C3%A9%20%22%3C%3E%5C`)
  assert.equal(build('', 'recovery'), `${verifyUrl}?token=abc1&type=recovery&redirect_to=`)
  const message = { kind: 'signup', to: email, token: 'a&b', once: null }
  assert.equal(supabase.original?.(message, { verifyUrl }), `${verifyUrl}?token=a%26b&type=signup&redirect_to=`)
  assert.equal(supabase.original?.(message, {}), null)
  const code = { kind: 'reauthentication', to: email, code: '246813', once: null }
  assert.equal(supabase.original?.(code, { verifyUrl }), null)
})

/**
 * How Supabase reads an answer (`hookshttp.go`, `hookserrors.go`): the body of 200 and 202 alone, in JSON.
 * An error in it counts if it has a message. It calls again after 429 and 503 that have `Retry-After`.
 */
function readAnswer(status: number, body: object, retryAfter: boolean): string {
  if ([200, 202].includes(status)) {
    const { error } = JSON.parse(JSON.stringify(body)) as { error?: { http_code?: number; message?: string } }
    return error?.message ? `${error.http_code || 500}: ${error.message}` : 'sent'
  }
  if (status === 204) return 'sent'
  if ([429, 503].includes(status)) return retryAfter ? 'again' : '500: Service currently unavailable due to hook'
  if (status === 400) return '500: Invalid payload sent to hook'
  if (status === 401) return '500: Hook requires authorization token'
  return `500: Unexpected status code returned from hook: ${status}`
}

test('Supabase reads of each answer that the email is sent, why not, or that it may try again', () => {
  const requestId = 'req_1'
  const reads = (result: AuthHookResult) => {
    const { status, body } = supabase.answer(result)
    return readAnswer(status, body, status === 503)
  }
  const refused = (code: string, status: number) =>
    reads({ kind: 'refused', code, status, requestId } as AuthHookResult)
  assert.equal(reads({ kind: 'queued' }), 'sent')
  assert.equal(refused('invalid_body', 400), '422: postern: invalid_body (req_1)')
  assert.equal(refused('unsupported_email', 400), '422: postern: unsupported_email (req_1)')
  assert.equal(refused('invalid_url', 400), '500: postern: invalid_url (req_1)')
  assert.equal(refused('url_not_allowed', 403), '500: postern: url_not_allowed (req_1)')
  for (const code of ['key_rate_limited', 'recipient_rate_limited', 'daily_limit_reached'])
    assert.equal(refused(code, 429), `429: postern: ${code} (req_1)`)
  assert.equal(refused('queue_full', 503), 'again')
  assert.equal(refused('invalid_key', 401), '500: Hook requires authorization token')
})

const { auth } = supabase
assert.ok(auth.kind === 'signed')

test('a secret that Postern makes is one that Supabase takes, and verifies its calls', () => {
  const secret = auth.makeSecret?.() ?? ''
  assert.match(secret, /^v1,whsec_[A-Za-z0-9+/]{43}=$/)
  assert.notEqual(secret, auth.makeSecret?.())
  assert.equal(auth.checkSecret(secret), null)
  const body = Buffer.from(JSON.stringify(supabase.sample('signup')))
  const at = new Date(1_780_000_000_000)
  // Supabase removes the "v1,", as `hookshttp.go` does.
  const signature = new Webhook(secret.slice(3)).sign('msg_1', at, body.toString())
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': '1780000000', 'webhook-signature': signature }
  const call = { headers, body, nowMs: at.getTime() }
  assert.ok(auth.verify({ ...call, secret }))
  assert.ok(!auth.verify({ ...call, secret: auth.makeSecret?.() ?? '' }))
  const short = `v1,whsec_${Buffer.alloc(8, 7).toString('base64')}`
  const byShort = new Webhook(short.slice(3)).sign('msg_1', at, body.toString())
  const forged = { ...call, headers: { ...call.headers, 'webhook-signature': byShort } }
  assert.ok(!auth.verify({ ...forged, secret: short }), 'a secret that can be guessed proves nothing')
  for (const other of ['', 'v1,whsec_', secret.slice(3), `${secret}|${secret}`])
    assert.ok(!auth.verify({ ...call, secret: other }), other)
})

test('a secret of another form is refused, without repeating it', () => {
  const right = 'QUJD'.repeat(8)
  for (const text of [right, right.repeat(2), 'QUJD'.repeat(22), `${right}QQ==`, `${right}QUI=`])
    assert.equal(auth.checkSecret(`v1,whsec_${text}`), null)
  for (const text of [
    '',
    right.slice(4),
    'QUJD'.repeat(23),
    `${right}Q`,
    `${right}Q=`,
    `${right}QUJ_`,
    `=${right}QUJ`,
    `${right} QUJ`,
  ]) {
    const fault = auth.checkSecret(`v1,whsec_${text}`)
    assert.ok(fault, text)
    assert.ok(!fault.includes('QUJD'))
  }
  for (const other of [`whsec_${right}`, `xv1,whsec_${right}`, `v1,whsec_${right}\n`])
    assert.ok(auth.checkSecret(other))
})
