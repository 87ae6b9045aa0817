import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Parsed } from '../parsed.ts'
import { parseAuthLink } from '../request/auth-link.ts'
import { type AllowedUrl, parseAllowedUrl, parseAppScheme } from './allowed-entry.ts'
import { checkLinkAllowed, compareEntries } from './allowed-url.ts'

const must = <T>(result: Parsed<T>): T => {
  assert.ok(result.ok, JSON.stringify(result))
  return result.value
}

function check(raw: string, entries: { urls?: string[]; schemes?: string[]; local?: boolean }): string | null {
  const appSchemes = (entries.schemes ?? []).map((text) => must(parseAppScheme(text)))
  const allowedUrls = (entries.urls ?? []).map((text) => must(parseAllowedUrl(text)))
  const link = must(parseAuthLink(`${raw}?token=x`, new Set(appSchemes.map((entry) => entry.scheme))))
  const difference = checkLinkAllowed(link, {
    allowedUrls,
    appSchemes,
    allowLocalhost: entries.local ?? false,
  })
  return difference === null ? null : `${difference.compared} ${difference.why} ${difference.flag}`
}

function belowAuth(path: string): [string, string, { urls: string[] }, boolean] {
  return [`${path} below a prefix`, `https://a.test/auth/${path}`, { urls: ['https://a.test/auth/*'] }, false]
}

const cases: [string, string, { urls?: string[]; schemes?: string[]; local?: boolean }, boolean][] = [
  ['an origin allows every path', 'https://a.test/x/y', { urls: ['https://a.test'] }, true],
  ['a lone slash allows every path', 'https://a.test/x', { urls: ['https://a.test/'] }, true],
  ['another host', 'https://b.test/x', { urls: ['https://a.test'] }, false],
  ['a host that begins alike', 'https://a.test.evil.com/x', { urls: ['https://a.test'] }, false],
  ['a host that ends alike', 'https://evila.test/x', { urls: ['https://a.test'] }, false],
  ['a subdomain of an exact host', 'https://x.a.test/', { urls: ['https://a.test'] }, false],
  ['another port', 'https://a.test:8443/', { urls: ['https://a.test'] }, false],
  ['the default port, written', 'https://a.test:443/', { urls: ['https://a.test'] }, true],
  ['the default port, in the entry', 'https://a.test/', { urls: ['https://a.test:443'] }, true],
  ['an exact path', 'https://a.test/auth', { urls: ['https://a.test/auth'] }, true],
  ['below an exact path', 'https://a.test/auth/x', { urls: ['https://a.test/auth'] }, false],
  ['an exact path in another case', 'https://a.test/Auth', { urls: ['https://a.test/auth'] }, false],
  ['an exact path with a slash behind it', 'https://a.test/auth/', { urls: ['https://a.test/auth'] }, false],
  ['below a prefix', 'https://a.test/auth/x', { urls: ['https://a.test/auth/*'] }, true],
  ['a prefix itself', 'https://a.test/auth/', { urls: ['https://a.test/auth/*'] }, true],
  ['beside a prefix', 'https://a.test/authority', { urls: ['https://a.test/auth/*'] }, false],
  ['a prefix without its slash', 'https://a.test/auth', { urls: ['https://a.test/auth/*'] }, false],
  ['dot segments out of a prefix', 'https://a.test/auth/../admin', { urls: ['https://a.test/auth/*'] }, false],
  ['dot segments within a prefix', 'https://a.test/auth/x/../y', { urls: ['https://a.test/auth/*'] }, false],
  ['encoded dots in a prefix', 'https://a.test/auth/%2e%2e/admin', { urls: ['https://a.test/auth/*'] }, false],
  ['an encoded slash in a prefix', 'https://a.test/auth/..%2fadmin', { urls: ['https://a.test/auth/*'] }, false],
  ['an encoded backslash in a prefix', 'https://a.test/auth/%5cadmin', { urls: ['https://a.test/auth/*'] }, false],
  ['an encoded backslash inside a prefix', 'https://a.test/auth/x%5Cy', { urls: ['https://a.test/auth/*'] }, false],
  // Servers that drop what follows a semicolon, decode twice or cut at a control character leave the prefix
  // here.
  ...['..;/logout', '..;a=b/logout', '.;/logout', '.;/..;/logout', '..%3b/logout', '..%3B/logout'].map(belowAuth),
  ...['..%00/logout', '..%09/logout', '..%0A/logout', '..%1f/logout', '..%7f/logout', '%252e%252e/x'].map(belowAuth),
  ...['x%252fy', 'x%25y'].map(belowAuth),
  ['a semicolon behind a name', 'https://a.test/auth/v;v=1', { urls: ['https://a.test/auth/*'] }, true],
  ['dots behind a name', 'https://a.test/auth/v..;x', { urls: ['https://a.test/auth/*'] }, true],
  ['an encoded letter', 'https://a.test/auth/%41%20b', { urls: ['https://a.test/auth/*'] }, true],
  ['a folded segment within an origin', 'https://a.test/..;/logout', { urls: ['https://a.test'] }, true],
  ['a double slash in a prefix', 'https://a.test/auth//evil', { urls: ['https://a.test/auth/*'] }, false],
  ['dot segments that resolve to an exact path', 'https://a.test/x/../auth', { urls: ['https://a.test/auth'] }, true],
  ['one label under a wildcard', 'https://x.a.com/', { urls: ['https://*.a.com'] }, true],
  ['two labels under a wildcard', 'https://y.x.a.com/', { urls: ['https://*.a.com'] }, false],
  ['no label under a wildcard', 'https://a.com/', { urls: ['https://*.a.com'] }, false],
  ['a wildcard with another port', 'https://x.a.com:8443/', { urls: ['https://*.a.com'] }, false],
  ['a wildcard with a port', 'https://x.a.com:8443/', { urls: ['https://*.a.com:8443'] }, true],
  ['localhost as an entry', 'http://localhost:3000/x', { urls: ['http://localhost:3000'] }, true],
  ['localhost as an entry, other port', 'http://localhost:3001/x', { urls: ['http://localhost:3000'] }, false],
  ['localhost where it is allowed', 'http://localhost:9/x', { local: true }, true],
  ['127.0.0.1 where localhost is allowed', 'https://127.0.0.1:9/x', { local: true }, true],
  ['localhost where it is not', 'http://localhost:9/x', {}, false],
  ['a scheme alone', 'acme://any/where', { schemes: ['acme'] }, true],
  ['a scheme in another case', 'ACME://any', { schemes: ['acme'] }, true],
  ['a scheme alone, opaque', 'acme:x', { schemes: ['acme'] }, true],
  ['a scheme with authority', 'acme://auth', { schemes: ['acme://auth'] }, true],
  ['a scheme with authority and any path', 'acme://auth/x', { schemes: ['acme://auth'] }, true],
  ['a scheme with another authority', 'acme://evil', { schemes: ['acme://auth'] }, false],
  ['an authority in another case', 'acme://AUTH', { schemes: ['acme://auth'] }, false],
  ['an authority in its own case', 'acme://Login', { schemes: ['acme://Login'] }, true],
  ['a scheme with a lone slash', 'acme://auth', { schemes: ['acme://auth/'] }, true],
  ['an authority that begins alike', 'acme://auth.evil', { schemes: ['acme://auth'] }, false],
  ['a scheme with path', 'acme://auth/magic', { schemes: ['acme://auth/magic'] }, true],
  ['a scheme with another path', 'acme://auth/other', { schemes: ['acme://auth/magic'] }, false],
  ['a scheme with a prefix', 'acme://auth/m/x', { schemes: ['acme://auth/m/*'] }, true],
  ['dot segments under a scheme', 'acme://auth/m/../x', { schemes: ['acme://auth/m/*'] }, false],
]

for (const [name, raw, entries, allowed] of cases) {
  test(`${name}: ${allowed ? 'allowed' : 'refused'}`, () => {
    const difference = check(raw, entries)
    assert.equal(difference === null, allowed, difference ?? 'was allowed')
  })
}

test('a refusal names origin and path, never the query', () => {
  const difference = check('https://b.test/x', { urls: ['https://a.test'] })
  assert.match(difference ?? '', /https:\/\/b\.test.*\/x.*no allowed entry/)
  assert.doesNotMatch(difference ?? '', /token/)
})

for (const [what, raw, entries, expected] of [
  ['another origin', 'https://b.test/x', { urls: ['https://a.test'] }, "--allow-url 'https://b.test'"],
  ['another path', 'https://a.test/x/y', { urls: ['https://a.test/z'] }, "--allow-url 'https://a.test/x/y'"],
  ['another scheme', 'acme://b/x', { schemes: ['acme://a'] }, "--app-scheme 'acme://b'"],
  ['another path of a scheme', 'acme:x', { schemes: ['acme:y'] }, "--app-scheme 'acme:x'"],
  ['localhost', 'http://localhost:3000/x', {}, '--allow-localhost'],
] as [string, string, Parameters<typeof check>[1], string][]) {
  test(`a refusal for ${what} names the flag that would allow it`, () => {
    assert.ok(check(raw, entries)?.endsWith(expected), check(raw, entries) ?? 'allowed')
  })
}

test('a refusal shortens path segments that may hold a token', () => {
  const long = 'a'.repeat(21)
  const entries = { urls: ['https://a.test/z'] }
  const difference = check(`https://a.test/reset/${long}/${'b'.repeat(20)}`, entries) ?? ''
  assert.match(difference, /path \/reset\/…\/b{20}: /)
  assert.ok(!difference.includes(long))
  assert.ok(difference.endsWith('--allow-url'))
})

for (const entry of [
  'a.test',
  'https://',
  'https://a.test?x',
  'https://a.test#x',
  'https://u@a.test',
  'http://a.test',
  'ftp://a.test',
  'https://a.test/x*',
  'https://a.*.test',
  'https://*',
  'https://*.com',
  'https://*.co.uk',
  'https://*.vercel.app',
  'https://*.github.io',
  'https://*.localhost',
  'https://*.1.2.3.4',
  'https://a.test/../x',
  'https://a.test//x',
  'https://a.test/%2e',
  'https://a..test',
  'https://a.test.',
]) {
  test(`the entry ${entry} is refused`, () => assert.equal(parseAllowedUrl(entry).ok, false))
}

for (const scheme of [
  'http',
  'https',
  'javascript',
  'data',
  'file',
  'intent',
  'mailto',
  'tel',
  'sms',
  'ws',
  '1acme',
  'ac me',
  'acme://a?x',
  'acme://a#x',
  '',
]) {
  test(`the app scheme "${scheme}" is refused`, () => assert.equal(parseAppScheme(scheme).ok, false))
}

test('an entry has at most 2,000 characters, and a longer one is shown shortened', () => {
  for (const [parse, begin] of [
    [parseAllowedUrl, 'https://a.test/'],
    [parseAppScheme, 'acme://'],
  ] as const) {
    assert.ok(parse(`${begin}${'x'.repeat(2000 - begin.length)}`).ok)
    const refused = parse(`${begin}${'x'.repeat(2001 - begin.length)}`)
    assert.ok(!refused.ok)
    assert.equal(refused.issues[0]?.code, 'too_long')
    assert.ok((refused.issues[0]?.message ?? '').length < 300)
  }
})

test('a command that is shown quotes a path for the shell', () => {
  const shown = check("https://a.test/a';id;'/b", { urls: ['https://a.test/auth'] })
  assert.ok(shown?.endsWith(`--allow-url 'https://a.test/a'\\'';id;'\\''/b'`), shown ?? '')
})

test('entries are kept in their normal form', () => {
  assert.equal(must(parseAllowedUrl('HTTPS://A.Test:443/Auth')).text, 'https://a.test/Auth')
  assert.equal(must(parseAllowedUrl('https://a.test/')).text, 'https://a.test')
  assert.equal(must(parseAllowedUrl('https://*.a.com/x/*')).text, 'https://*.a.com/x/*')
  assert.equal(must(parseAppScheme('ACME://')).text, 'acme')
  assert.equal(must(parseAppScheme('acme://Auth/x')).text, 'acme://Auth/x')
})

const refusedEntries: [string, string][] = [
  ['a.test', 'malformed_entry'],
  ['xhttps://a.test', 'malformed_entry'],
  ['https://a.test/x y', 'malformed_entry'],
  ['https://a.test/*x', 'malformed_entry'],
  ['https://%61.test', 'malformed_host'],
  ['https://0x7f.1', 'malformed_host'],
  ['https://a.test:99999', 'malformed_host'],
  ['https://.a.test', 'malformed_host'],
  ['https://a..test', 'malformed_host'],
  ['https://a.test.', 'malformed_host'],
  ['https://a.test:80443x', 'malformed_host'],
  ['http://a.test', 'insecure_scheme'],
  ['https://a.test/x*', 'malformed_path'],
  ['https://a.test/x//y', 'malformed_path'],
  ['https://a.test/./x', 'malformed_path'],
  ['https://a.test/%2E', 'malformed_path'],
  ['https://a.test/%2f', 'malformed_path'],
  ['https://a.test/%5C', 'malformed_path'],
  ['https://a.test/..;/x/*', 'malformed_path'],
  ['https://a.test/%252e/*', 'malformed_path'],
  ['https://*.com', 'wildcard_too_wide'],
  ['https://*.vercel.app', 'wildcard_too_wide'],
  ['https://*.10.0.0.1', 'wildcard_too_wide'],
  ['https://*.internal', 'wildcard_too_wide'],
  ['https://*.corp', 'wildcard_too_wide'],
  ['https://*.home.arpa', 'wildcard_too_wide'],
  ['https://*.localhost', 'wildcard_too_wide'],
  ['https://*.acme', 'wildcard_too_wide'],
  ['https://*.acme.nosuchtld', 'wildcard_too_wide'],
  ['https://*.[::1]', 'wildcard_too_wide'],
  ['https://myapp-*.vercel.app', 'wildcard_too_wide'],
  ['https://*-team.vercel.app', 'wildcard_too_wide'],
  ['https://*--site.netlify.app', 'wildcard_too_wide'],
  ['https://pr-*.preview.a.com', 'partial_wildcard'],
  ['https://*x.a.com', 'partial_wildcard'],
  ['https://**.a.com', 'partial_wildcard'],
  ['https://*.*.a.com', 'partial_wildcard'],
  ['https://x.*.a.com', 'partial_wildcard'],
  ['http://localhost:*', 'wildcard_port'],
  ['https://*.a.com:*/x', 'wildcard_port'],
]
for (const [entry, code] of refusedEntries) {
  test(`the entry ${entry} is refused as ${code}`, () => {
    const result = parseAllowedUrl(entry)
    assert.ok(!result.ok)
    assert.deepEqual(
      result.issues.map((issue) => [issue.field, issue.code]),
      [['allowedUrls', code]],
    )
    assert.ok(result.issues[0]?.message.startsWith(`"${entry}": `))
  })
}

const entries: [string, Partial<AllowedUrl>][] = [
  ['https://a.test', { scheme: 'https', authority: 'a.test', wildcard: false, path: null, prefix: false }],
  ['https://a.test:8443/x', { authority: 'a.test:8443', path: '/x', prefix: false }],
  ['https://a.test:80', { text: 'https://a.test:80', authority: 'a.test:80' }],
  ['https://a.test/*', { text: 'https://a.test/*', path: null, prefix: true }],
  ['https://a.test/x/*', { path: '/x/', prefix: true }],
  ['https://*.a.com', { text: 'https://*.a.com', authority: 'a.com', wildcard: true }],
  ['https://*.apps.corp.internal', { authority: 'apps.corp.internal', wildcard: true }],
  ['https://*.a.internal:8443/x/*', { authority: 'a.internal:8443', wildcard: true, path: '/x/', prefix: true }],
  ['https://*.dev.lan', { authority: 'dev.lan', wildcard: true }],
  ['https://*.preview.strict.test', { authority: 'preview.strict.test', wildcard: true }],
  ['https://*.app.home.arpa', { authority: 'app.home.arpa', wildcard: true }],
  ['https://*.nas.local', { authority: 'nas.local', wildcard: true }],
  ['https://*.user.github.io', { authority: 'user.github.io', wildcard: true }],
  ['http://localhost', { text: 'http://localhost', scheme: 'http', authority: 'localhost' }],
  ['http://localhost:80', { text: 'http://localhost' }],
  ['http://localhost:443', { text: 'http://localhost:443' }],
  ['http://127.0.0.1:3000/x', { authority: '127.0.0.1:3000' }],
]
for (const [text, expected] of entries) {
  test(`the entry ${text} is read part by part`, () => {
    const entry = must(parseAllowedUrl(text))
    assert.deepEqual({ ...entry, ...expected }, entry)
  })
}

const schemes: [string, Partial<AllowedUrl>][] = [
  ['acme', { text: 'acme', scheme: 'acme', authority: null, path: null, prefix: false, wildcard: false }],
  ['acme:', { text: 'acme', authority: null }],
  ['acme://auth', { text: 'acme://auth', authority: 'auth', path: null }],
  ['acme://auth/', { path: null, prefix: false }],
  ['acme://auth/*', { text: 'acme://auth/*', path: null, prefix: true }],
  ['acme://auth/m/*', { path: '/m/', prefix: true }],
  ['acme://auth/m', { path: '/m', prefix: false }],
  ['acme:x/y', { text: 'acme:x/y', authority: '', path: 'x/y' }],
  ['acme:///x', { text: 'acme:///x', authority: '', path: '/x' }],
  ['acme:/*', { text: 'acme:/*', authority: '', path: null, prefix: true }],
  ...['acme://*', 'acme://**', 'acme://*/*', 'acme://**/**', 'acme:*', 'acme:**', 'ACME://*/'].map(
    (text): [string, Partial<AllowedUrl>] => [text, { text: 'acme', authority: null, path: null, prefix: false }],
  ),
]
for (const [text, expected] of schemes) {
  test(`the app scheme ${text} is read part by part`, () => {
    const entry = must(parseAppScheme(text))
    assert.deepEqual({ ...entry, ...expected }, entry)
  })
}

for (const [text, code] of [
  ['ac me', 'malformed_entry'],
  ['9acme', 'malformed_entry'],
  ['acme://a b', 'malformed_entry'],
  ['acme://a/?x', 'malformed_entry'],
  ['exp://192.168.*.*', 'misplaced_star'],
  ['acme://*.a', 'misplaced_star'],
  ['acme://auth*', 'misplaced_star'],
  ['acme://auth/**', 'misplaced_star'],
  ['acme://auth/m*', 'misplaced_star'],
  ['acme://auth/*/x', 'misplaced_star'],
  ['acme:x*', 'misplaced_star'],
  ['intent://x', 'standard_scheme'],
] as const) {
  test(`the app scheme ${text} is refused as ${code}`, () => {
    const result = parseAppScheme(text)
    assert.ok(!result.ok)
    assert.deepEqual(
      result.issues.map((issue) => [issue.field, issue.code]),
      [['appSchemes', code]],
    )
    assert.ok(result.issues[0]?.message.startsWith(`"${text}": `))
  })
}

const differences: [string, Parameters<typeof check>[1], RegExp][] = [
  ['https://b.test/x', { urls: ['https://a.test'] }, /^Compared https:\/\/b\.test and the path \/x: no allowed entry/],
  ['https://a.test/x', { urls: ['https://a.test/y'] }, /allows this origin, but not this path/],
  ['http://localhost:30001/x', {}, /no links to localhost/],
  ['http://127.0.0.1/x', {}, /no links to localhost/],
  ['http://localhost:3000/x', { urls: ['http://localhost:3000/y'] }, /allows this origin, but not this path/],
  ['acme:', { schemes: ['acme://a'] }, /^Compared acme: and the path \(none\): .*--app-scheme 'acme'$/],
  ['acme://localhost', { schemes: ['acme://a'] }, /no allowed entry/],
  ['other://a', { schemes: ['acme', 'other://b'] }, /no allowed entry/],
]
for (const [raw, allowed, expected] of differences) {
  test(`the difference of ${raw} is explained: ${expected.source}`, () =>
    assert.match(check(raw, allowed) ?? 'allowed', expected))
}

test('the scheme must be equal, also on an allowed host', () => {
  assert.notEqual(check('http://localhost/x', { urls: ['https://localhost'] }), null)
  assert.notEqual(check('other://a', { schemes: ['acme://a', 'other://b'] }), null)
})

test('a wildcard needs a label before it', () => {
  const link = { ...must(parseAuthLink('https://x.a.com/?token=x', new Set())), authority: '.a.com' }
  const allowedUrls = [must(parseAllowedUrl('https://*.a.com'))]
  assert.notEqual(checkLinkAllowed(link, { allowedUrls, appSchemes: [], allowLocalhost: false }), null)
})

test('a star for every link of an app scheme allows what people copy it for', () => {
  assert.equal(check('exp://192.168.1.6:19000/--/auth', { schemes: ['exp://**'] }), null)
  assert.equal(check('com.acme.app://login', { schemes: ['com.acme.app://**'] }), null)
  assert.equal(check('acme:login', { schemes: ['acme://*'] }), null)
})

test('the message about a star gives the true reason, and the spelling that works', () => {
  const message = (result: Parsed<AllowedUrl>) => (result.ok ? '' : result.issues[0]?.message)
  const reasons: [string, RegExp][] = [
    ['https://*.vercel.app', /anyone can register names under vercel\.app/],
    ['https://myapp-*.vercel.app', /anyone can register names under vercel\.app/],
    ['https://*.corp', /would allow every host of corp.*\*\.NAME\.corp/],
    ['https://*.home.arpa', /would allow every host of home\.arpa/],
    ['https://*.10.0.0.1', /10\.0\.0\.1 is an IP address/],
    ['https://*.acme.nosuchtld', /Postern does not know who registers names below nosuchtld/],
    ['https://pr-*.preview.a.com', /whole label: https:\/\/\*\.preview\.a\.com/],
    ['https://x.*.a.com', /first label/],
    ['http://localhost:*', /--allow-localhost/],
    ['https://*.a.com:*', /list each port/],
  ]
  for (const [entry, reason] of reasons) assert.match(message(parseAllowedUrl(entry)) ?? '', reason)
  assert.match(message(parseAppScheme('acme://auth/**')) ?? '', /acme:\/\/auth\/\*/)
  assert.match(message(parseAppScheme('exp://192.168.*.*')) ?? '', /write exp for every link/)
})

test('dot segments at either end of an app link never match a prefix', () => {
  for (const raw of ['acme:../m/x', 'acme://a/m/..', 'acme://a/m/.', 'acme:m/../x'])
    assert.notEqual(check(raw, { schemes: ['acme://a/m/*', 'acme:m/*', 'acme:../m/*'] }), null, raw)
  assert.equal(check('acme://a/m/.hidden', { schemes: ['acme://a/m/*'] }), null)
  assert.equal(check('acme://a/m/x..y', { schemes: ['acme://a/m/*'] }), null)
})

const compared: [url: string, entry: string, differs: 'scheme' | 'host' | 'port' | 'path' | null][] = [
  ['https://a.test/auth', 'https://a.test/auth', null],
  ['https://a.test/other', 'https://a.test/auth', 'path'],
  ['https://b.test/auth', 'https://a.test/auth', 'host'],
  ['https://a.test:8443/auth', 'https://a.test/auth', 'port'],
  ['https://a.test/auth', 'https://a.test:8443/auth', 'port'],
  ['https://b.test:8443/auth', 'https://a.test:8444', 'host'],
  ['https://x.a.example.com/', 'https://*.example.com', 'host'],
  ['http://localhost:3000/', 'https://localhost:3000', 'scheme'],
]

test('an entry is compared part by part: scheme, host, port, path', () => {
  for (const [url, entry, differs] of compared) {
    const policy = { allowedUrls: [must(parseAllowedUrl(entry))], appSchemes: [], allowLocalhost: false }
    const link = must(parseAuthLink(`${url}?token=x`, new Set()))
    const { text } = must(parseAllowedUrl(entry))
    assert.deepEqual(compareEntries(link, policy), [{ entry: text, differs }], `${url} and ${entry}`)
  }
})

test('the permission for localhost is an entry of links to it alone', () => {
  const policy = { allowedUrls: [], appSchemes: [must(parseAppScheme('acme'))], allowLocalhost: true }
  const entriesOf = (url: string) => compareEntries(must(parseAuthLink(url, new Set(['acme']))), policy)
  assert.deepEqual(entriesOf('http://localhost:5173/?token=x'), [{ entry: '--allow-localhost', differs: null }])
  assert.deepEqual(entriesOf('https://a.test/?token=x'), [])
  assert.deepEqual(entriesOf('acme://auth?token=x'), [{ entry: 'acme', differs: null }])
  const strict = { ...policy, allowLocalhost: false }
  assert.deepEqual(compareEntries(must(parseAuthLink('http://localhost/?token=x', new Set())), strict), [])
})
