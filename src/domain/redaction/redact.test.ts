import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseReply as parse } from '../delivery/smtp-reply.ts'
import type { EmailAddress } from '../request/email-address.ts'
import type { EmailContent } from '../request/email-content.ts'

const parseReply = (raw: string, email: EmailContent) => parse(raw, { kind: 'reply', email })

const content: EmailContent = {
  to: 'Ana.Lovelace+news@example.com' as EmailAddress,
  url: 'https://app.acme.test/auth/verify/SECRET-PART?token=LIVE-TOKEN-4711==#x',
  organisationName: 'Secret Society',
  inviterName: 'Bob',
  messageIdDomain: 'acme.test',
}
const hosted: EmailContent = {
  ...content,
  url: 'https://links.acme.test/acme/Abc_DEF-0123456789xyz',
  hosted: true,
}

const replies: readonly (readonly [string, string])[] = [
  ['554 5.7.1 ana.lovelace+news... refused', '554 5.7.1 <address>... refused'],
  ['550 <ANA.LOVELACE@elsewhere.test> unknown', '550 <address> unknown'],
  ['550 ana.lovelace%2Bnews%40example.com unknown', '550 <address> unknown'],
  ['550 Ana.Lovelace+news%40example.com unknown', '550 <address> unknown'],
  ['550 ana.lovelace+news at example.com unknown', '550 <address> unknown'],
  ['554 spam for Secret Society by bob', '554 spam for <name> by <name>'],
  ['554 listed: app.acme.test/auth/verify/secret-part', '554 listed: <link>'],
  ['554 listed: /auth/verify/SECRET-PART?tok', '554 listed: <link>'],
  ['554 listed: %2Fauth%2Fverify%2FSECRET-PART', '554 listed: <link>'],
  ['554 found LIVE-TOKEN-4711== in it', '554 found <token> in it'],
  ['554-cut LIVE-TOK\r\n554 EN-4711 twice', '554-cut <token> twice'],
  ['554 host app.acme.test is listed', '554 host app.acme.test is listed'],
  ['554 see ://other.test/path of it', '554 see <link> of it'],
  ['550 5.1.1 mailbox unavailable', '550 5.1.1 mailbox unavailable'],
]

test('a token is taken out in the form that its link has, and decoded', () => {
  const url = 'https://app.acme.test/auth?token=Zm9%2BYmFy%2FcXV4%3D'
  for (const quoted of ['Zm9+YmFy/cXV4=', 'Zm9%2BYmFy%2FcXV4%3D']) {
    const { text } = parseReply(`554 5.7.1 blocked: ${quoted}`, { ...content, url })
    assert.doesNotMatch(text, /YmFy|cXV4/)
    assert.match(text, /^554 5\.7\.1 blocked: </)
  }
})

test('a code is taken out in any case, however it is grouped, and with digits also within a word', () => {
  const check = (code: string, raw: string, shown: string) =>
    assert.equal(parseReply(raw, { ...content, code }).text, shown)
  check('CAN-4RY-x', '450 4.2.0 your code can-4ry-x is late', '450 4.2.0 your code <code> is late')
  check('CAN-4RY-x', '450 CAN4RYX, then CAN 4RY X', '450 <code>, then <code>')
  check('CAN-4RY-x', '450 id=7CAN-4RY-x7', '450 id=7<code>7')
  check('CAN-4RY-x', '450 CANNERY', '450 CANNERY')
  for (const quoted of ['246-813', '246.813', '246=20813', '246\u2011813', '<i>246</i><i class="x">813</i>'])
    check(
      '246813',
      `554 spam: ${quoted} it said`,
      `554 spam: ${/^<i>/.test(quoted) ? '<i><code></i>' : '<code>'} it said`,
    )
})

test('a code hides no address and no token from those that look for them', () => {
  const reply = (raw: string, change: Partial<EmailContent>) => parseReply(raw, { ...content, ...change }).text
  const to = 'ada1990@example.com' as EmailAddress
  assert.equal(reply('550 5.1.1 <ada1990@example.com>: gone', { to, code: '1990' }), '550 5.1.1 <address>: gone')
  const url = 'https://app.acme.test/?token=Qx1234Zr'
  assert.equal(reply('550 token Qx1234Zr', { url, code: '1234' }), '550 token <token>')
})

test('a code takes nothing from the diagnosis', () => {
  for (const [code, raw] of [
    ['FULL', '550 5.1.1 mailbox is full'],
    ['5505', '550 5.1.1 no such user'],
    ['box-full', '550 5.1.1 mailbox is full'],
  ] as const) {
    const reply = parseReply(raw, { ...content, code })
    assert.deepEqual([reply.code, reply.enhanced, reply.text], [550, '5.1.1', raw])
  }
})

const plain: EmailContent = {
  to: 'mail@example.com' as EmailAddress,
  url: 'https://app.acme.test/authentication/required?token=4711Ab4711&redirect_to=https://www.acme.example/welcome',
  messageIdDomain: 'acme.test',
}

for (const raw of [
  '535 5.7.8 Authentication failed',
  '554 mail from you is not taken',
  '550 5.7.26 SPF fail: www.acme.example is not authorised',
  '550 5.7.1 authentication required',
])
  test(`a diagnosis stays as it is: ${raw}`, () => {
    assert.equal(parseReply(raw, plain).text, raw)
  })

test('the host of the link is no secret, whatever it looks like', () => {
  const numbered = { ...plain, url: 'https://app-2.acme.test:8443/auth?token=4711Ab4711' }
  const raw = '554 host app-2.acme.test is listed'
  assert.equal(parseReply(raw, numbered).text, raw)
})

test('characters that no record keeps hide nothing: they are removed before anything is compared', () => {
  const hidden = (text: string, between: string) => [...text].join(between)
  for (const between of ['\0', '\u200b', '\u00ad', '\ufeff', '\u0001']) {
    const raw = `550 5.1.1 ${hidden('ana.lovelace', between)} ${hidden(content.url, between)}`
    assert.equal(parseReply(raw, content).text, '550 5.1.1 <address> <link>')
  }
})

test('a capital with two small letters hides nothing either', () => {
  const { text } = parseReply('550 İ user ana.lovelace unknown', content)
  assert.equal(text, '550 İ user <address> unknown')
  const own = { ...content, organisationName: 'İstanbul Ltd' }
  assert.equal(parseReply('554 from İstanbul Ltd', own).text, '554 from <name>')
})

test('a word that the bound cuts is left out', () => {
  const raw = `550 ${' '.repeat(1985)}ana.lovelace@example.com`
  assert.equal(parseReply(raw, content).text, '550 ')
})

for (const [raw, text] of replies)
  test(`a reply keeps nothing of its email: ${raw}`, () => {
    const reply = parseReply(raw, content)
    assert.equal(reply.text, text)
    assert.equal(reply.code, Number(raw.slice(0, 3)), 'its codes are read before')
  })

test('a hosted link is taken out by its sealed part, without scheme or host, in any case', () => {
  for (const raw of [
    '554 links.acme.test/acme/Abc_DEF-0123456789xyz',
    '554 abc_def-0123456789XYZ',
    '554 /acme/Abc_DEF-0123',
  ])
    assert.equal(parseReply(raw, hosted).text, '554 <link>', raw)
})

test('a recipient of one or two letters is not every article of a sentence', () => {
  const short = { ...content, to: 'a@example.com' as EmailAddress }
  assert.equal(parseReply('550 a problem with a@example.com', short).text, '550 a problem with <address>')
})

test('what was outside a word stays: no part of a longer word is taken for a name', () => {
  assert.equal(parseReply('550 bobsled bob_x xbob', content).text, '550 bobsled <name>_x xbob')
})

const base64 = (text: string) => Buffer.from(text).toString('base64')
const hex = (text: string) => Buffer.from(text).toString('hex')

test('what an email holds goes in base64 and hexadecimal digits, in any reply', () => {
  const email: EmailContent = { ...content, to: 'Jo@example.com' as EmailAddress, code: '246813' }
  const { to, url, code = '' } = email
  const quoted = [to, to.toLowerCase(), `<${to}>`, `x ${url}`, 'LIVE-TOKEN-4711', code, `id ${code}`, 'Secret Society']
  for (const value of quoted)
    for (const encoded of [base64(value), Buffer.from(value).toString('base64url'), hex(value)])
      for (const raw of [`250 ok ${encoded} it said`, `554 =?utf-8?B?${encoded}?= it said`]) {
        const { text } = parseReply(raw, email)
        assert.ok(!text.includes(encoded.slice(0, 6)) && text.endsWith(' it said'), `${raw}: ${text}`)
      }
  const both = parseReply(`250 ${base64('KXRTQ7')} ${base64('kxrtq7')}`, { ...email, code: 'kxrtq7' })
  assert.equal(both.text, '250 <code> <code>')
  const cut = base64(`to: ${url}`).slice(20, 40)
  assert.equal(parseReply(`250 ${cut}`, email).text, '250 <link>')
  assert.equal(parseReply('250 ok: queued as 4XkPzQ1YfJz9sT', email).text, '250 ok: queued as 4XkPzQ1YfJz9sT')
})

test('digits that are broken into lines or groups go as well', () => {
  const email = { ...content, code: '246813' }
  const secret = 's3cr3t-Pa55'
  const fold = (text: string, between: string) => (text.match(/.{1,5}/g) ?? []).join(between)
  for (const between of ['\r\n554-', '\r\n554 5.7.1 ', '=\r\n', ' ', ':'])
    for (const encode of [base64, hex]) {
      for (const value of ['LIVE-TOKEN-4711', '246813', email.to]) {
        const { text } = parseReply(`554 spam: ${fold(encode(value), between)}, it said`, email)
        assert.match(text, /^554 spam: <\w+>=*, it said$/, `${value} ${between}`)
      }
      const raw = `554 bad: ${fold(encode(`user\0${secret}`), between)}, it said`
      const { text } = parse(raw, { kind: 'other', secrets: [secret] })
      assert.doesNotMatch(text, new RegExp(encode(secret).slice(8, 13)), between)
      assert.match(text, /<secret>/, between)
    }
})

test('the sign of an address goes in the escapes of programs', () => {
  const email = { ...content, to: 'jo@example.com' as EmailAddress }
  for (const sign of [String.raw`\u0040`, String.raw`\x40`, String.raw`\100`, '%u0040', '&#64;', '&commat;'])
    assert.equal(parseReply(`550 jo${sign}example.com gone`, email).text, '550 <address> gone')
})

test('names of two letters go: in other scripts anywhere, in Latin as a word with a capital', () => {
  const reply = (raw: string, inviterName: string) => parseReply(raw, { ...content, inviterName }).text
  assert.equal(reply('554 李明邀请您, from 李明', '李明'), '554 <name>邀请您, from <name>')
  assert.equal(reply('554 by Bo, "BO"; Bob, Boat', 'Bo'), '554 by <name>, "<name>"; Bob, Boat')
  assert.equal(reply('554 An error on a bo', 'An'), '554 An error on a bo')
  assert.equal(reply('554 by José', 'Jose\u0301'), '554 by <name>')
})

test('a code goes when a long tag is between its halves', () => {
  const raw = `554 <b>246</b><p style="${'a'.repeat(300)}">813</p>`
  assert.equal(parseReply(raw, { ...content, code: '246813' }).text, '554 <b><code></p>')
})
