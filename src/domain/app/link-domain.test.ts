import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseLinkPlace, parseLinkDomain } from './link-domain.ts'

test('a domain name is taken as a Host header has it, and anything else is refused', () => {
  const label = 'a'.repeat(63)
  for (const text of ['links.acme.example', 'l.acme.co.uk', 'xn--lnks-0ra.acme.example', `${label}.acme.example`])
    assert.deepEqual(parseLinkDomain(text), { ok: true, value: text })
  const faults: readonly (readonly [string, string])[] = [
    ...['', 'acme', 'localhost', '127.0.0.1', '[::1]', 'links.acme.example:8443', 'links.acme.example/go'].map(
      (text) => [text, 'malformed_domain'] as const,
    ),
    ...['https://links.acme.example', 'Links.acme.example', 'links.äcme.example', '-a.acme.example'].map(
      (text) => [text, 'malformed_domain'] as const,
    ),
    ...[
      'links.acme.example.',
      'links..acme.example',
      '*.acme.example',
      `${label}a.acme.example`,
      'a_b.acme.example',
    ].map((text) => [text, 'malformed_domain'] as const),
    [`${'a.'.repeat(124)}acme.example`, 'malformed_domain'],
    ['co.uk', 'public_suffix'],
  ]
  for (const [text, code] of faults) {
    const parsed = parseLinkDomain(text)
    assert.deepEqual(
      parsed.ok ? [] : parsed.issues.map((issue) => [issue.field, issue.code]),
      [['linkDomain', code]],
      text,
    )
  }
})

test('a name that is in no URL is refused: some versions of Node read malformed A-labels, and some do not', () => {
  const name = 'xn--a.acme.example'
  assert.equal(parseLinkDomain(name).ok, URL.canParse(`https://${name}`))
})

test('new links are at the domain of the app, unless the base URL has it too', () => {
  const base = 'https://links.example.com/go'
  assert.deepEqual(chooseLinkPlace(null, base), { baseUrl: base, domain: null })
  assert.deepEqual(chooseLinkPlace('links.example.com', base), { baseUrl: base, domain: null })
  const own = { baseUrl: 'https://links.acme.example', domain: 'links.acme.example' }
  assert.deepEqual(chooseLinkPlace('links.acme.example', base), own)
})
