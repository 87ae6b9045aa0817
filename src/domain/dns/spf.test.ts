import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answer, Lookup } from './lookup.ts'
import { judgeSpf, toSpfVerdict } from './spf.ts'

type Zone = Readonly<Record<string, readonly string[]>>

const lookIn =
  (zone: Zone): Lookup =>
  async (name, type): Promise<Answer> => {
    const records = zone[`${type} ${name}`]
    if (records?.[0] === 'SERVFAIL') return { kind: 'unknown', reason: 'the server failed' }
    return records === undefined ? { kind: 'absent' } : { kind: 'found', records }
  }

const judge = async (record: string, zone: Zone = {}) =>
  judgeSpf('acme.test', lookIn({ 'TXT acme.test': ['other text', record], ...zone }))
const includes = (count: number) =>
  Array.from({ length: count }, (_, n) => [`TXT i${n}.test`, ['v=spf1 ip4:192.0.2.1 -all']] as const)

for (const [record, result] of [
  ['v=spf1 ip4:192.0.2.0/24 -all', 'fail'],
  ['v=spf1 ip4:192.0.2.0/24 ~all', 'softfail'],
  ['V=SPF1 ?ALL', 'neutral'],
  ['v=spf1', 'neutral'],
  ['v=spf1 ip6:2001:db8::/32 +all', 'pass'],
  ['v=spf1 all', 'pass'],
  ['v=spf1 x-unknown=1 -all', 'fail'],
  ['v=spf1 -all include:not.there.test', 'fail'],
  ['v=spf10 -all', 'none'],
  ['v=spf1 -all redirect=not.there.test', 'fail'],
  ['v=spf1 redirect=not.there.test', 'permerror'],
  ['v=spf1 include:not.there.test -all', 'permerror'],
  ['v=spf1 ip4:192.0.2.256 -all', 'permerror'],
  ['v=spf1 ip4:192.0.2.1/33 -all', 'permerror'],
  ['v=spf1 ip6:192.0.2.1 -all', 'permerror'],
  ['v=spf1 ip6:2001:db8::/129 -all', 'permerror'],
  ['v=spf1 ip4 -all', 'permerror'],
  ['v=spf1 ptr -all', 'fail'],
  ['v=spf1 ptr:a.test -all', 'fail'],
  ['v=spf1 ptr: -all', 'permerror'],
  ['v=spf1 ptrx -all', 'permerror'],
  ['v=spf1 a/33 -all', 'permerror'],
  ['v=spf1 a//129 -all', 'permerror'],
  ['v=spf1 a/24//64 mx/24 -all', 'fail'],
  ['v=spf1 include -all', 'permerror'],
  ['v=spf1 include:nodot -all', 'permerror'],
  ['v=spf1 all:acme.test', 'permerror'],
  ['v=spf1 -all ipv4:192.0.2.1', 'permerror'],
  ['v=spf1 redirect=a.test redirect=b.test', 'permerror'],
  // Unknown modifiers, which receivers ignore.
  ['v=spf1 include=not.there.test -all', 'fail'],
  ['v=spf1 all=1 ip4:192.0.2.1', 'neutral'],
  ['v=spf1 x=%{y} -all', 'permerror'],
  ['v=spf1 exp=a.test -all', 'fail'],
  ['v=spf1 exp=nodot -all', 'permerror'],
  ['v=spf1 exp=a.test exp=b.test -all', 'permerror'],
  ['v=spf1 ip4:192.0.2.0/024 -all', 'permerror'],
  ['v=spf1 ip4:192.0.2.01 -all', 'permerror'],
  ['v=spf1 ip4:192.0.2.0/ -all', 'permerror'],
  ['v=spf1 a/08 -all', 'permerror'],
  ['v=spf1 a:1.2.3.4 -all', 'permerror'],
  ['v=spf1 a:1.2.3.4x -all', 'fail'],
  ['v=spf1 a: -all', 'permerror'],
  [`v=spf1 a:${'x.'.repeat(126)}test -all`, 'permerror'],
  [`v=spf1 a:${'x.'.repeat(124)}test -all`, 'fail'],
  // Terms that all senders match.
  ['v=spf1 ip4:0.0.0.0/0 -all', 'pass'],
  ['v=spf1 ip6:::/0 -all', 'pass'],
  ['v=spf1 -ip4:0.0.0.0/0 +all', 'fail'],
  ['v=spf1 a/0 -all', 'pass'],
  ['v=spf1 a//0 -all', 'pass'],
  ['v=spf1 a:not.there.test/0 -all', 'fail'],
  ['v=spf1 exists:acme.test -all', 'pass'],
  ['v=spf1 exists:not.there.test -all', 'fail'],
  ['v=spf1 include:open.test -all', 'pass'],
  ['v=spf1 ?include:open.test -all', 'neutral'],
  ['v=spf1 include:closed.test ~all', 'softfail'],
  ['v=spf1 exists:%{i}.a.test -all', 'unknown'],
  ['v=spf1 exists:%{x}.a.test -all', 'permerror'],
  ['v=spf1 exists:%i.a.test -all', 'permerror'],
  ['v=spf1 include:%{d}.a.test -all', 'unknown'],
] as const)
  test(`${record}: ${result}`, async () => {
    const zone = {
      ...{ 'A acme.test': ['192.0.2.1'], 'MX acme.test': ['1 a'] },
      ...{ 'TXT open.test': ['v=spf1 +all'], 'TXT closed.test': ['v=spf1 -all'] },
    }
    assert.equal((await judge(record, zone)).result, result)
  })

test('two records, and DNS that does not answer', async () => {
  const two = { 'TXT acme.test': ['v=spf1 -all', 'v=spf1 ~all'] }
  assert.equal((await judgeSpf('acme.test', lookIn(two))).result, 'permerror')
  const failing = { 'TXT acme.test': ['SERVFAIL'] }
  assert.equal((await judgeSpf('acme.test', lookIn(failing))).result, 'unknown')
  assert.equal((await judge('v=spf1 include:a.test -all', { 'TXT a.test': ['SERVFAIL'] })).result, 'unknown')
  assert.equal((await judge('v=spf1 a -all', { 'A acme.test': ['SERVFAIL'] })).result, 'unknown')
})

test('ten look-ups are followed, and the eleventh is not, also where an include has them', async () => {
  const record = (count: number) =>
    `v=spf1 ${Array.from({ length: count }, (_, n) => `include:i${n}.test`).join(' ')} -all`
  assert.deepEqual(
    [(await judge(record(10), Object.fromEntries(includes(10)))).result, (await judge(record(10))).result],
    ['fail', 'permerror'],
  )
  const eleven = await judge(record(11), Object.fromEntries(includes(11)))
  assert.deepEqual([eleven.result, eleven.lookups], ['permerror', 11])
  assert.match(eleven.fault, /more than 10 look-ups/)
  const nested = { ...Object.fromEntries(includes(9)), 'TXT n.test': [record(9)] }
  assert.equal((await judge('v=spf1 include:n.test -all', nested)).result, 'fail')
  assert.equal((await judge('v=spf1 include:n.test include:i0.test -all', nested)).result, 'permerror')
  assert.equal((await judge('v=spf1 redirect=n.test', nested)).result, 'fail')
})

test('a record that leads back to itself is refused at once', async () => {
  for (const [record, other] of [
    ['v=spf1 include:Acme.test. -all', ''],
    ['v=spf1 redirect=acme.test', ''],
    ['v=spf1 include:b.test -all', 'v=spf1 redirect=acme.test'],
  ] as const) {
    const { fault, lookups, result } = await judge(record, { 'TXT b.test': [other] })
    assert.equal(result, 'permerror')
    assert.match(fault, /leads back to acme\.test/i)
    assert.ok(lookups <= 2, record)
  }
  const twice = await judge('v=spf1 include:b.test include:b.test -all', { 'TXT b.test': ['v=spf1 -all'] })
  assert.equal(twice.result, 'fail')
})

test('two names may be missing, and not a third', async () => {
  assert.equal((await judge('v=spf1 a:x.test mx:y.test -all')).result, 'fail')
  assert.equal((await judge('v=spf1 a:x.test mx:y.test a:z.test -all')).result, 'permerror')
  const sixth = { 'AAAA z.test': ['2001:db8::1'] }
  assert.equal((await judge('v=spf1 a:x.test mx:y.test a:z.test -all', sixth)).result, 'fail')
  // Receivers ask "exists" for IPv4 alone.
  assert.equal((await judge('v=spf1 a:x.test mx:y.test exists:z.test -all', sixth)).result, 'permerror')
  const many = { 'MX y.test': Array.from({ length: 11 }, (_, n) => `1 m${n}.test`) }
  assert.equal((await judge('v=spf1 mx:y.test -all', many)).result, 'permerror')
})

test('the include of a provider counts wherever it is, in any case', async () => {
  const zone = {
    'TXT n.test': ['v=spf1 include:_spf.Google.com -all'],
    'TXT _spf.Google.com': ['v=spf1 ip4:192.0.2.1 ~all'],
  }
  const nested = await judge('v=spf1 include:n.test -all', zone)
  assert.deepEqual([...nested.includes], ['n.test', '_spf.google.com'])
  assert.equal(toSpfVerdict(nested, '_spf.google.com').result, 'ok')
  assert.equal(toSpfVerdict(nested, 'spf.protection.outlook.com').result, 'warn')
  assert.equal(toSpfVerdict(nested, null).result, 'ok')
  const redirected = await judge('v=spf1 redirect=N.test.', { ...zone, 'TXT N.test.': zone['TXT n.test'] })
  assert.equal(toSpfVerdict(redirected, 'n.test').result, 'ok')
  const refused = await judge('v=spf1 ip4:192.0.2.1 -include:n.test ~all', zone)
  assert.equal(toSpfVerdict(refused, 'n.test').result, 'warn')
  const typo = await judge('v=spf1 ip4:192.0.2.1 include=n.test ?all', zone)
  assert.match(toSpfVerdict(typo, 'n.test').message, /Receivers ignore "include=n\.test"/)
  const verdicts = await Promise.all(
    ['v=spf1 +all', 'v=spf1 ip4:192.0.2.1 ?all', 'v=spf1 nonsense', 'none', 'v=spf1 a:%{d}.x.test -all'].map(
      async (record) => toSpfVerdict(await judge(record), null).result,
    ),
  )
  assert.deepEqual(verdicts, ['warn', 'warn', 'fail', 'fail', 'unknown'])
})

const anywhere = {
  'TXT none.test': ['v=spf1 -all'],
  'TXT some.test': ['v=spf1 ip6:2001:db8::1 -all'],
  'MX mail.test': ['10 a.mail.test'],
  'A a.mail.test': ['192.0.2.1'],
  'AAAA six.test': ['2001:db8::1'],
  'TXT pointer.test': ['v=spf1 ptr -all'],
  'MX dead.test': ['10 gone.test'],
  'MX null.test': ['0 '],
}
for (const [record, result, message] of [
  ['v=spf1 -all', 'fail', /authorizes no server/],
  ['v=spf1 ~all', 'fail', /authorizes no server/],
  ['v=spf1 ?all', 'fail', /authorizes no server/],
  ['v=spf1', 'fail', /authorizes no server/],
  ['v=spf1 -all ip4:192.0.2.1', 'fail', /authorizes no server/],
  ['v=spf1 ip4:192.0.2.1 ~all include:some.test', 'warn', /ignore "include:some\.test"/],
  ['v=spf1 ip4:192.0.2.1 redirect=some.test -all', 'warn', /ignore "redirect=some\.test"/],
  ['v=spf1 ip4:192.0.2.1 include=some.test -all', 'warn', /ignore "include=some\.test"/],
  ['v=spf1 ip4:192.0.2.1 exp=some.test -all', 'ok', /follow/],
  [`v=spf1 ip4:192.0.2.1 -all include:${'a.'.repeat(100)}test`, 'warn', /ignore "include:[a.]{52}" in/],
  ['v=spf1 a:six.test -all', 'ok', /follow/],
  ['v=spf1 mx:dead.test -all', 'fail', /authorizes no server/],
  ['v=spf1 mx:null.test -all', 'fail', /authorizes no server/],
  ['v=spf1 -ip4:192.0.2.1 ~all', 'fail', /authorizes no server/],
  ['v=spf1 ?include:some.test -all', 'fail', /authorizes no server/],
  ['v=spf1 include:none.test -all', 'fail', /authorizes no server/],
  ['v=spf1 redirect=none.test', 'fail', /authorizes no server/],
  ['v=spf1 a mx -all', 'fail', /authorizes no server/],
  ['v=spf1 exists:x.test -all', 'fail', /authorizes no server/],
  ['v=spf1 include:some.test -all', 'ok', /follow/],
  ['v=spf1 redirect=some.test', 'ok', /follow/],
  ['v=spf1 mx:mail.test -all', 'ok', /follow/],
  ['v=spf1 a:a.mail.test -all', 'ok', /follow/],
  ['v=spf1 exists:a.mail.test -all', 'warn', /every server/],
  ['v=spf1 ptr ~all', 'warn', /"ptr"/],
  ['v=spf1 include:pointer.test -all', 'ok', /follow/],
  ['v=spf1 ptr:mail.test ip4:192.0.2.1 -all', 'warn', /"ptr"/],
  ['spf1 ip4:192.0.2.1 -all', 'fail', /begin with "v=spf1" and a space\.$/],
  ['"v=spf1 ip4:192.0.2.1 -all"', 'fail', /a space, without quotes and backslashes\.$/],
  ['“v=spf1 mx -all”', 'fail', /without quotes and backslashes/],
  ['v=spf1;mx;-all', 'fail', /begin with/],
  ['v=spf1include:some.test -all', 'fail', /begin with/],
  ['v=spf1\u00a0mx -all', 'fail', /begin with/],
  [' v=spf1 mx -all', 'fail', /begin with/],
  ['v = spf1 mx -all', 'fail', /begin with/],
  ['acme.test. IN TXT v=spf1 mx -all', 'fail', /begin with/],
  ['v=spf2 mx -all', 'fail', /begin with/],
  ['spf2.0/pra mx -all', 'fail', /no SPF record/],
  ['v=DMARC1; p=none', 'fail', /no SPF record/],
] as const)
  test(`${record}: ${result}`, async () => {
    const verdict = toSpfVerdict(await judge(record, anywhere), null)
    assert.match(verdict.message, message)
    assert.equal(verdict.result, result)
  })

test('for a record that allows nobody, the include of the relay is named', async () => {
  const { message } = toSpfVerdict(await judge('v=spf1 -all'), 'relay.test')
  assert.match(message, /add "include:relay\.test" after "v=spf1"/)
})

test('a fault repeats no control characters, and no long text', async () => {
  const { fault } = await judge(`v=spf1 \u001b[31m${'x'.repeat(300)}`)
  assert.ok(fault.length < 100 && !fault.includes('\u001b'), fault)
})
