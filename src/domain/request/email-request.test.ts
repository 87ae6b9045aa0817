import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseEmailRequest } from './email-request.ts'

const now = Date.parse('2026-11-20T17:00:00Z')
const valid = {
  to: 'ada@example.com',
  type: 'magic_link',
  url: 'https://a.test?token=x',
  expiresAt: '2026-11-20T18:00:00Z',
}
const invitation = { ...valid, type: 'organisation_invite', organisationName: 'Acme' }

const parse = (body: unknown, headers: { contentType?: string; contentEncoding?: string } = {}) => {
  const bytes = body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const { contentType = 'application/json', contentEncoding } = headers
  return parseEmailRequest({ contentType, contentEncoding, bytes }, now).request
}
const codes = (body: unknown, headers?: { contentType?: string; contentEncoding?: string }) => {
  const request = parse(body, headers)
  return request.ok ? [] : request.issues.map((issue) => `${issue.field} ${issue.code}`)
}
const value = (body: unknown) => {
  const request = parse(body)
  assert.ok(request.ok, JSON.stringify(request))
  return request.value
}

test('a valid request is read', () => {
  assert.deepEqual(value(valid), {
    to: 'ada@example.com',
    type: 'magic_link',
    url: valid.url,
    expiresAt: now + 3_600_000,
  })
})

test('content types that are JSON in UTF-8 pass, others do not', () => {
  for (const contentType of [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ;',
    'application/json \t; charset = utf-8 ; ',
    `application/json${' '.repeat(100)}`,
  ]) {
    assert.deepEqual(codes(valid, { contentType }), [], contentType)
  }
  for (const contentType of [
    '',
    'text/plain',
    'application/json; charset=latin1',
    'application/json, application/json',
    'application/jsonx',
    'application/problem+json',
    'application/json; x=y',
    `application/json${' '.repeat(200)}`,
  ]) {
    assert.deepEqual(codes(valid, { contentType }), ['body content_type'], contentType)
  }
  assert.ok(
    parseEmailRequest(
      { contentType: undefined, contentEncoding: undefined, bytes: Buffer.from(JSON.stringify(valid)) },
      now,
    ).request.ok,
  )
})

test('faults of the body as a whole', () => {
  assert.deepEqual(codes(valid, { contentEncoding: 'gzip' }), ['body content_encoding'])
  assert.deepEqual(codes(valid, { contentEncoding: 'identity' }), ['body content_encoding'])
  assert.deepEqual(codes(Buffer.from('{"to":"\xff"}', 'latin1')), ['body not_utf8'])
  for (const text of ['', '{', '{"to":}', '\ufeff{}', 'undefined', '{}{}'])
    assert.deepEqual(codes(text), ['body not_json'], text)
  for (const text of ['[]', '"x"', '1', 'null', 'true']) assert.deepEqual(codes(text), ['body not_an_object'], text)
  assert.deepEqual(codes(`{"a":${'['.repeat(8000)}${']'.repeat(8000)}}`), ['body nested_too_deep'])
  assert.deepEqual(codes({ ...valid, a: [[[[[[[1]]]]]]] }), [])
  assert.deepEqual(codes({ ...valid, a: [[[[[[[[1]]]]]]]] }), ['body nested_too_deep'])
  assert.deepEqual(
    parseEmailRequest({ contentType: undefined, contentEncoding: undefined, bytes: null }, now).request,
    {
      ok: false,
      issues: [{ field: 'body', code: 'body_too_large', message: 'Send at most 16384 bytes.' }],
    },
  )
})

test('types are never coerced, null means absent', () => {
  for (const wrong of [1, true, ['ada@example.com'], {}, 0, false]) {
    assert.deepEqual(codes({ ...valid, to: wrong }), ['to not_a_string'])
    assert.deepEqual(codes({ ...valid, inviterName: wrong }), ['inviterName not_a_string'])
  }
  assert.deepEqual(codes({ ...valid, to: null }), ['to required'])
  assert.deepEqual(codes({ ...valid, organisationName: null, inviterName: null, org_name: null }), [])
})

test('every fault is listed', () => {
  assert.deepEqual(codes({}), ['to required', 'type required', 'url required', 'expiresAt required'])
  const found = new Set(codes({ to: 'x', type: 'y', expiresAt: 'z', org_name: 1 }))
  const expected = [
    'to not_an_address',
    'type unknown_type',
    'url required',
    'expiresAt not_a_timestamp',
    'organisationName not_a_string',
  ]
  assert.deepEqual(found, new Set(expected))
})

test('a refusal names the right field; a misnamed field alone is no fault', () => {
  const { expiresAt, ...others } = valid
  for (const name of ['expires_at', 'ExpiresAt', 'expiresat', 'EXPIRES-AT', 'expiresIn'])
    assert.deepEqual(codes({ ...others, [name]: expiresAt }), ['expiresAt required', 'expiresAt misnamed_field'])
  const request = parse({ ...others, expires_at: expiresAt, idempotency_key: 'secret', Locale: 'de' })
  assert.ok(!request.ok)
  assert.deepEqual(
    request.issues.slice(1).map(({ message }) => message),
    [
      'The field "expires_at" is unknown and ignored: write "expiresAt".',
      'The field "idempotency_key" is unknown and ignored: send the header Idempotency-Key.',
      'The field "Locale" is unknown and ignored: write "locale".',
    ],
  )
  assert.deepEqual(codes({ ...invitation, organisationName: undefined, organizationName: 'Acme' }), [
    'organisationName required',
    'organisationName misnamed_field',
  ])
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`to${'_'.repeat(n + 1)}`, 'x']))
  assert.deepEqual(codes({ ...valid, to: 'x', ...many, [`to${'_'.repeat(39)}`]: 'x' }), [
    'to not_an_address',
    'to misnamed_field',
  ])
  assert.deepEqual(codes({ ...valid, to: 'x', [`to${'_'.repeat(39)}`]: 'x' }), ['to not_an_address'])
  assert.deepEqual(codes({ ...valid, idempotency_key: 'x', TO: 'y' }), [])
})

test('the fault of a number for expiresAt shows the form of a time', () => {
  const request = parse({ ...valid, expiresAt: 1_795_000_000 })
  assert.ok(!request.ok)
  assert.match(request.issues[0]?.message ?? '', /JSON string: an ISO 8601 date and time with its zone/)
})

test('a link must expire in the future', () => {
  assert.deepEqual(codes({ ...valid, expiresAt: '2026-11-20T17:00:00Z' }), ['expiresAt in_the_past'])
  assert.deepEqual(codes({ ...valid, expiresAt: '2026-11-20T17:00:00.001Z' }), [])
})

test('an invitation keeps both names, and an empty inviter is none', () => {
  const plain = { ...value(valid), type: 'organisation_invite', organisationName: 'Acme' }
  assert.deepEqual(value({ ...invitation, inviterName: 'Ada' }), { ...plain, inviterName: 'Ada' })
  assert.deepEqual(value({ ...invitation, inviterName: ' ' }), plain)
})

test('an invitation needs an organisation, under either name', () => {
  assert.deepEqual(codes({ ...invitation, organisationName: undefined }), ['organisationName required'])
  assert.deepEqual(codes({ ...invitation, organisationName: ' ' }), ['organisationName required'])
  assert.deepEqual(codes({ ...invitation, organisationName: undefined, org_name: 'Acme' }), [])
  assert.deepEqual(codes({ ...invitation, org_name: 'Acme' }), [])
  assert.deepEqual(codes({ ...invitation, org_name: 'Other' }), ['organisationName alias_conflict'])
  assert.deepEqual(codes({ ...invitation, inviterName: 'A', inviter_name: 'B' }), ['inviterName alias_conflict'])
  assert.deepEqual(codes({ ...valid, org_name: 'A', organisationName: 'B' }), ['organisationName alias_conflict'])
})

test('names in an invitation are bounded and plain; elsewhere only their type counts', () => {
  assert.deepEqual(codes({ ...invitation, organisationName: 'a'.repeat(100) }), [])
  assert.deepEqual(codes({ ...invitation, organisationName: '😀'.repeat(100) }), [])
  assert.deepEqual(codes({ ...invitation, organisationName: 'a'.repeat(101) }), ['organisationName too_long'])
  assert.deepEqual(codes({ ...invitation, inviterName: 'a'.repeat(255) }), ['inviterName too_long'])
  for (const bad of [
    'a\nb',
    'a\u0000b',
    'a\u202eb',
    'a\u2066b',
    'see https://evil.test',
    'a\u0085b',
    'a\u2028b',
    ...['A\u200bB', 'A\u2060B', 'A\ufeffB', 'A\u00adB', 'A\u034fB', 'A\u180eB', 'A\u3164B', 'A\uffa0B', 'A\u2800B'],
    ...['A\u{e0041}B', '\u200d', '\ufe0f \u200c', '\u0301\u0301', `e${'\u0301'.repeat(80)}`, `x${'\u0335'.repeat(7)}`],
  ]) {
    assert.deepEqual(
      codes({ ...invitation, inviterName: bad }),
      ['inviterName forbidden_character'],
      JSON.stringify(bad),
    )
    assert.deepEqual(codes({ ...valid, inviterName: bad }), [])
  }
  assert.deepEqual(
    codes(
      '{"to":"ada@example.com","type":"organisation_invite","url":"https://a.test?token=x","expiresAt":"2026-11-20T18:00:00Z","organisationName":"\\ud800"}',
    ),
    ['organisationName lone_surrogate'],
  )
  for (const good of [
    '👩‍👩‍👧 Familie',
    '❤️',
    'می‌شود',
    'กำลังปั้น',
    'हिन्दी',
    'שָׁלוֹם',
    'مُحَمَّدٌ',
    'Việt Nam',
    'a\u0335bc',
    'O’Neill & Sons',
  ])
    assert.deepEqual(codes({ ...invitation, organisationName: good }), [], good)
  const request = value({ ...invitation, organisationName: 'Cafe\u0301' })
  assert.ok(request.type === 'organisation_invite' && request.organisationName === 'Caf\u00e9')
})

test('__proto__ and inherited names are no fields', () => {
  assert.deepEqual(codes('{"__proto__":{"to":"ada@example.com"}}').slice(0, 1), ['to required'])
  assert.deepEqual(codes({ ...valid, constructor: 1, toString: 2 }), [])
})

test('no bytes make it throw', () => {
  const anything = fc.oneof(
    fc.uint8Array({ maxLength: 400 }),
    fc.json().map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(anything, (bytes) => void parse(bytes)),
    { numRuns: 5000 },
  )
  const near = fc.record(
    {
      to: fc.anything(),
      type: fc.constantFrom('magic_link', 'organisation_invite'),
      url: fc.anything(),
      expiresAt: fc.anything(),
      organisationName: fc.anything(),
      inviter_name: fc.anything(),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(near, (body) => void parse(JSON.stringify(body) ?? '')),
    { numRuns: 5000 },
  )
})
