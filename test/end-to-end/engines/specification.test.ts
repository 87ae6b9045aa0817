/**
 * The specification row by row: each test is named after the row of sections 2, 4, 5, 7 or 8 that
 * it checks, over HTTP, on a whole service. Every answer is validated against docs/openapi.yaml.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newDeliveryKey } from '../../../src/domain/app/delivery-key.ts'
import { emailTypes } from '../../../src/domain/request/email-kinds.ts'
import { operator } from '../../support/operator.ts'
import { type Answer, newSender, startTestService, testSettings, validBody } from '../../support/service.ts'
import { eventually } from '../../support/wait.ts'

type Email = {
  to: string
  url: string
  type: string
  subject: string
  text: string
  html: string
  expiresAt: string
}

const service = await startTestService({ after })

const expectIssue = (answer: Answer, code: string, issue: string) => {
  assert.equal(answer.status, 400)
  assert.equal(answer.body.error.code, code)
  const found = answer.body.error.issues?.map((entry) => `${entry.field} ${entry.code}`) ?? []
  assert.ok(found.includes(issue), `${issue} is not among ${found.join(', ')}`)
}
const without = (field: string) => {
  const { [field]: _gone, ...rest } = validBody()
  return rest
}
const captured = (to: string): Promise<Email> =>
  eventually(async () => {
    const response = await fetch(`${service.urls.inbox}/api/inbox/latest?to=${encodeURIComponent(to)}`)
    return response.status === 200 ? ((await response.json()) as Email) : null
  })
let serial = 0
const someone = () => `someone${serial++}@example.com`

// 2.1

test('2.1 to: the recipient', async () => {
  const to = someone()
  assert.equal((await service.post(validBody({ to }))).status, 202)
  assert.equal((await captured(to)).to, to)
  expectIssue(await service.post(without('to')), 'invalid_body', 'to required')
  expectIssue(await service.post(validBody({ to: 'Ada <ada@example.com>' })), 'invalid_body', 'to forbidden_character')
  expectIssue(await service.post(validBody({ to: 7 })), 'invalid_body', 'to not_a_string')
})

test('2.1 type: the template', async () => {
  expectIssue(await service.post(without('type')), 'invalid_body', 'type required')
  expectIssue(await service.post(validBody({ type: 'newsletter' })), 'invalid_body', 'type unknown_type')
})

test('2.1 url: the link, as the email carries it', async () => {
  const to = someone()
  await service.post(validBody({ to, url: 'https://app.acme.test/auth?token=a|b' }))
  const email = await captured(to)
  assert.equal(email.url, 'https://app.acme.test/auth?token=a%7Cb')
  assert.ok(email.text.includes(email.url) && email.html.includes(`href="${email.url}"`))
  expectIssue(await service.post(without('url')), 'invalid_body', 'url required')
})

test('2.1 expiresAt: when the link ends', async () => {
  const to = someone()
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  await service.post(validBody({ to, expiresAt }))
  assert.equal((await captured(to)).expiresAt, expiresAt)
  expectIssue(await service.post(without('expiresAt')), 'invalid_body', 'expiresAt required')
  expectIssue(await service.post(validBody({ expiresAt: '2026-11-20' })), 'invalid_body', 'expiresAt date_without_time')
  expectIssue(
    await service.post(validBody({ expiresAt: '2020-01-01T00:00:00Z' })),
    'invalid_body',
    'expiresAt in_the_past',
  )
})

test('2.1 organisationName: required for an invitation, alias org_name, shown in it', async () => {
  for (const field of ['organisationName', 'org_name']) {
    const to = someone()
    assert.equal((await service.post(validBody({ to, type: 'organisation_invite', [field]: 'Blue Team' }))).status, 202)
    assert.match((await captured(to)).text, /Blue Team/)
  }
  expectIssue(
    await service.post(validBody({ type: 'organisation_invite' })),
    'invalid_body',
    'organisationName required',
  )
})

test('2.1 organisationName: optional elsewhere, and used only by invitations', async () => {
  const to = someone()
  assert.equal((await service.post(validBody({ to, organisationName: 'Blue Team' }))).status, 202)
  const email = await captured(to)
  assert.doesNotMatch(email.text + email.html, /Blue Team/)
})

test('2.1 inviterName: optional, alias inviter_name, shown in an invitation', async () => {
  for (const field of ['inviterName', 'inviter_name']) {
    const to = someone()
    await service.post(validBody({ to, type: 'organisation_invite', organisationName: 'Blue', [field]: 'Ada L' }))
    assert.match((await captured(to)).text, /Ada L/)
  }
})

// 2.2

const subjects = {
  magic_link: /^Sign in/,
  email_verification: /^Confirm/,
  password_reset: /^Reset/,
  organisation_invite: /^Join “Blue/,
}
for (const type of emailTypes) {
  test(`2.2 ${type}`, async () => {
    const to = someone()
    assert.equal((await service.post(validBody({ to, type, organisationName: 'Blue' }))).status, 202)
    const email = await captured(to)
    assert.equal(email.type, type)
    assert.match(email.subject, subjects[type])
  })
}

// 2.3

test('2.3 rule 1: HTTPS', async () => {
  assert.equal((await service.post(validBody({ url: 'https://app.acme.test/?token=x' }))).status, 202)
  expectIssue(
    await service.post(validBody({ url: 'http://app.acme.test/?token=x' })),
    'invalid_url',
    'url scheme_not_allowed',
  )
})

test('2.3 rule 1: a local-development address', async (t) => {
  const local = await startTestService(t, { settings: { allowLocalhost: true } })
  for (const url of ['http://localhost:3000/?token=x', 'http://127.0.0.1/?token=x', 'https://localhost/?token=x']) {
    assert.equal((await local.post(validBody({ url }))).status, 202)
    assert.equal((await service.post(validBody({ url }))).status, 403, 'well formed, but not allowed for this app')
  }
  expectIssue(
    await local.post(validBody({ url: 'http://127.0.0.2/?token=x' })),
    'invalid_url',
    'url scheme_not_allowed',
  )
})

test('2.3 rule 1: an app scheme that is configured for the app', async () => {
  const to = someone()
  assert.equal((await service.post(validBody({ to, url: 'acme://auth/magic?token=x' }))).status, 202)
  assert.equal((await captured(to)).url, 'acme://auth/magic?token=x')
  expectIssue(await service.post(validBody({ url: 'other://auth?token=x' })), 'invalid_url', 'url scheme_not_allowed')
})

test('2.3 rule 2: exactly one parameter, named token', async () => {
  for (const query of ['', '?', '?code=x', '?token=x&y=z', '?token=x&token=y', '?Token=x', '#token=x']) {
    const answer = await service.post(validBody({ url: `https://app.acme.test/auth${query}` }))
    assert.equal(answer.status, 400, query)
    assert.equal(answer.body.error.code, 'invalid_url', query)
  }
})

test('2.3 rule 2: its value is non-empty', async () => {
  for (const query of ['?token', '?token=', '?token=%20']) {
    expectIssue(
      await service.post(validBody({ url: `https://app.acme.test/auth${query}` })),
      'invalid_url',
      'url token_empty',
    )
  }
})

test('2.3 rule 3: well formed but not allowed for the app is 403', async () => {
  const answer = await service.post(validBody({ url: 'https://evil.test/auth?token=secret123' }))
  assert.equal(answer.status, 403)
  assert.equal(answer.body.error.code, 'url_not_allowed')
  assert.match(answer.body.error.message, /https:\/\/evil\.test.*\/auth/)
  assert.doesNotMatch(answer.body.error.message, /secret123|token/)
})

// 2.4, 4

test('2.4 and 4: success is 202 with exactly {"ok":true} as application/json', async () => {
  const headers = { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' }
  const response = await fetch(service.apiUrl, {
    method: 'POST',
    headers,
    body: JSON.stringify(validBody({ to: someone() })),
  })
  assert.equal(response.status, 202)
  assert.equal(response.headers.get('content-type'), 'application/json')
  assert.equal(await response.text(), '{"ok":true}')
})

test('4: the email is sent for the app that owns the key', async () => {
  const { key } = await newSender(service, 'other', { ...testSettings, name: 'Other App' })
  const to = someone()
  assert.equal((await service.post(validBody({ to }), { authorization: `Bearer ${key}` })).status, 202)
  assert.match((await captured(to)).subject, /Other App/)
})

test('4: every other path is 404, another method 405 with Allow', async () => {
  for (const path of ['/', '/v1', '/v1/email/', '/v2/email', '/v1/emails', '/livez']) {
    const response = await fetch(`${service.urls.api}${path}`, { method: 'POST', body: '{}' })
    assert.equal(response.status, 404, path)
    assert.equal(((await response.json()) as Answer['body']).error.code, 'not_found')
  }
  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY']) {
    const response = await fetch(service.apiUrl, { method })
    assert.equal(response.status, 405, method)
    assert.equal(response.headers.get('allow'), 'POST')
  }
  const odd = { 'content-type': ';;;' }
  assert.equal((await fetch(service.apiUrl, { method: 'PUT', headers: odd, body: '{}' })).status, 405)
  assert.equal((await fetch(`${service.urls.api}/other`, { method: 'POST', headers: odd, body: '{}' })).status, 404)
  const json = { 'content-type': 'application/json' }
  assert.equal((await fetch(`${service.urls.ops}/livez`, { method: 'POST', headers: json, body: '{' })).status, 404)
})

test('4: a 202 means queued, whether or not it can be delivered yet', async (t) => {
  const unworked = await startTestService(t, { roles: new Set(['api'] as const) })
  assert.equal((await unworked.post()).status, 202)
  assert.equal((await unworked.store.readQueueGauge()).depth, 1)
})

// 5

test('5.1 every request carries Authorization: Bearer', async () => {
  for (const authorization of ['', 'Basic dTpw', service.key, 'Bearer']) {
    const answer = await service.post(validBody(), { authorization })
    assert.equal(answer.status, 401)
    assert.match(
      answer.headers.get('www-authenticate') ?? '',
      /^Bearer/.test(authorization) === false ? /^Bearer realm="postern"$/ : /error="invalid_token"/,
    )
  }
  assert.equal(
    (await service.post(validBody({ to: someone() }), { authorization: `bEaReR ${service.key}` })).status,
    202,
  )
})

test('5.3 and 7: a missing, mistyped or unknown key is 401, with a message for each', async () => {
  const messages = new Set<string>()
  for (const authorization of ['', 'Bearer pst_short', `Bearer ${newDeliveryKey()}`]) {
    const answer = await service.post('not even JSON', { authorization })
    assert.equal(answer.status, 401)
    assert.equal(answer.body.error.code, 'invalid_key')
    messages.add(answer.body.error.message)
  }
  assert.equal(messages.size, 3)
})

test('5.3 and 7: a revoked key is 401 for the very next request', async () => {
  const { key, keyId } = await newSender(service, 'revoked')
  const authorization = { authorization: `Bearer ${key}` }
  assert.equal((await service.post(validBody(), authorization)).status, 202)
  await service.store.revokeKey(keyId, operator)
  assert.equal((await service.post(validBody(), authorization)).status, 401)
})

test('5.3: the key of a disabled app is 401', async () => {
  const { app, key } = await newSender(service, 'disabled')
  await service.store.updateApp(app.id, { status: 'disabled' }, operator)
  assert.equal((await service.post(validBody(), { authorization: `Bearer ${key}` })).status, 401)
})

// 7

test('7 400: missing or malformed fields are listed all at once, the link’s faults too', async () => {
  const answer = await service.post({ type: 'magic_link', to: 'x', url: 'ftp://x?y=z' })
  assert.equal(answer.body.error.code, 'invalid_body')
  const fields = answer.body.error.issues?.map((issue) => issue.field)
  assert.deepEqual(fields, ['expiresAt', 'to', 'url', 'url'])
})

test('7 400: the order when several fail: key, key limit, body, link, allow-list', async (t) => {
  const strict = await startTestService(t, {
    settings: { limits: { keyPerMinute: 3, recipientPerHour: 1, daily: 1 } },
  })
  const codes: string[] = []
  const bad = validBody({ to: 'x', url: 'ftp://x' })
  codes.push((await strict.post(bad, { authorization: '' })).body.error.code)
  codes.push((await strict.post(bad)).body.error.code)
  codes.push((await strict.post(validBody({ url: 'https://evil.test' }))).body.error.code)
  codes.push((await strict.post(validBody({ url: 'https://evil.test?token=x' }))).body.error.code)
  codes.push((await strict.post(bad)).body.error.code)
  assert.deepEqual(codes, ['invalid_key', 'invalid_body', 'invalid_url', 'url_not_allowed', 'key_rate_limited'])
})

test('7 403: a change of the allow-list holds for the very next request', async () => {
  const { app, key } = await newSender(service, 'changing')
  const post = () =>
    service.post(validBody({ url: 'https://new.acme.test/?token=x' }), { authorization: `Bearer ${key}` })
  assert.equal((await post()).status, 403)
  await service.store.updateApp(
    app.id,
    {
      settings: { ...app.settings, allowedUrls: ['https://new.acme.test'] },
    },
    operator,
  )
  assert.equal((await post()).status, 202)
  await service.store.updateApp(app.id, { settings: app.settings }, operator)
  assert.equal((await post()).status, 403)
})

test('7 403: a stored entry that no longer keeps the rules allows nothing, and harms nothing else', async () => {
  const { key } = await newSender(service, 'outdated', {
    ...testSettings,
    allowedUrls: ['https://*.vercel.app', 'https://app.acme.test'],
  })
  const post = (url: string) => service.post(validBody({ url, to: someone() }), { authorization: `Bearer ${key}` })
  assert.equal((await post('https://x.vercel.app/?token=x')).status, 403)
  assert.equal((await post('https://app.acme.test/?token=x')).status, 202)
})

test('7 503: a full queue', async (t) => {
  const small = await startTestService(t, { queueMax: 1, roles: new Set(['api'] as const) })
  assert.equal((await small.post()).status, 202)
  const answer = await small.post()
  assert.equal(answer.status, 503)
  assert.equal(answer.body.error.code, 'queue_full')
})

test('7 503: a server that is stopping, and a store that is gone; never 401', async (t) => {
  const ending = await startTestService(t)
  await ending.store.close()
  const answer = await ending.post()
  assert.equal(answer.status, 503)
  assert.equal(answer.body.error.code, 'queue_unavailable')
  const { message, requestId } = answer.body.error
  assert.match(message, /may have been queued anyway\. Without an Idempotency-Key, another request may send it twice/)
  const repeated = await ending.post(undefined, { 'idempotency-key': 'k1' })
  assert.match(repeated.body.error.message, /may have been queued anyway\. Send the same Idempotency-Key again/)
  assert.ok(
    ending.log.some((line) => line.includes('the store failed when asked') && line.includes(requestId)),
    'the log says why',
  )
  assert.equal((await ending.post(validBody(), { authorization: `Bearer ${newDeliveryKey()}` })).status, 503)
  assert.equal((await ending.post(validBody(), { authorization: 'Bearer pst_junk' })).status, 401)
})

// 8

test('8 per-key rate limit: excess gives 429', async (t) => {
  const limited = await startTestService(t, {
    settings: { limits: { keyPerMinute: 2, recipientPerHour: 100, daily: 100 } },
  })
  const statuses = [await limited.post(), await limited.post('junk'), await limited.post()].map(
    (answer) => answer.status,
  )
  assert.deepEqual(statuses, [202, 400, 429])
  const answer = await limited.post()
  assert.equal(answer.body.error.code, 'key_rate_limited')
  assert.equal(answer.headers.get('ratelimit-policy'), '"key";q=2;w=60')
  const seconds = Number(answer.headers.get('retry-after'))
  assert.ok(seconds >= 1 && seconds <= 60, `${seconds}`)
  assert.match(answer.headers.get('ratelimit') ?? '', new RegExp(`t=${seconds}$`))
  limited.advance(Number(answer.headers.get('retry-after')) * 1000)
  assert.equal((await limited.post()).status, 202)
})

test('8 per-recipient limit: excess gives 429', async (t) => {
  const limited = await startTestService(t, {
    settings: { limits: { keyPerMinute: 100, recipientPerHour: 1, daily: 100 } },
  })
  assert.equal((await limited.post()).status, 202)
  const answer = await limited.post()
  assert.equal(answer.status, 429)
  assert.equal(answer.body.error.code, 'recipient_rate_limited')
  assert.equal(answer.headers.get('ratelimit-policy'), '"recipient";q=1;w=3600')
  assert.equal((await limited.post(validBody({ to: someone() }))).status, 202)
})

test('8 daily app limit: excess gives 429', async (t) => {
  const limited = await startTestService(t, {
    settings: { limits: { keyPerMinute: 100, recipientPerHour: 100, daily: 1 } },
  })
  assert.equal((await limited.post()).status, 202)
  const answer = await limited.post(validBody({ to: someone() }))
  assert.equal(answer.status, 429)
  assert.equal(answer.body.error.code, 'daily_limit_reached')
  assert.equal(answer.headers.get('ratelimit-policy'), '"daily";q=1;w=86400')
})

// Beyond the specification.

test('idempotency: same key and body replays, another body is 400, malformed keys are 400', async () => {
  const body = JSON.stringify(validBody({ to: someone() }))
  const first = await service.post(body, { 'idempotency-key': 'k1' })
  const again = await service.post(body, { 'idempotency-key': 'k1' })
  assert.equal(first.headers.get('idempotent-replayed'), null)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal(again.headers.get('email-id'), first.headers.get('email-id'))
  expectIssue(
    await service.post(validBody({ to: 'x' }), { 'idempotency-key': 'k1' }),
    'invalid_body',
    'Idempotency-Key idempotency_key_reused',
  )
  for (const key of ['a b', 'x'.repeat(256)]) {
    expectIssue(
      await service.post(body, { 'idempotency-key': key }),
      'invalid_body',
      'Idempotency-Key malformed_idempotency_key',
    )
  }
})

test('idempotency: a replay is answered though the link has expired since', async (t) => {
  const timed = await startTestService(t)
  const body = JSON.stringify(validBody())
  await timed.post(body, { 'idempotency-key': 'k' })
  timed.advance(3_600_000)
  assert.equal((await timed.post(body, { 'idempotency-key': 'k' })).status, 202)
  expectIssue(await timed.post(body, { 'idempotency-key': 'k2' }), 'invalid_body', 'expiresAt in_the_past')
})

test('a wrong content type, encoding or size is 400, and still charges the key', async (t) => {
  const limited = await startTestService(t, {
    settings: { limits: { keyPerMinute: 8, recipientPerHour: 100, daily: 100 } },
  })
  const body = JSON.stringify(validBody())
  expectIssue(await limited.post(body, { 'content-type': 'text/plain' }), 'invalid_body', 'body content_type')
  expectIssue(await limited.post(body, { 'content-type': 'report' }), 'invalid_body', 'body content_type')
  expectIssue(await limited.post(body, { 'content-encoding': 'gzip' }), 'invalid_body', 'body content_encoding')
  expectIssue(await limited.post(`${body}${' '.repeat(16_385 - body.length)}`), 'invalid_body', 'body body_too_large')
  assert.equal((await limited.post(`${body}${' '.repeat(16_384 - body.length)}`)).status, 202)
  expectIssue(await limited.post('x'.repeat(5_000_000)), 'invalid_body', 'body body_too_large')
  expectIssue(await limited.post(''), 'invalid_body', 'body not_json')
  assert.equal((await limited.post(body, { 'content-type': '' })).status, 202, 'no content type at all')
  assert.equal((await limited.post(body)).status, 429)
})
