/** The check of a domain against a real name server, and beside other judges of SPF and DKIM. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { checkDomain, type DomainSubject } from '../../src/dns/check-domain.ts'
import { ZoneResolver, type ZoneResolverOptions } from '../../src/dns/zone-resolver.ts'
import { formatDkimRecord, quoteRecord } from '../../src/domain/dns/dkim-record.ts'
import { judgeSpf } from '../../src/domain/dns/spf.ts'
import { makeSigningKey, openSigningKey } from '../../src/store/crypto/signing-key.ts'
import { startNameServer } from '../support/dns-server.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { ask, newManagementToken } from '../support/management.ts'
import { startNsd } from '../support/nsd.ts'
import { operator } from '../support/operator.ts'
import { freePort } from '../support/ports.ts'
import { newRing, newSender, startTestService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary.ts'

const skip = lacking('nsd')
const ring = newRing()
const made = await makeSigningKey(ring, { domain: 'good.internal', selector: 'p1', algorithm: 'rsa' })
const record = quoteRecord(formatDkimRecord('rsa', made.publicKey))
const key = { ...made, state: 'active' } as const

const good = [
  'p2._domainkey CNAME p2._domainkey.other.internal.',
  `p1._domainkey TXT ${record}`,
  '@ TXT "v=spf1 ip4:192.0.2.1 -all"',
  '_dmarc TXT "v=DMARC1; p=reject; rua=mailto:d@good.internal"',
  '@ MX 10 mail',
  'mail A 192.0.2.1',
]
const spfs: Readonly<Record<string, readonly string[]>> = {
  good: ['"v=spf1 ip4:192.0.2.1 -all"'],
  soft: ['"v=spf1 " "ip4:192.0.2.1 ~all"'],
  neutral: ['"v=spf1 a:ns.faults.internal ?all"'],
  all: ['"v=spf1 +all"'],
  two: ['"v=spf1 -all"', '"v=spf1 ~all"'],
  syntax: ['"v=spf1 ipv4:192.0.2.1 -all"'],
  network: ['"v=spf1 ip4:192.0.2.1/33 -all"'],
  missing: ['"v=spf1 include:nothing.faults.internal -all"'],
  loop: ['"v=spf1 include:loop.faults.internal -all"'],
  redirect: ['"v=spf1 redirect=good.faults.internal"'],
  lost: ['"v=spf1 redirect=nothing.faults.internal"'],
  many: [quoteRecord(`v=spf1 ${'include:good.faults.internal '.repeat(11)}-all`)],
  ten: [quoteRecord(`v=spf1 ${'include:good.faults.internal '.repeat(10)}-all`)],
  open: ['"v=spf1 include:all.faults.internal -all"'],
  network0: ['"v=spf1 ip4:0.0.0.0/0 -all"'],
  exists: ['"v=spf1 exists:ns.faults.internal -all"'],
  absent: ['"v=spf1 exists:x.faults.internal a:x.faults.internal -all"'],
  modifier: ['"v=spf1 include=all.faults.internal all=1 ~all"'],
  zeros: ['"v=spf1 ip4:192.0.2.1/024 -all"'],
  digits: ['"v=spf1 a:1.2.3.4 -all"'],
  redirects: ['"v=spf1 redirect=good.faults.internal redirect=good.faults.internal"'],
  explained: ['"v=spf1 exp=good.faults.internal -all"'],
  circle: ['"v=spf1 include:circle2.faults.internal -all"'],
  circle2: ['"v=spf1 redirect=circle.faults.internal"'],
  nested: ['"v=spf1 include:soft.faults.internal include:neutral.faults.internal ?all"'],
  parked: ['"v=spf1 -all"'],
  only: ['"v=spf1"'],
  behind: ['"v=spf1 -all ip4:198.51.100.9"'],
  pointer: ['"v=spf1 ptr ~all"'],
  unquoted: ['"\\"v=spf1 ip4:198.51.100.9 -all\\""'],
  nameless: ['"spf1 ip4:198.51.100.9 -all"'],
  voids: ['"v=spf1 a:x.faults.internal a:y.faults.internal a:z.faults.internal -all"'],
}
const long = Array.from({ length: 12 }, (_, n) => `big TXT "${'x'.repeat(200)}${n}"`)
const deep = 'a.b.c.d.e.f.g.h.i.j.faults.internal'
const faults = [
  ...Object.entries(spfs).flatMap(([name, texts]) => texts.map((text) => `${name} TXT ${text}`)),
  `p1._domainkey TXT ${record}`,
  `p1._domainkey TXT ${record}`.replace('p=MIIB', 'p=MIIC'),
  'p1._domainkey.revoked TXT "v=DKIM1; p="',
  'p1._domainkey.alias CNAME p1._domainkey.good.internal.',
  '@ MX 0 .',
  ...long,
  'big TXT "v=spf1 ip4:192.0.2.1 -all"',
  'big MX 10 mail',
  'mail A 192.0.2.1',
  '_dmarc TXT "v=DMARC1; p=none; rua=mailto:d@faults.internal; psd=n"',
  '_dmarc.suffix TXT "v=DMARC1; p=reject; rua=mailto:d@faults.internal; psd=y"',
  ...Array.from({ length: 201 }, (_, n) => `crowd TXT "${n}"`),
  `endless TXT ${quoteRecord('x'.repeat(4097))}`,
  'bounce.org.suffix TXT "v=spf1 ip4:192.0.2.1 -all"',
  'other.suffix TXT "v=spf1 ip4:192.0.2.1 -all"',
  '_dmarc.two TXT "v=DMARC1; p=none"',
  '_dmarc.two TXT "v=DMARC1; p=reject"',
  `${deep.replace('.faults.internal', '')} MX 10 mail`,
]
// Above all of them, where a walk ends.
const zones = { internal: [], 'good.internal': good, 'faults.internal': faults }
const server = skip === false ? await startNsd({ after }, zones) : { server: '', port: 0 }

async function check(domain: string, change: Partial<DomainSubject> = {}, options: Partial<ZoneResolverOptions> = {}) {
  const { lookup } = new ZoneResolver({ servers: [server.server], ...options })
  const subject = { domain, envelopeDomain: domain, bounceDomain: null, keys: [], include: null, ...change }
  const lines = await checkDomain(subject, lookup)
  return Object.fromEntries(lines.map((line) => [line.check, line]))
}
const results = (lines: Awaited<ReturnType<typeof check>>) =>
  Object.fromEntries(Object.entries(lines).map(([name, { result }]) => [name, result]))

test('a domain that has everything has no fault; each absence has its own', { skip }, async () => {
  const bounce = { bounceDomain: 'good.internal' }
  assert.deepEqual(results(await check('good.internal', { keys: [key], ...bounce })), {
    ...{ dkim: 'ok', spf: 'ok', dmarc: 'ok', alignment: 'ok', mx: 'ok', bounce_domain: 'ok' },
  })
  const absent = await check('nothing.elsewhere', { keys: [key], bounceDomain: 'nothing.elsewhere' })
  // nsd refuses zones that it does not have.
  assert.deepEqual(new Set(Object.values(results(absent))), new Set(['unknown']))
  const below = await check('nothing.good.internal', { keys: [key], bounceDomain: 'nothing.good.internal' })
  assert.deepEqual(results(below), {
    ...{ dkim: 'fail', spf: 'fail', dmarc: 'ok', alignment: 'fail', mx: 'fail', bounce_domain: 'fail' },
  })
  assert.equal(below.dkim?.publish?.value, formatDkimRecord('rsa', made.publicKey))
  assert.equal(below.dmarc?.name, '_dmarc.good.internal')
})

test('faults of records are found: two, revoked, an alias, a null MX, answers by TCP', { skip }, async () => {
  const top = await check('faults.internal', { keys: [key] })
  assert.deepEqual([top.dkim?.result, top.mx?.result], ['fail', 'fail'])
  assert.match(top.dkim?.message ?? '', /several records/)
  assert.match(top.mx?.message ?? '', /null MX/)
  const revoked = await check('revoked.faults.internal', { keys: [key] })
  assert.match(revoked.dkim?.message ?? '', /revokes/)
  assert.equal((await check('alias.faults.internal', { keys: [key] })).dkim?.result, 'ok')
  const big = await check('big.faults.internal')
  assert.deepEqual([big.spf?.result, big.mx?.result], ['ok', 'ok'])
  assert.equal((await check('two.faults.internal')).dmarc?.result, 'fail')
  const bounce = await check('good.internal', { envelopeDomain: 'big.faults.internal' })
  assert.equal(bounce.alignment?.result, 'fail')
  const theirs = await check('good.internal', { envelopeDomain: null })
  assert.deepEqual([theirs.alignment?.result, theirs.spf], ['warn', undefined])
})

test('DMARC is found above names of 3, 8 and 12 labels, up to where psd=n ends it', { skip }, async () => {
  for (const domain of ['soft.faults.internal', 'e.f.g.h.i.j.faults.internal', deep]) {
    const { dmarc } = await check(domain)
    assert.deepEqual([dmarc?.result, dmarc?.name], ['ok', '_dmarc.faults.internal'], domain)
  }
})

test('psd=y ends an organisation: the name below it', { skip }, async () => {
  const alignment = async (envelopeDomain: string) => {
    const lines = await check('a.org.suffix.faults.internal', { envelopeDomain })
    assert.equal(lines.dmarc?.name, '_dmarc.suffix.faults.internal')
    return lines.alignment?.result
  }
  assert.equal(await alignment('bounce.org.suffix.faults.internal'), 'warn')
  assert.equal(await alignment('other.suffix.faults.internal'), 'fail')
})

test('answers of more than 200 records or 4 KiB a record are not judged', { skip }, async () => {
  for (const name of ['crowd', 'endless']) {
    const { lookup } = new ZoneResolver({ servers: [server.server] })
    const answer = await lookup(`${name}.faults.internal`, 'TXT')
    assert.deepEqual(answer, { kind: 'unknown', reason: 'the answer is too large' })
  }
})

test('a record that was added a minute ago is seen: the servers of the zone are asked first', {
  skip,
}, async (t) => {
  const own = await startNsd(t, { 'good.internal': good })
  const stale = await startNsd(t, {
    internal: [],
    'good.internal': ['_dmarc TXT "v=DMARC1; p=none"'],
    'other.internal': [`p2._domainkey TXT ${record}`],
  })
  const options = { servers: null, general: [stale.server], mayAsk: () => true, zonePort: own.port }
  const fresh = await check('good.internal', { keys: [key] }, options)
  assert.deepEqual(results(fresh), { ...{ dkim: 'ok', spf: 'ok', dmarc: 'ok', alignment: 'ok', mx: 'ok' } })
  const { dkim } = await check('good.internal', { keys: [{ ...key, selector: 'p2' }] }, options)
  assert.equal(dkim?.result, 'ok', 'an alias leads to the servers of another zone')
  const cached = await check('good.internal', { keys: [key] }, { ...options, zonePort: 1 })
  assert.equal(cached.dkim?.result, 'fail', 'the resolver of the machine, where they are out of reach')
  const { mayAsk: _, ...inner } = options
  const inside = await check('good.internal', { keys: [key] }, inner)
  assert.equal(inside.dkim?.result, 'fail', 'a zone cannot have this machine’s own network asked')
})

test('a key is activated once its record is in DNS, and not before', { skip }, async (t) => {
  const from = { name: 'Acme', address: 'auth@good.internal' }
  const service = await startTestService(t, { dnsServers: [server.server], settings: { from } })
  const token = await newManagementToken(service)
  const keys = '/v1/apps/acme/domain/keys'
  const added = await ask(service, `POST ${keys}`, { token, body: {} })
  const early = await ask(service, `POST ${keys}/${added.body.selector}/activate`, { token, body: {} })
  assert.equal(early.body.error.code, 'record_missing')
  assert.match(early.body.error.message, /was not activated, because mail would be refused\. .* publish it\./)
  await service.store.addSigningKey({ ...made, app: service.app.id }, operator)
  const activated = await ask(service, `POST ${keys}/p1/activate`, { token, body: {} })
  assert.deepEqual([activated.status, activated.body.state], [200, 'active'])
})

test('a domain is proved by a record that names the app, at its own name, and for no other app', {
  skip,
}, async (t) => {
  const port = await freePort()
  const service = await startTestService(t, { dnsServers: [`127.0.0.1:${port}`] })
  const other = await newSender(service, 'other')
  const id = service.app.id
  const zone = {
    'proof.dev': [
      `_postern TXT "v=something" `,
      `_postern TXT "postern-app=${id}"`,
      `_postern.sub TXT "x postern-app=${id}"`,
      `_postern.split TXT "postern-app=" "${id}"`,
      `_postern.alias CNAME _postern`,
      `*.wild TXT "postern-app=app_00000000000000000000000000"`,
    ],
  }
  await startNsd(t, zone, undefined, port)
  const token = await newManagementToken(service)
  const prove = async (domain: string, app = id as string) => {
    const answer = await ask(service, `POST /v1/apps/${app}/domain/prove`, { token, body: { domain } })
    return answer.status === 200 ? 'ok' : answer.body.error.code
  }
  assert.equal(await prove('proof.dev'), 'ok')
  assert.equal(await prove('PROOF.dev'), 'ok')
  assert.equal(await prove('split.proof.dev'), 'ok', 'one record in two strings')
  for (const domain of [
    'alias.proof.dev', // the owner of an alias's target is another one
    'sub.proof.dev',
    'deep.proof.dev',
    'a.wild.proof.dev',
    'no.such.test',
  ])
    assert.equal(await prove(domain), 'record_missing', domain)
  assert.equal(await prove('proof.dev', other.app.id), 'record_missing')
  const { senderDomains } = (await service.store.findApp(id))?.settings ?? {}
  assert.deepEqual(senderDomains, ['acme.test', 'proof.dev', 'split.proof.dev'])
})

for (const fault of ['SERVFAIL', 'silence'] as const)
  test(`servers that answer with ${fault}: at most 60 queries, an end in time, and no verdict`, async (t) => {
    const faulty = await startNameServer(t, fault)
    const keys = Array.from({ length: 10 }, (_, n) => ({ ...key, selector: `p${n}` }))
    const change = { keys, bounceDomain: 'b.deep.test', envelopeDomain: '1.2.3.4.5.6.7.8.9.test' }
    const lines = await check('a.b.c.d.e.f.g.h.i.test', change, { servers: [faulty.server], withinMs: 300 })
    assert.deepEqual(new Set(Object.values(results(lines))), new Set(['unknown']))
    assert.ok(faulty.count() > 0 && faulty.count() <= 60, String(faulty.count()))
    if (fault === 'silence') assert.match(lines.mx?.message ?? '', /no time is left/)
  })

test('a check ends with its time, whatever a query waits for, and asks nothing after it', {
  timeout: 30_000,
}, async (t) => {
  const silent = await startNameServer(t, 'silence')
  const options = { servers: [silent.server], withinMs: 300, timeoutMs: 120_000 }
  const { lookup } = new ZoneResolver(options)
  const late = { kind: 'unknown', reason: 'no time is left' }
  assert.deepEqual(await lookup('a.test', 'TXT'), late)
  assert.deepEqual(await lookup('b.test', 'TXT'), late)
  assert.equal(silent.count(), 1)
})

test('one check asks 100 times at most', async (t) => {
  const faulty = await startNameServer(t, 'SERVFAIL')
  const { lookup } = new ZoneResolver({ servers: [faulty.server] })
  const answers = await Promise.all(Array.from({ length: 140 }, (_, n) => lookup(`n${n}.test`, 'TXT')))
  assert.equal(faulty.count(), 100)
  assert.deepEqual(answers[100], { kind: 'unknown', reason: 'too many queries' })
})

test('three silent resolvers get no more queries than one; a lost query is asked again', async (t) => {
  const silent = await Promise.all([1, 2, 3].map(() => startNameServer(t, 'silence')))
  const { lookup } = new ZoneResolver({ servers: silent.map(({ server }) => server), timeoutMs: 100 })
  await Promise.all(Array.from({ length: 70 }, (_, n) => lookup(`n${n}.test`, 'TXT')))
  assert.deepEqual(
    silent.map(({ count }) => count()),
    [70, 30, 0],
  )
  const lossy = await startNameServer(t, 'loss')
  const patient = new ZoneResolver({ servers: [lossy.server], timeoutMs: 100 })
  assert.deepEqual(await patient.lookup('a.test', 'TXT'), { kind: 'absent' })
})

test('no name makes a look-up fail with an exception', async (t) => {
  const { server: general } = await startNameServer(t, 'SERVFAIL')
  const long = `${'a.'.repeat(200)}test`
  for (const name of ['', '.', 'a..test', 'x'.repeat(300), long, 'a\0.test', 'ü.test', '\ud800.test', 'a b.test'])
    for (const servers of [[general], null]) {
      const { lookup } = new ZoneResolver({ servers, general: [general] })
      assert.equal((await lookup(name, 'MX')).kind, 'unknown', name)
    }
})

test('a record with ten includes of ten zones is judged, beside ten keys', { skip }, async (t) => {
  const names = Array.from({ length: 10 }, (_, n) => `i${n}.internal`)
  const includes = names.map((name) => `include:${name}`).join(' ')
  const own = await startNsd(t, {
    internal: [],
    ...Object.fromEntries(names.map((name) => [name, ['@ TXT "v=spf1 ip4:192.0.2.1 -all"']])),
    'ten.internal': ['@ MX 10 mail', 'mail A 192.0.2.1', `bounce TXT ${quoteRecord(`v=spf1 ${includes} -all`)}`],
  })
  const keys = names.map((_, n) => ({ ...key, selector: `p${n}` }))
  const change = { keys, envelopeDomain: 'bounce.ten.internal', bounceDomain: 'bounce.ten.internal' }
  const options = { servers: null, general: [own.server], mayAsk: () => true, zonePort: own.port }
  assert.deepEqual(results(await check('ten.internal', change, options)), {
    ...{ dkim: 'fail', spf: 'ok', dmarc: 'warn', alignment: 'warn', mx: 'ok', bounce_domain: 'fail' },
  })
})

/** Runs a program whose resolver is nsd. */
function runWithNsd(folder: string, args: readonly string[]): string {
  const resolv = join(folder, 'resolv.conf')
  writeFileSync(resolv, 'nameserver 127.0.0.77\n')
  const script = `mount --bind ${resolv} /etc/resolv.conf && exec "$@"`
  try {
    return execFileSync(toolPath('unshare'), ['-m', 'sh', '-c', script, 'sh', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  } catch (error) {
    const { stderr, stdout } = error as { readonly stdout?: string; readonly stderr?: string }
    return `${stdout}${stderr}`
  }
}

test('two other judges of SPF agree on every zone', {
  skip: lacking('nsd', 'spfquery', 'pyspf', 'unshare'),
}, async (t) => {
  // The judges ask for the name of the sender's address, for `ptr`.
  const own = await startNsd(t, { ...zones, '100.51.198.in-addr.arpa': [] }, '127.0.0.77')
  const folder = temporaryFolder(t)
  const sender = '198.51.100.9'
  const program = `import spf,sys
for d in sys.argv[1:]: print(spf.check2(i='${sender}', s='x@'+d, h='h.test')[0])`
  const domains = Object.keys(spfs).map((name) => `${name}.faults.internal`)
  const python = runWithNsd(folder, [toolPath('python3'), '-c', program, ...domains])
    .trim()
    .split('\n')
  for (const [n, domain] of domains.entries()) {
    const { lookup } = new ZoneResolver({ servers: [own.server] })
    const { result } = await judgeSpf(domain, lookup)
    const perl = runWithNsd(folder, [
      toolPath('spfquery'),
      '--scope',
      'mfrom',
      '--identity',
      `x@${domain}`,
      '--ip-address',
      sender,
    ])
    assert.deepEqual([python[n], perl.split('\n')[0]], [result, result], domain)
  }
})

test('opendkim-testkey reads the record, and finds that the key is its own', {
  skip: lacking('nsd', 'opendkim-testkey', 'unshare'),
}, async (t) => {
  await startNsd(t, zones, '127.0.0.77')
  const folder = temporaryFolder(t)
  const file = join(folder, 'key.pem')
  writeFileSync(file, openSigningKey(ring, made).export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  const config = join(folder, 'opendkim.conf')
  writeFileSync(config, 'Nameservers 127.0.0.77\n')
  const run = (selector: string, domain: string) =>
    runWithNsd(folder, [toolPath('opendkim-testkey'), '-vvv', '-x', config, '-d', domain, '-s', selector, '-k', file])
  assert.match(run('p1', 'good.internal'), /key OK/)
  assert.doesNotMatch(run('p2', 'good.internal'), /key OK/)
})
