import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findPolicy, isAligned, judgeDmarc, listWalk, walkDmarc } from './dmarc.ts'
import type { Lookup } from './lookup.ts'

function lookIn(zone: Readonly<Record<string, string | readonly string[]>>) {
  const asked: string[] = []
  const lookup: Lookup = async (name) => {
    asked.push(name)
    const records = zone[name.replace('_dmarc.', '')]
    if (records === 'SERVFAIL') return { kind: 'unknown', reason: 'the server failed' }
    return records === undefined ? { kind: 'absent' } : { kind: 'found', records: [records].flat() }
  }
  return { asked, lookup }
}

const walk = async (domain: string, zone: Parameters<typeof lookIn>[0]) => {
  const found = await walkDmarc(domain, lookIn(zone).lookup)
  return { found, policy: findPolicy(found, domain)?.name ?? null, verdict: judgeDmarc(found, domain) }
}

test('the walk goes from the domain to the top, and skips to seven labels', () => {
  assert.deepEqual(listWalk('mail.acme.test'), ['mail.acme.test', 'acme.test', 'test'])
  assert.deepEqual(listWalk('test'), ['test'])
  const eight = 'a.b.c.d.e.f.acme.test'
  assert.deepEqual(listWalk(eight).slice(0, 2), [eight, 'b.c.d.e.f.acme.test'])
  const twelve = `1.2.3.4.${eight}`
  assert.deepEqual(listWalk(twelve).slice(0, 2), [twelve, 'b.c.d.e.f.acme.test'])
  assert.equal(listWalk(twelve).length, 8)
})

for (const [what, domain, zone, organisation, policy] of [
  ['the record of the domain', 'acme.test', { 'acme.test': 'v=DMARC1; p=none' }, 'acme.test', 'acme.test'],
  ['no record', 'mail.acme.test', {}, 'mail.acme.test', null],
  ['the record above', 'mail.acme.test', { 'acme.test': 'v=DMARC1; p=none' }, 'acme.test', 'acme.test'],
  [
    'the highest record',
    'a.mail.acme.test',
    { 'mail.acme.test': 'v=DMARC1; p=none', 'acme.test': 'v=DMARC1; p=reject' },
    'acme.test',
    'acme.test',
  ],
  [
    'an organisation of its own',
    'a.mail.acme.test',
    { 'mail.acme.test': 'v=DMARC1; psd=n', 'acme.test': 'v=DMARC1; p=reject' },
    'mail.acme.test',
    'mail.acme.test',
  ],
  [
    'a public suffix',
    'a.acme.co.test',
    { 'co.test': 'v=DMARC1; psd=y; p=reject', 'acme.co.test': 'v=DMARC1; p=none' },
    'acme.co.test',
    'acme.co.test',
  ],
  [
    'the record of a public suffix',
    'a.acme.co.test',
    { 'co.test': 'v=DMARC1; psd=y; p=reject' },
    'acme.co.test',
    'co.test',
  ],
  [
    'a suffix that sends, below another record,',
    'co.test',
    { 'co.test': 'v=DMARC1; psd=y', test: 'v=DMARC1; p=reject' },
    'co.test',
    'co.test',
  ],
  ['a suffix itself', 'co.test', { 'co.test': 'v=DMARC1; psd=y' }, 'co.test', 'co.test'],
  ['a record of another kind', 'acme.test', { 'acme.test': 'v=spf1 -all' }, 'acme.test', null],
] as const)
  test(`${what} decides`, async () => {
    const walked = await walk(domain, zone)
    assert.deepEqual([walked.found.organisation, walked.policy], [organisation, policy])
  })

for (const [record, result, message] of [
  ['v=DMARC1; p=reject; rua=mailto:d@acme.test', 'ok', /reject/],
  ['v=DMARC1;p=none;rua=mailto:d@acme.test;', 'ok', /none/],
  ['v=DMARC1; p=reject', 'warn', /"rua="/],
  ['v=DMARC1; p=reject; rua=mailto:d@acme.test; t=y', 'warn', /"t=y"/],
  ['v=DMARC1; p=reject; rua=mailto:d@acme.test; pct=50', 'warn', /"pct="/],
  ['v=DMARC1; p=reject; rua=mailto:d@acme.test; T=y', 'ok', /reject/],
  ['v=DMARC1; p=REJECT; sp=none; rua=mailto:d@acme.test; adkim=S', 'ok', /policy is reject/],
  ['v=DMARC1; p=reject; rua=mailto:d@acme.test; t=Y', 'warn', /"t=y"/],
  ['v=DMARC1; p=reject; rua=d@acme.test', 'warn', /"mailto:you@example\.com"/],
  ['v=DMARC1; p=reject; rua=mailto:acme.test', 'warn', /"mailto:you@example\.com"/],
  ['v=DMARC1; p=reject; rua=https://acme.test/, MAILTO:d@acme.test!10m', 'ok', /reject/],
  ['v=DMARC1; p=none; p=reject', 'fail', /twice/],
  ['v=DMARC1; p=refuse', 'fail', /"p="/],
  ['v=DMARC1; p=none; aspf=x', 'fail', /"aspf="/],
  ['v=DMARC1 p=none', 'fail', /begin with "v=DMARC1;"\.$/],
  ['p=none; v=DMARC1', 'fail', /begin with/],
  ['v=dmarc1; p=none', 'fail', /begin with/],
  ['p=quarantine', 'fail', /begin with/],
  ['"v=DMARC1; p=none"', 'fail', /without quotes and backslashes/],
  ['v=DMARC1\\; p=none', 'fail', /without quotes and backslashes/],
  ['_dmarc.acme.test. TXT v=DMARC1; p=none', 'fail', /begin with/],
  ['v=spf1 -all', 'warn', /no DMARC record/],
  ['google-site-verification=p', 'warn', /no DMARC record/],
  ['dmarcian-verification=abc123', 'warn', /no DMARC record/],
  ['dmarc1-verify=p=none', 'warn', /no DMARC record/],
  ['v=DMARC1;\u00a0p=reject; rua=mailto:d@acme.test', 'fail', /name=value/],
  ['v=DMARC1; P=reject; rua=mailto:d@acme.test', 'warn', /no "p="/],
  ['v=DMARC1; p none', 'fail', /name=value/],
] as const)
  test(`${record}: ${result}`, async () => {
    const { verdict } = await walk('acme.test', { 'acme.test': ['other', record] })
    assert.equal(verdict.result, result)
    assert.match(verdict.message, message)
  })

test('two records, none, and DNS that does not answer', async () => {
  const two = ['v=DMARC1; p=none', 'v=DMARC1; p=reject']
  assert.equal((await walk('acme.test', { 'acme.test': two })).verdict.result, 'fail')
  assert.equal((await walk('acme.test', {})).verdict.result, 'warn')
  assert.equal((await walk('acme.test', { test: 'SERVFAIL' })).verdict.result, 'unknown')
  const known = { 'mail.acme.test': 'v=DMARC1; p=none', 'acme.test': 'SERVFAIL' }
  const own = await walk('mail.acme.test', known)
  assert.deepEqual([own.found.unknown, own.verdict.result], ['the server failed', 'warn'])
  assert.equal((await walk('mail.acme.test', { 'acme.test': two })).verdict.result, 'fail')
  const below = { 'mail.acme.test': two, 'acme.test': 'v=DMARC1; p=none' }
  assert.equal((await walk('a.mail.acme.test', below)).verdict.result, 'warn', 'receivers skip two records')
})

test('below the organisation, "sp=" is the policy', async () => {
  const zone = { 'acme.test': 'v=DMARC1; p=reject; sp=quarantine; rua=mailto:d@acme.test' }
  assert.match((await walk('mail.acme.test', zone)).verdict.message, /quarantine/)
  assert.match((await walk('acme.test', zone)).verdict.message, /reject/)
})

test('relaxed alignment compares organisations, strict alignment domains', () => {
  const from = { domain: 'auth.acme.test', organisation: 'acme.test' }
  const bounce = { domain: 'bounce.acme.test', organisation: 'acme.test' }
  assert.deepEqual(
    [isAligned(from, bounce, undefined), isAligned(from, bounce, 'r'), isAligned(from, bounce, 's')],
    [true, true, false],
  )
  assert.equal(isAligned(from, from, 's'), true)
  assert.equal(isAligned(from, { domain: 'relay.test', organisation: 'relay.test' }, 'r'), false)
})

test('a text that receivers do not recognize does not hide the record above it', async () => {
  const org = 'v=DMARC1; p=reject; rua=mailto:d@acme.test'
  const { policy, verdict } = await walk('mail.acme.test', {
    'mail.acme.test': '"v=DMARC1; p=none"',
    'acme.test': org,
  })
  assert.equal(policy, 'acme.test')
  assert.equal(verdict.result, 'warn')
  assert.match(
    verdict.message,
    /do not recognize the text at _dmarc\.mail\.acme\.test, and apply the record of acme\.test/,
  )
})
