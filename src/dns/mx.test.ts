import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lookup } from '../domain/dns/lookup.ts'
import { judgeMx } from './mx.ts'

const zone: Readonly<Record<string, readonly string[] | null>> = {
  'A mail.acme.test': ['198.51.100.7'],
  'AAAA six.acme.test': ['2001:db8::1'],
  'A self.acme.test': ['127.0.0.1'],
  'A mixed.acme.test': ['127.0.0.1', '198.51.100.7'],
  'A zero.acme.test': ['0.0.0.0'],
  'A both.acme.test': ['127.0.0.1'],
  'AAAA both.acme.test': ['2001:db8::1'],
  'A link.acme.test': ['169.254.1.1'],
  'A group.acme.test': ['239.1.1.1'],
  'AAAA self6.acme.test': ['::1'],
  'AAAA link6.acme.test': ['fe80::1'],
  'A inner.acme.test': ['10.0.0.7'],
  'AAAA inner6.acme.test': ['fd00::7'],
  'A alias.acme.test': ['198.51.100.7'],
  'CNAME alias.acme.test': ['mail.acme.test'],
  'A silent.acme.test': null,
}

const judge = (more: Readonly<Record<string, readonly string[] | null>>) => {
  const lookup: Lookup = async (name, type) => {
    const records = { ...zone, ...more }[`${type} ${name}`]
    if (records === null) return { kind: 'unknown', reason: 'no answer' }
    return records === undefined ? { kind: 'absent' } : { kind: 'found', records }
  }
  return judgeMx('acme.test', lookup)
}

for (const [servers, result, message] of [
  [['10 mail.acme.test'], 'ok', /^$/],
  [['10 mail.acme.test.'], 'ok', /^$/],
  [['10 six.acme.test'], 'ok', /^$/],
  [['10 mixed.acme.test'], 'ok', /^$/],
  [['10 both.acme.test'], 'ok', /^$/],
  [['0 '], 'fail', /null MX/],
  [['0 .'], 'fail', /null MX/],
  [['10 mail.acme.test', '0 .'], 'fail', /null MX/],
  [['10 gone.acme.test'], 'fail', /gone\.acme\.test, which has no address/],
  [['10 192.0.2.1'], 'fail', /contains the address 192\.0\.2\.1/],
  [['10 192.0.2.1.'], 'fail', /contains the address/],
  [['10 2001:db8::1'], 'fail', /contains the address/],
  [['10 [192.0.2.1]'], 'fail', /no host name/],
  [['10 müller.test'], 'fail', /no host name/],
  [['10 self.acme.test'], 'fail', /127\.0\.0\.1, which other machines/],
  [['10 zero.acme.test'], 'fail', /0\.0\.0\.0/],
  [['10 link.acme.test'], 'fail', /169\.254/],
  [['10 group.acme.test'], 'fail', /239/],
  [['10 self6.acme.test'], 'fail', /::1/],
  [['10 link6.acme.test'], 'fail', /fe80::1/],
  [['10 inner.acme.test'], 'warn', /same private network/],
  [['10 inner6.acme.test'], 'warn', /same private network/],
  [['10 alias.acme.test'], 'warn', /is a CNAME/],
  [['10 mail.acme.test', '20 gone.acme.test'], 'warn', /gone/],
  [['20 mail.acme.test', '10 gone.acme.test'], 'warn', /gone/],
  [['10 gone.acme.test', '20 self.acme.test'], 'fail', /gone.* 127/],
  [['10 silent.acme.test'], 'unknown', /no answer/],
  [['10 silent.acme.test', '20 gone.acme.test'], 'unknown', /no answer/],
  [['10 silent.acme.test', '20 mail.acme.test'], 'warn', /no answer/],
] as const)
  test(`MX ${servers.join(', ')}: ${result}`, async () => {
    const judged = await judge({ 'MX acme.test': servers })
    assert.equal(judged.result, result)
    assert.match(judged.message, message)
    assert.deepEqual(judged.found, servers)
  })

for (const [addresses, result, message] of [
  [{ 'A acme.test': ['198.51.100.7'] }, 'ok', /^$/],
  [{ 'A acme.test': ['198.51.100.7'], 'CNAME acme.test': ['x.test'] }, 'ok', /^$/],
  [{ 'AAAA acme.test': ['2001:db8::1'] }, 'ok', /^$/],
  [{ 'A acme.test': ['127.0.0.1'] }, 'fail', /acme\.test resolves to 127\.0\.0\.1/],
  [{ 'A acme.test': ['192.168.1.7'] }, 'warn', /same private network/],
  [{ 'A acme.test': null }, 'unknown', /no answer/],
  [{ 'A acme.test': null, 'AAAA acme.test': ['2001:db8::1'] }, 'ok', /^$/],
  [{}, 'fail', /no MX and no address/],
] as const)
  test(`no MX, and ${JSON.stringify(addresses)}: ${result}`, async () => {
    const judged = await judge(addresses)
    assert.equal(judged.result, result)
    assert.match(judged.message, message)
    assert.equal(judged.found, null)
  })

test('no more than five servers are looked at, the most wanted ones', async () => {
  const servers = Array.from({ length: 50 }, (_, n) => `${50 - n} s${50 - n}.acme.test`)
  const { message, result } = await judge({ 'MX acme.test': servers })
  assert.equal(result, 'unknown', 'another one may work')
  assert.deepEqual(message.match(/s\d+\.acme/g), ['s1.acme', 's2.acme', 's3.acme', 's4.acme', 's5.acme'])
})
