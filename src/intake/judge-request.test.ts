import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { testSettings, validBody } from '../../test/support/service.ts'
import { appPolicy } from '../domain/app/app-policy.ts'
import { newId } from '../domain/id.ts'
import { judgeRequest } from './judge-request.ts'

const nowMs = Date.parse('2026-11-20T17:00:00Z')
const app = { id: newId('app', nowMs), version: 1, slug: 'acme' }

function judge(body: unknown, allowCodes: boolean, supersede = true) {
  const policy = appPolicy({ ...app, settings: { ...testSettings, allowCodes, supersede } })
  const bytes = Buffer.from(JSON.stringify(body))
  const received = { contentType: 'application/json', contentEncoding: undefined, bytes }
  const links = { baseUrl: null, seal: () => '' }
  const request = { authorization: undefined, idempotencyKey: undefined, address: () => '', body: received }
  const judgement = judgeRequest(request, { policy, links, nowMs, traceparent: null })
  // Each email has its own id.
  return JSON.parse(JSON.stringify(judgement).replaceAll(/em_\w{26}/g, 'ID')) as typeof judgement
}

/** Bodies that are accepted, and ones with faults of every class. */
const bodies = fc
  .record(
    {
      to: fc.constantFrom('ada@example.com', 'nobody', 7),
      type: fc.constantFrom('magic_link', 'password_reset', 'organisation_invite', 'x'),
      url: fc.constantFrom('https://app.acme.test/?token=246813', 'https://evil.test/?token=a', 'http://x'),
      expiresAt: fc.constantFrom('2026-11-20T17:15:00Z', '2020-01-01T00:00:00Z'),
      organisationName: fc.constantFrom('Acme', null, 'a://b'),
    },
    { requiredKeys: [] },
  )
  .map((change) => validBody(change, nowMs))

test('an app that allows no codes judges every request as if it had none', () => {
  fc.assert(
    fc.property(bodies, fc.oneof(fc.constant('246813'), fc.jsonValue()), (body, code) => {
      const { isCodeIgnored, ...judged } = judge({ ...body, code }, false)
      const { isCodeIgnored: _, ...without } = judge(body, false)
      assert.deepEqual(judged, without)
      assert.equal(isCodeIgnored, code !== null)
    }),
    { numRuns: 500 },
  )
})

test('emails supersede each other if their type, purpose and link are the same but for the token', () => {
  const keyOf = (change: object, supersede = true) => {
    const { verdict } = judge(validBody({ ...change }, nowMs), false, supersede).judged
    return 'admit' in verdict ? verdict.admit.supersedeKey : 'refused'
  }
  const key = keyOf({})
  assert.equal(key, 'magic_link  https://app.acme.test/auth')
  const invitation = { type: 'organisation_invite', organisationName: 'Acme' }
  const same = [
    { url: 'https://app.acme.test/auth?token=other' },
    { url: 'HTTPS://APP.acme.test:443/auth?token=abc' },
    { to: 'bob@example.com' },
    { locale: 'de' },
  ]
  for (const change of same) assert.equal(keyOf(change), key)
  const others = [
    { type: 'password_reset' },
    { type: 'email_verification' },
    { url: 'https://app.acme.test/auth/?token=abc' },
    { url: 'https://app.acme.test/auth?token=abc#reset' },
    { url: 'https://app.acme.test/other?token=abc' },
  ]
  assert.equal(new Set([key, ...others.map((change) => keyOf(change))]).size, 1 + others.length)
  assert.deepEqual([keyOf(invitation), keyOf({}, false)], [null, null])
})

test('an app that allows codes keeps a code that is one, and refuses what is none', () => {
  fc.assert(
    fc.property(bodies, fc.oneof(fc.constantFrom('246813', 'AB-1'), fc.jsonValue()), (body, code) => {
      const { isCodeIgnored, judged, rejection } = judge({ ...body, code }, true)
      assert.equal(isCodeIgnored, false)
      const { verdict } = judged
      if ('refuse' in verdict) return assert.equal(verdict.refuse, rejection?.code)
      const { content } = verdict.admit
      assert.equal(content.code, code ?? undefined)
      assert.equal(content.codeFirst, code !== null && content.url.endsWith(`=${code}`) ? true : undefined)
      assert.ok(code === null || verdict.admit.type !== 'organisation_invite')
    }),
    { numRuns: 500 },
  )
})
