import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDkimRecord } from '../domain/dns/dkim-record.ts'
import type { Lookup } from '../domain/dns/lookup.ts'
import { checkDomain, type DomainSubject } from './check-domain.ts'

type Zone = Readonly<Record<string, string | readonly string[] | null | undefined>>

/** Null: no answer. */
const lookIn =
  (zone: Zone): Lookup =>
  async (name, type) => {
    const records = zone[`${type} ${name}`]
    if (records === null) return { kind: 'unknown', reason: 'no answer' }
    return records === undefined ? { kind: 'absent' } : { kind: 'found', records: [records].flat() }
  }

const publicKey = 'MIIB'
const record = formatDkimRecord('rsa', publicKey)
const key = (state: 'pending' | 'active' | 'retired') =>
  ({ selector: 'p1', algorithm: 'rsa', publicKey, state }) as const
const right: Zone = {
  'TXT p1._domainkey.acme.test': record,
  'TXT acme.test': 'v=spf1 include:relay.test ~all',
  'TXT relay.test': 'v=spf1 ip4:192.0.2.1 -all',
  'TXT _dmarc.acme.test': 'v=DMARC1; p=reject; rua=mailto:d@acme.test',
  'MX acme.test': '10 mail.acme.test',
  'MX bounce.acme.test': '10 mail.acme.test',
  'A mail.acme.test': '192.0.2.1',
}

async function check(zone: Zone, change: Partial<DomainSubject> = {}) {
  const subject = {
    ...{ domain: 'acme.test', envelopeDomain: 'acme.test', bounceDomain: 'bounce.acme.test' },
    ...{ keys: [key('active')], include: 'relay.test', ...change },
  }
  const lines = await checkDomain(subject, lookIn({ ...right, ...zone }))
  return Object.fromEntries(lines.map((line) => [line.check, line]))
}

test('all is right', async () => {
  const lines = Object.values(await check({}))
  assert.deepEqual(new Set(lines.map(({ result }) => result)), new Set(['ok']))
  assert.ok(lines.every(({ publish }) => publish === null))
  assert.equal(lines.length, 6)
})

const none = { keys: [] }
const aside = { ...none, envelopeDomain: 'bounce.acme.test' }
const asideSpf = { 'TXT bounce.acme.test': 'v=spf1 include:relay.test ~all' }
const strict = 'v=DMARC1; p=reject; rua=mailto:d@acme.test; aspf=s'
const [noMx, mx] = [{ 'MX acme.test': undefined }, 'mx'] as const
const noDmarc = { 'TXT _dmarc.acme.test': undefined }

for (const [name, result, message, zone, change] of [
  ['dkim', 'fail', /publish it/, { 'TXT p1._domainkey.acme.test': undefined }, {}],
  ['dkim', 'warn', /Activate/, {}, { keys: [key('pending')] }],
  ['dkim', 'warn', /publish it/, { 'TXT p1._domainkey.acme.test': undefined }, { keys: [key('pending')] }],
  ['dkim', 'fail', /./, { 'TXT p1._domainkey.acme.test': 'v=DKIM1; p=AAAA' }, { keys: [key('pending')] }],
  ['dkim', 'ok', /remove the record/, {}, { keys: [key('retired')] }],
  ['dkim', 'unknown', /no answer/, { 'TXT p1._domainkey.acme.test': null }, {}],
  ['dkim', 'unknown', /no answer/, { 'TXT p1._domainkey.acme.test': null }, { keys: [key('pending')] }],
  ['spf', 'warn', /lacks "include:other.test"/, {}, { include: 'other.test' }],
  ['spf', 'fail', /no SPF record/, { 'TXT acme.test': 'hello' }, {}],
  ['spf', 'unknown', /no answer/, { 'TXT relay.test': null }, {}],
  ['dmarc', 'warn', /no DMARC/, noDmarc, {}],
  [mx, 'fail', /null MX/, { 'MX acme.test': '0 ' }, {}],
  [mx, 'fail', /no MX and no address/, noMx, {}],
  [mx, 'ok', /accepts mail/, { ...noMx, 'AAAA acme.test': '2001:db8::1', 'A acme.test': null }, {}],
  [mx, 'unknown', /no answer/, { ...noMx, 'A acme.test': null }, {}],
  ['bounce_domain', 'fail', /Bounces cannot be delivered\. .*null MX/, { 'MX bounce.acme.test': '0 ' }, {}],
  ['bounce_domain', 'unknown', /check again/, { 'MX bounce.acme.test': null }, {}],
  ['alignment', 'warn', /Only SPF/, {}, none],
  ['alignment', 'warn', /Only SPF/, {}, { keys: [key('pending')] }],
  ['alignment', 'warn', /Only SPF/, asideSpf, aside],
  ['alignment', 'fail', /bounce address in acme/, { ...asideSpf, 'TXT _dmarc.acme.test': strict }, aside],
  ['alignment', 'fail', /bounce address in acme/, {}, { ...none, envelopeDomain: 'relay.test' }],
  ['alignment', 'warn', /Only SPF/, { ...asideSpf, ...noDmarc }, aside],
  [
    ...(['alignment', 'fail', /bounce address in acme/] as const),
    { ...noDmarc, 'TXT bounceacme.test': 'v=spf1 ip4:192.0.2.1 ~all' },
    { ...none, envelopeDomain: 'bounceacme.test' },
  ],
  ['alignment', 'unknown', /no answer/, { ...asideSpf, 'TXT _dmarc.test': null }, aside],
  ['alignment', 'unknown', /on the SPF record/, { 'TXT acme.test': null }, none],
  ['alignment', 'fail', /fix the SPF record/, { 'TXT acme.test': 'v=spf1 -all' }, none],
  ['alignment', 'fail', /fix the SPF record/, { 'TXT acme.test': 'spf1 mx' }, none],
  ['alignment', 'fail', /fix the SPF record/, {}, aside],
  ['alignment', 'ok', /by the From domain/, { 'TXT acme.test': 'v=spf1 -all' }, {}],
  ['alignment', 'unknown', /signing key/, { 'TXT p1._domainkey.acme.test': null }, {}],
  ['alignment', 'warn', /its provider says how/, {}, { ...none, envelopeDomain: null }],
] as const)
  test(`${name}: ${result}, ${message}`, async () => {
    const { [name]: line } = await check(zone, change)
    assert.equal(line?.result, result)
    assert.match(line.message, message)
  })

test('the record to publish is named where one is missing', async () => {
  const lines = await check({ 'TXT acme.test': 'hello', ...noDmarc, 'TXT p1._domainkey.acme.test': 'p=' })
  assert.deepEqual(
    [lines.dkim?.publish, lines.spf?.publish, lines.dmarc?.publish],
    [
      { name: 'p1._domainkey.acme.test', value: record },
      { name: 'acme.test', value: 'v=spf1 include:relay.test ~all' },
      { name: '_dmarc.acme.test', value: 'v=DMARC1; p=none; rua=mailto:dmarc@acme.test' },
    ],
  )
})

test('text of DNS is shown without control characters, and not all of it', async () => {
  const { dkim } = await check({ 'TXT p1._domainkey.acme.test': `\u001b[31m\u202e${'x'.repeat(600)}` })
  assert.equal(dkim?.found?.length, 500)
  assert.match(dkim.found, /^\?\[31m\?x+$/)
})

test('a DMARC record is to be published where DNS has none, and nowhere else', async () => {
  const publish = async (record: string | null | undefined) =>
    (await check({ 'TXT _dmarc.acme.test': record })).dmarc?.publish?.value
  assert.equal(await publish(undefined), 'v=DMARC1; p=none; rua=mailto:dmarc@acme.test')
  assert.equal(await publish('v=DMARC1; p=reject; t=y; rua=mailto:d@acme.test'), undefined)
  assert.equal(await publish(null), undefined, 'DNS did not answer')
})

test('a record at a name with the domain twice is named, and a wildcard is not taken for one', async () => {
  const twice = { 'TXT _dmarc.acme.test.acme.test': 'v=DMARC1; p=none' }
  const { dmarc } = await check({ ...noDmarc, ...twice })
  assert.match(dmarc?.message ?? '', /There is one at _dmarc\.acme\.test\.acme\.test: your provider adds acme\.test/)
  const wildcard = { 'TXT _postern-unused._dmarc.acme.test.acme.test': 'v=DMARC1; p=none' }
  const lines = await check({ ...noDmarc, ...twice, ...wildcard })
  assert.doesNotMatch(lines.dmarc?.message ?? '', /There is one/)
})

test('a second record is not proposed beside one that receivers do not recognize', async () => {
  const lines = await check({ 'TXT acme.test': 'spf1 mx', 'TXT _dmarc.acme.test': 'p=none' })
  assert.deepEqual([lines.spf?.publish, lines.dmarc?.publish], [null, null])
  assert.deepEqual([lines.spf?.found, lines.dmarc?.found], ['spf1 mx', 'p=none'])
})
