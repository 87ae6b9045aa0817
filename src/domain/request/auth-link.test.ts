import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readCorpus } from '../../../test/support/corpus.ts'
import { parseAuthLink, readOrigin } from './auth-link.ts'

const schemes = new Set(['acme', 'com.acme.app'])

test('every link of the valid corpus is accepted and carried as stated', () => {
  for (const [raw, href] of readCorpus('auth-link.valid')) {
    const link = parseAuthLink(raw, schemes)
    assert.ok(link.ok, `${raw}: ${JSON.stringify(link)}`)
    assert.equal(link.value.href, href ?? raw)
  }
})

test('row 44: every link of the invalid corpus is refused for its reason', () => {
  for (const [code, raw = ''] of readCorpus('auth-link.invalid')) {
    const link = parseAuthLink(raw, schemes)
    assert.ok(!link.ok, raw)
    assert.ok(
      link.issues.some((issue) => issue.code === code),
      `${raw}: ${JSON.stringify(link.issues)}`,
    )
  }
})

test('the corpora hold at least 120 links', () => {
  assert.ok(readCorpus('auth-link.valid').length + readCorpus('auth-link.invalid').length >= 120)
})

test('a link of 8192 characters passes, one more is refused', () => {
  const start = 'https://app.example.com/?token='
  assert.ok(parseAuthLink(start + 'a'.repeat(8192 - start.length), schemes).ok)
  assert.ok(!parseAuthLink(start + 'a'.repeat(8193 - start.length), schemes).ok)
})

test('all faults are listed, not the first', () => {
  const link = parseAuthLink('ftp://x/?a=b', schemes)
  assert.ok(!link.ok)
  assert.deepEqual(
    link.issues.map((issue) => issue.code),
    ['scheme_not_allowed', 'query_not_exactly_token'],
  )
})

test('the fault of a link with one parameter of another name says what to do', () => {
  const advise = (query: string) => {
    const link = parseAuthLink(`https://app.example.com/auth?${query}`, schemes)
    assert.ok(!link.ok)
    return link.issues[0]?.message ?? ''
  }
  assert.match(advise('code=secret'), /a page of your own that takes token/)
  assert.match(advise('token=secret&next=/home'), /Put other values into the path/)
  for (const query of ['code=secret', 'token=secret&next=/home']) assert.doesNotMatch(advise(query), /secret/)
})

// The same rules, written independently of the parser, for links that it accepts, as `URL` reads them.
function assertKeepsRules(raw: string, href: string): void {
  assert.match(raw, /^[\x21-\x7e]{1,8192}$/)
  const scheme = raw.slice(0, raw.indexOf(':')).toLowerCase()
  const url = new URL(href)
  assert.equal(url.protocol, `${scheme}:`)
  if (scheme === 'http') assert.ok(['localhost', '127.0.0.1'].includes(url.hostname))
  else if (scheme !== 'https') assert.ok(schemes.has(scheme))
  assert.equal(
    url.username + url.password,
    scheme === 'acme' || scheme === 'com.acme.app' ? url.username + url.password : '',
  )
  const parameters = [...url.searchParams]
  assert.equal(parameters.length, 1)
  assert.equal(parameters[0]?.[0], 'token')
  assert.notEqual(parameters[0]?.[1].trim(), '')
}

// A function, because building the arbitrary takes a second.
const pieces = () =>
  fc.array(
    fc.oneof(
      fc.constantFrom(
        'https://',
        'http://',
        'acme:',
        'acme://',
        'localhost',
        '127.0.0.1',
        'app.example.com',
        '?token=',
        '?',
        '#',
        '&',
        ';',
        '/',
        '//',
        '\\',
        '@',
        ':',
        '%',
        '%2e',
        '..',
        '.',
        'token',
        '=',
        'javascript:',
        '[::1]',
        '\t',
        '\n',
        ' ',
        '|',
        '0x7f',
        'é',
      ),
      fc.string({ maxLength: 4 }),
      fc.string({ unit: 'binary', maxLength: 3 }),
    ),
    { maxLength: 12 },
  )

test('no input throws, and what is accepted keeps the rules stated independently', () => {
  const near = pieces().map((parts) => parts.join(''))
  const seeded = fc
    .tuple(
      fc.constantFrom(...readCorpus('auth-link.valid').map(([raw]) => raw)),
      fc.nat(200),
      fc.string({ unit: 'binary', maxLength: 2 }),
    )
    .map(([link, at, text]) => link.slice(0, at % link.length) + text + link.slice(at % link.length))
  let accepted = 0
  fc.assert(
    fc.property(fc.oneof(near, seeded, fc.string({ unit: 'binary' })), (raw) => {
      const link = parseAuthLink(raw, schemes)
      if (!link.ok) return
      accepted += 1
      assertKeepsRules(raw, link.value.href)
    }),
    { numRuns: 20_000 },
  )
  assert.ok(accepted > 500, `only ${accepted} inputs were accepted: the property says little`)
})

test('the origin of a refused link is what stands in its place, and no part that a repair would move there', () => {
  const schemes = new Set(['acme'])
  const origins = {
    'https://App.acme.test:8443/canary?token=canary': 'https://app.acme.test:8443',
    'http://[::1]:80/canary': 'http://[::1]:80',
    'acme://canary/canary?token=canary': 'acme:',
    'https:///canary/verify': null,
    'https:canary': null,
    'https:\\\\canary': null,
    'https://canary@app.acme.test/': null,
    'https://can ary/': null,
    'canary:x': null,
    'ada.lovelace:canary@x': null,
    canary: null,
  }
  for (const [link, origin] of Object.entries(origins)) assert.equal(readOrigin(link, schemes), origin, link)
})
