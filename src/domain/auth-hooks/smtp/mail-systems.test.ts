import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuthHookMessage } from '../auth-hook.ts'
import { decodeReferences, findLinks, linksMax } from './find-links.ts'
import { matchesRule, parseLinkRule, readRoute } from './link-rule.ts'
import type { SubmittedMail } from './mail-system.ts'
import { mailSystems } from './mail-systems.ts'

const smtp = mailSystems.find(({ name }) => name === 'smtp')
const rules = { '/reset/*': 'password_reset', '/old/*': 'ignored', '/go?key': 'magic_link' }
const origin = 'https://app.acme.test'

/** The email of a message with these links, or its issue, by rules of the app. */
function read(links: readonly string[], more: Partial<SubmittedMail> = {}, ignoredHosts: string[] = []) {
  const mail = { to: 'ada@example.com', links, messageId: null, ...more }
  const messages = smtp?.read(mail, { slug: 'acme', settings: { rules, ignoredHosts } })
  assert.ok(messages)
  return messages.ok ? (messages.value[0] as AuthHookMessage) : (messages.issues[0] ?? assert.fail())
}
const codeOf = (...given: Parameters<typeof read>) => {
  const result = read(...given)
  return 'code' in result ? result.code : 'kind' in result ? result.kind : ''
}

test('each sample of a system is an email of its kind', () => {
  for (const system of mailSystems)
    for (const kind of system.samples ?? []) {
      const messages = system.read(system.sample(kind), { slug: 'acme', settings: {} })
      assert.ok(messages.ok, `${system.name} ${kind}: ${JSON.stringify(messages)}`)
      assert.deepEqual([messages.value.length, messages.value[0]?.kind], [1, kind])
    }
})

test('the instructions have the connection in each of three ways, and the secret only if it is shown', () => {
  const place = { slug: 'acme-app', from: 'auth@acme.test', secret: 'SECRET-4711' }
  const ways = ['smtp://mail.acme.test:5870?tls=none', 'smtp://mail.acme.test:5870', 'smtps://mail.acme.test:5870']
  for (const { name, setUp } of mailSystems) {
    const blocks = ways.map((url) => setUp({ ...place, url })[0]?.block ?? '')
    for (const block of blocks) {
      for (const part of ['mail.acme.test', '5870', 'acme-app', 'SECRET-4711']) assert.ok(block.includes(part), name)
      assert.doesNotMatch(block, /\{\w*\}|\{[^{}]*\|/)
    }
    assert.ok(new Set(blocks).size > 1, `${name} tells TLS apart`)
    assert.doesNotMatch(JSON.stringify(setUp({ ...place, url: ways[0] ?? '', secret: null })), /SECRET/)
  }
  const [usual] = mailSystems.map(({ setUp }) => setUp({ ...place, url: 'smtps://mail.acme.test' })[0]?.block)
  assert.match(usual ?? '', /:465/)
})

test('one link that a rule matches is the email, and others are judged by their host', () => {
  const link = `${origin}/reset/abc`
  assert.equal(codeOf([link]), 'password_reset')
  assert.equal(codeOf([link, `${origin}/`, 'https://www.w3.org/x']), 'password_reset')
  assert.equal(codeOf([link, 'https://evil.test/']), 'other_link')
  assert.equal(codeOf([link, 'https://cdn.acme.test/logo'], {}, ['cdn.acme.test']), 'password_reset')
  assert.equal(codeOf([link, 'https://a.cdn.test/logo'], {}, ['*.cdn.test']), 'password_reset')
  assert.equal(codeOf([link, 'https://cdn.test/logo'], {}, ['*.cdn.test']), 'other_link')
  assert.equal(codeOf([link, 'https://evil.test/old/x']), 'other_link', 'an ignored path is one of the own host')
  assert.equal(codeOf([link, `${origin}/old/x`]), 'password_reset')
  assert.equal(codeOf([link, `${link}x`]), 'several_links')
  assert.equal(codeOf([link, 'https://%']), 'other_link')
  assert.equal(codeOf([]), 'no_link')
  assert.equal(codeOf([`${origin}/other`]), 'unknown_kind')
  assert.equal(codeOf(Array.from({ length: linksMax + 1 }, (_, n) => `${origin}/x${n}`)), 'too_many_links')
})

test('an answer holds nothing of a link that may be its secret', () => {
  for (const secret of ['tok3n', 'longersecrettoken', 'bob%40private.example', 'a@b']) {
    const refusal = read([`${origin}/some/${secret}/x?token=${secret}`])
    assert.ok('message' in refusal && refusal.message.includes("'smtp:/some/*/x=TYPE'"), JSON.stringify(refusal))
    assert.ok(!refusal.message.includes(secret))
  }
  const refusal = read([`${origin}/reset/abc`, 'acme://tok3n/x'])
  assert.ok('message' in refusal && !refusal.message.includes('tok3n'))
})

test('a link with the one parameter token is sent as it is; a JWT in it says when it ends', () => {
  const jwt = (exp: unknown) => `e30.${Buffer.from(JSON.stringify({ exp })).toString('base64url')}.x`
  const at = (exp: unknown) => read([`${origin}/go?key=${jwt(exp)}`])
  assert.deepEqual(read([`${origin}/reset/a?token=b`]), {
    ...{ kind: 'password_reset', to: 'ada@example.com', once: null },
    link: `${origin}/reset/a?token=b`,
  })
  for (const [exp, notAfter] of [
    [1_800_000_000, 1_800_000_000_000],
    [1_800_000_000.1239, 1_800_000_000_123],
    [-5, -5000],
    [1e300, undefined],
    ['1800000000', undefined],
    [null, undefined],
  ] as const)
    assert.equal((at(exp) as AuthHookMessage).notAfter, notAfter, String(exp))
})

test('a repeat is known by its id, recipient and link', () => {
  const once = (more: Partial<SubmittedMail>, link = 'a') =>
    (read([`${origin}/reset/${link}`], more) as AuthHookMessage).once
  const same = once({ messageId: '<1@x>' })
  assert.equal(once({ messageId: '<1@x>' }), same)
  for (const other of [
    once({ messageId: '<2@x>' }),
    once({ messageId: '<1@x>', to: 'b@c.d' }),
    once({ messageId: '<1@x>' }, 'b'),
  ])
    assert.notEqual(other, same)
})

test('rules match whole segments, folders, routes behind #, parameters and claims', () => {
  const claims = `e30.${Buffer.from('{"typ":"reset"}').toString('base64url')}.x`
  const matches = (text: string, path: string) => {
    const rule = parseLinkRule(text)
    assert.ok(rule.ok, text)
    return matchesRule(rule.value, readRoute(new URL(`${origin}${path}`)))
  }
  const right = [
    ['/reset/*', '/reset/a'],
    ['/reset/*', '/reset/a/b/'],
    ['/reset/*/', '/reset/a/'],
    ['**/reset', '/reset'],
    ['**/reset', '/a/b/reset'],
    ['**/reset/*', '/a/reset/b/c'],
    ['**/#/verify/', '/#/verify/?token=a'],
    ['**/#/verify/?token', '/app/#/verify/?id=1&token=a'],
    ['/login?action=rp', '/login?key=a&action=rp'],
    ['/go?key.typ=reset', `/go?key=${claims}`],
    ['/go?key.typ', `/go?key=${claims}`],
  ] as const
  const wrong = [
    ['/reset/*', '/reset/'],
    ['/reset/*', '/a/reset/b'],
    ['/reset/*/', '/reset/a'],
    ['/reset/*/', '/reset//'],
    ['**/reset', '/reset/'],
    ['**/reset', '/preset'],
    ['**/reset/*', '/out/https://evil.test/reset/x'],
    ['**/#/verify/', '/verify/'],
    ['/login?action=rp', '/login?action=rpx'],
    ['/login?action=rp', '/login?action=x&action=rp'],
    ['/login?action', '/login#action=rp'],
    ['/go?key.typ=reset', '/go?key=reset'],
    ['/go?key.typ=other', `/go?key=${claims}`],
    ['/go?key', `/go?x=${'a'.repeat(5000)}&key=b`],
    ['**/reset', `${'/a'.repeat(70)}/reset`],
  ] as const
  for (const [rule, path] of right) assert.ok(matches(rule, path), `${rule} ${path}`)
  for (const [rule, path] of wrong) assert.ok(!matches(rule, path), `${rule} ${path}`)
  for (const text of ['', '*', '/', '/*', '**/*', 'reset', '/re*', '/a b', `/${'a'.repeat(300)}`, '/a?b=c&d'])
    assert.ok(!parseLinkRule(text).ok, text)
})

test('links end where their text does', () => {
  const found = (text: string) => findLinks(text).join(' ')
  for (const [text, link] of [
    ['See https://a.test/b.', 'https://a.test/b'],
    ['(https://a.test/b)', 'https://a.test/b'],
    ['[https://a.test/b](https://a.test/b)', 'https://a.test/b'],
    ['<https://a.test/b>', 'https://a.test/b'],
    ["<a href='https://a.test/b'id=x>", 'https://a.test/b'],
    ["https://a.test/b?n=o'brien%40x&t=1", "https://a.test/b?n=o'brien%40x&t=1"],
    ['https://a.test/b\u200b。', 'https://a.test/b'],
    ['https://a.test/b?c=P6@26$n!(x)_~', 'https://a.test/b?c=P6@26$n!(x)_~'],
    ['HTTPS://A.TEST/', 'HTTPS://A.TEST/'],
    ['1acme://x 9://y ://z http:// ', 'acme://x'],
    ['https://a.test/?next=https://b.test', 'https://a.test/?next=https://b.test'],
  ] as const)
    assert.equal(found(text), link, text)
  assert.equal(findLinks('a://b '.repeat(1000)).length, 1)
  assert.equal(findLinks(Array.from({ length: 500 }, (_, n) => `a://b${n}`).join(' ')).length, linksMax + 1)
})

test('character references are decoded as HTML does in attributes', () => {
  const url = 'https:&#x2F;&#47;a.test?code=1&amp;uid=2&gtid=3&ampere=4&nbsp;end&#x110000;'
  assert.equal(decodeReferences(url), 'https://a.test?code=1&uid=2&gtid=3&ampere=4 end&#x110000;')
})
