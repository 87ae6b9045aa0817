/** The check of a domain against zones as people publish them, in a real name server. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { checkDomain } from '../../src/dns/check-domain.ts'
import { ZoneResolver } from '../../src/dns/zone-resolver.ts'
import { formatDkimRecord, quoteRecord } from '../../src/domain/dns/dkim-record.ts'
import { makeSigningKey } from '../../src/store/crypto/signing-key.ts'
import { lacking } from '../support/installed.ts'
import { startNsd } from '../support/nsd.ts'
import { newRing } from '../support/service.ts'

const skip = lacking('nsd')
const made = await makeSigningKey(newRing(), { domain: 'a.internal', selector: 'p1', algorithm: 'rsa' })
const dkim = formatDkimRecord('rsa', made.publicKey)
const key = { ...made, state: 'active' } as const

const txt = (name: string, text: string) => `${name} TXT ${quoteRecord(text.replaceAll(/["\\]/g, '\\$&'))}`
const spf = (text: string) => txt('@', text)
const dmarc = (text: string) => txt('_dmarc', text)
const goodSpf = spf('v=spf1 ip4:192.0.2.1 -all')
const goodDmarc = dmarc('v=DMARC1; p=reject; rua=mailto:d@b.test')
const goodKey = txt('p1._domainkey', dkim)
const goodMx = ['@ MX 10 mail', 'mail A 192.0.2.1']

type Expected = Readonly<Partial<Record<'dkim' | 'spf' | 'dmarc' | 'alignment' | 'mx', RegExp>>>
type Zone = readonly [what: string, records: readonly string[], expected: Expected]

/** Each expression is for "RESULT MESSAGE"; a line that has none is `ok`. Some zones are for no key. */
const spfZones: readonly Zone[] = (
  [
    ['parked', 'v=spf1 -all', /^fail .*authorizes no server/],
    ['a soft nothing', 'v=spf1 ~all', /^fail .*authorizes no server/],
    ['only the version', 'v=spf1', /^fail .*authorizes no server/],
    ['terms behind the end', 'v=spf1 -all ip4:192.0.2.1', /^fail .*authorizes no server/],
    ['servers that are refused', 'v=spf1 -ip4:192.0.2.1 -all', /^fail .*authorizes no server/],
    ['a server without an address', 'v=spf1 a:gone.z.internal -all', /^fail .*authorizes no server/],
    ['without v=', 'spf1 ip4:192.0.2.1 -all', /^fail .*begin with "v=spf1"/],
    ['in quotes', '"v=spf1 ip4:192.0.2.1 -all"', /^fail .*without quotes/],
    ['in curly quotes', '“v=spf1 ip4:192.0.2.1 -all”', /^fail .*without quotes/],
    ['with semicolons', 'v=spf1;ip4:192.0.2.1;-all', /^fail .*begin with/],
    ['with spaces around =', 'v = spf1 ip4:192.0.2.1 -all', /^fail .*begin with/],
    ['with a space in front', ' v=spf1 ip4:192.0.2.1 -all', /^fail .*begin with/],
    ['with its name in front', 'z.internal. TXT v=spf1 ip4:192.0.2.1 -all', /^fail .*begin with/],
    ['another version', 'v=spf2 ip4:192.0.2.1 -all', /^fail .*begin with/],
    ['joined without a space', 'v=spf1 include:a.internalinclude:b.internal -all', /^fail /],
    ['with ptr', 'v=spf1 ptr ip4:192.0.2.1 -all', /^warn .*"ptr"/],
    ['everybody', 'v=spf1 +all', /^warn .*every server/],
    ['everybody, in two halves', 'v=spf1 ip4:0.0.0.0/1 ip4:128.0.0.0/1 -all', /^ok /],
    ['no end', 'v=spf1 ip4:192.0.2.1', /^warn .*about other servers/],
    ['in capitals', 'V=SPF1 IP4:192.0.2.1 -ALL', /^ok /],
  ] as const
).map(([what, text, expected]) => [`SPF ${what}`, [spf(text), goodDmarc, goodKey, ...goodMx], { spf: expected }])

const noKey = (what: string, text: string | null, alignment: RegExp, spfLine: RegExp): Zone => [
  `no key, SPF ${what}`,
  [...(text === null ? [] : [spf(text)]), goodDmarc, ...goodMx],
  { alignment, spf: spfLine },
]

const dmarcZones: readonly Zone[] = (
  [
    ['without a semicolon', 'v=DMARC1 p=reject', /^fail .*begin with "v=DMARC1;"/],
    ['in another order', 'p=reject; v=DMARC1', /^fail .*begin with/],
    ['in small letters', 'v=dmarc1; p=reject', /^fail .*begin with/],
    ['without v=', 'DMARC1; p=reject', /^fail .*begin with/],
    ['only the policy', 'p=reject', /^fail .*begin with/],
    ['in quotes', '"v=DMARC1; p=reject"', /^fail .*without quotes/],
    ['with backslashes', 'v=DMARC1\\; p=reject\\; rua=mailto:d@b.test', /^fail .*without quotes/],
    ['with its name in front', '_dmarc TXT v=DMARC1; p=reject', /^fail .*begin with/],
    ['with colons for =', 'v:DMARC1; p:reject', /^fail .*begin with/],
    ['with an unknown policy', 'v=DMARC1; p=block', /^fail .*"p="/],
    ['without reports', 'v=DMARC1; p=reject', /^warn .*"rua="/],
    ['with a bare address', 'v=DMARC1; p=none; rua=d@b.test', /^warn .*mailto:/],
    ['of a wildcard for SPF', 'v=spf1 -all', /^warn .*no DMARC record/],
    ['with spaces', 'v=DMARC1 ; p = none ; rua = mailto:d@b.test ;', /^ok /],
  ] as const
).map(([what, text, expected]) => [`DMARC ${what}`, [goodSpf, dmarc(text), goodKey, ...goodMx], { dmarc: expected }])

const mxZones: readonly Zone[] = (
  [
    ['to nowhere', ['@ MX 10 gone'], /^fail .*gone\.z\d+\.internal, which has no address/],
    ['to an address', ['@ MX 10 192.0.2.1.'], /^fail .*must contain a host name/],
    ['to this machine', ['@ MX 10 self', 'self A 127.0.0.1'], /^fail .*other machines cannot/],
    ['to this machine by IPv6', ['@ MX 10 self', 'self AAAA ::1'], /^fail .*other machines cannot/],
    ['to no address', ['@ MX 10 zero', 'zero A 0.0.0.0'], /^fail .*other machines cannot/],
    ['to a private network', ['@ MX 10 inner', 'inner A 192.168.7.7'], /^warn .*private network/],
    ['to an alias', ['@ MX 10 alias', 'alias CNAME mail', 'mail A 192.0.2.1'], /^warn .*CNAME/],
    ['to an alias of nothing', ['@ MX 10 alias', 'alias CNAME gone'], /^fail .*no address/],
    ['null', ['@ MX 0 .'], /^fail .*null MX/],
    ['null beside another', ['@ MX 0 .', ...goodMx], /^fail .*null MX/],
    ['one of two to nowhere', ['@ MX 5 gone', ...goodMx], /^warn .*gone/],
    ['by IPv6 alone', ['@ MX 10 six', 'six AAAA 2001:db8::1'], /^ok /],
    ['none, with an address', ['@ A 192.0.2.1'], /^ok /],
    ['none, with an address of this machine', ['@ A 127.0.0.1'], /^fail .*other machines cannot/],
    ['none', [], /^fail .*no MX and no address/],
  ] as const
).map(([what, records, mx]) => [`MX ${what}`, [goodSpf, goodDmarc, goodKey, ...records], { mx }])

const dkimZones: readonly Zone[] = (
  [
    ['in quotes', `"${dkim}"`, /^fail .*not a DKIM record/],
    ['cut short', dkim.slice(0, 255), /^fail .*only \d+ of the \d+ characters/],
    ['in small letters', `v=DKIM1; k=rsa; p=${made.publicKey.toLowerCase()}`, /^fail .*upper and lower case/],
    ['of another key', `v=DKIM1; k=rsa; p=${made.publicKey.replace('MIIB', 'MIIC')}`, /^fail .*another key/],
    ['with spaces in the key', dkim.replace('p=MIIB', 'p=MI IB'), /^ok /],
    ['revoked', 'v=DKIM1; p=', /^fail .*revokes/],
    ['that tests', `${dkim}; t=y`, /^warn .*"t=y"/],
  ] as const
).map(([what, text, line]) => [
  `DKIM ${what}`,
  [goodSpf, goodDmarc, txt('p1._domainkey', text), ...goodMx],
  { dkim: line, ...(/^\^fail/.test(line.source) && { alignment: /^warn .*Only SPF/ }) },
])

/** The zone's name is added to the names; `z` stands for it. */
const doubled: readonly Zone[] = [
  [
    'DKIM at a name with the domain twice',
    [goodSpf, goodDmarc, txt('p1._domainkey.z.internal', dkim), ...goodMx],
    { dkim: /^fail .*There is one at p1\._domainkey\.z\d+\.internal\.z\d+\.internal/, alignment: /^warn / },
  ],
  [
    'DMARC at a name with the domain twice',
    [goodSpf, txt('_dmarc.z.internal', 'v=DMARC1; p=none; rua=mailto:d@b.test'), goodKey, ...goodMx],
    { dmarc: /^warn .*There is one at _dmarc\.z\d+\.internal\.z\d+\.internal: your provider adds/ },
  ],
  [
    'SPF at a name with the domain twice',
    [txt('z.internal', 'v=spf1 ip4:192.0.2.1 -all'), goodDmarc, goodKey, ...goodMx],
    { spf: /^fail .*There is one at z\d+\.internal\.z\d+\.internal/ },
  ],
  [
    'MX at a name with the domain twice',
    [goodSpf, goodDmarc, goodKey, 'z.internal MX 10 mail', 'mail A 192.0.2.1'],
    { mx: /^fail .*There is one at z\d+\.internal\.z\d+\.internal/ },
  ],
]

const all: readonly Zone[] = [
  ['everything right', [goodSpf, goodDmarc, goodKey, ...goodMx], {}],
  ...spfZones,
  noKey('parked', 'v=spf1 -all', /^fail .*fix the SPF record/, /^fail /),
  noKey('absent', null, /^fail .*fix the SPF record/, /^fail .*no SPF record/),
  noKey('without v=', 'spf1 ip4:192.0.2.1 -all', /^fail .*fix the SPF record/, /^fail /),
  noKey('in quotes', '"v=spf1 ip4:192.0.2.1 -all"', /^fail .*fix the SPF record/, /^fail /),
  noKey('broken', 'v=spf1 ipv4:192.0.2.1 -all', /^fail .*fix the SPF record/, /^fail /),
  noKey('right', 'v=spf1 ip4:192.0.2.1 -all', /^warn .*forwarding breaks SPF/, /^ok /),
  ...dmarcZones,
  ...mxZones,
  ...dkimZones,
  ...doubled,
]
const zoneOf = (n: number) => `z${n}.internal`
const zones = Object.fromEntries(
  all.map(([, records], n) => [zoneOf(n), records.map((record) => record.replaceAll('z.internal', zoneOf(n)))]),
)
const server = skip === false ? await startNsd({ after }, { internal: [], ...zones }) : { server: '' }

for (const [n, [what, , expected]] of all.entries())
  test(what, { skip }, async () => {
    const { lookup } = new ZoneResolver({ servers: [server.server] })
    const keys = what.startsWith('no key') ? [] : [key]
    const domain = zoneOf(n)
    const subject = { domain, envelopeDomain: domain, bounceDomain: domain, keys, include: null }
    const lines = await checkDomain(subject, lookup)
    for (const { check, found, message, publish, result } of lines) {
      const line = check === 'bounce_domain' || check === 'link_domain' ? 'mx' : check
      const shown = `${result} ${message}`
      assert.match(shown, expected[line] ?? /^ok /, check)
      // A second record beside one that is broken would make things worse.
      if (check !== 'dkim' && found !== null) assert.equal(publish, null, shown)
    }
  })
