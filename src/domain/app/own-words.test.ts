import assert from 'node:assert/strict'
import { test } from 'node:test'
import { emailTypes } from '../request/email-kinds.ts'
import { checkOwnWords, type OwnWords, pruneOwnWords } from './own-words.ts'

const words: OwnWords = { subject: 'Your {app} link', text: 'Welcome back to {app}.', signOff: 'The {app} team' }
const issuesOf = (change: Partial<OwnWords>, { type = 'magic_link', language = 'en', name = 'Acme' } = {}) =>
  checkOwnWords({ [type]: { [language]: { ...words, ...change } } }, { name, locales: ['en', 'de'] })
const codesOf = (...given: Parameters<typeof issuesOf>): string[] =>
  issuesOf(...given).map(({ code, field }) => `${field} ${code}`)
const linkable = ['words.magic_link.en.text linkable_text']

test('plain text with the names of its type is accepted', () => {
  for (const type of emailTypes) assert.deepEqual(codesOf({}, { type }), [])
  const ordinary = [
    'Dr. Müller (z.B. heute, 24/7): “{app}” – für 999 Gäste, ganz o.k.! Nutzer:innen',
    'Open 24 hours a day, 365 days a year … for you. Per SMS: Link.',
    'Seit 1998 in 20 Ländern, bis 24.12. um 8.30 Uhr, Version 2.10, kl. 10.30, No.10',
    'さあ、始めましょう。次へ。2026年12月 9:00〜18:00 リンクはOK。Acmeへ',
    'Přítel: ano. Votre hôtel:{app}',
    'حان الوقت: {app}، أهلًا!',
  ]
  for (const text of ordinary) assert.deepEqual(issuesOf({ text }), [], text)
  const text = '{inviter} asks you to join {organisation}.'
  assert.deepEqual(codesOf({ text }, { type: 'organisation_invite', language: 'de' }), [])
})

test('unknown languages and placeholders are refused, and a placeholder that is there twice', () => {
  for (const language of ['fr', 'EN', 'en-GB'])
    assert.deepEqual(codesOf({}, { language }), [`words.magic_link.${language} unknown_locale`])
  for (const text of ['{inviter}', '{organisation} on {app}', '{', 'a } b', '{{app}}', '{App}', '{app', '{app} {app}'])
    assert.deepEqual(codesOf({ text }), ['words.magic_link.en.text unknown_placeholder'], text)
})

test('a text is one line of bounded length that can be seen', () => {
  for (const [part, max] of Object.entries({ subject: 100, text: 300, signOff: 100 })) {
    assert.deepEqual(codesOf({ [part]: 'ü'.repeat(max) }), [], part)
    assert.deepEqual(codesOf({ [part]: 'ü'.repeat(max + 1) }), [`words.magic_link.en.${part} malformed_text`])
  }
  const hidden = [
    '\n',
    '\t',
    '\0',
    '\x7f',
    '\u0085',
    '\u2028',
    '\u202e',
    '\u2066',
    '\u200b',
    '\u2060',
    '\u00ad',
    '\ufeff',
  ]
  for (const character of hidden)
    assert.deepEqual(codesOf({ subject: `a${character}b` }), ['words.magic_link.en.subject malformed_text'])
  for (const text of ['', ' ', ' a', 'a ', '\u200d', `a${'\u0301'.repeat(7)}`])
    assert.deepEqual(codesOf({ signOff: text }), ['words.magic_link.en.signOff malformed_text'], text)
})

test('nothing that a mail client turns into a link, an address or a telephone number', () => {
  const texts = [
    ...['Go to acme.test now', 'acme.co', 'ACME.IO', 'bücher.example', 'x.yz', 'www.x', 'WWW.x', 'a.xn--p1ai'],
    ...['https://acme', 'HTTP:acme', 'mailto:ada', 'tel:1', 'sms:1', 'sip:ada', 'x://y', 'javascript:x', 'data:text'],
    ...['ada@acme', '@acme', 'ada＠acme', 'ada﹫acme', '\\\\evil\\share', 'https：／／acme'],
    ...['call 12345', '+1 (2) 3-4 5', '1-2-3-4-5', '١٢٣٤٥', '①②③④⑤', '1.1.1.1', '127.0.0.1'],
    ...[
      'acme․com',
      'acme﹒com',
      'ａｃｍｅ．ｃｏｍ',
      'a。com',
      'a｡COM',
      'cafe\u0301.com',
      'acme\ufe0f.com',
      'acme.c\u200dom',
    ],
    ...['संगठन.भारत', 'i❤.ws', '😀.com'],
  ]
  for (const text of texts) {
    assert.deepEqual(codesOf({ text }), linkable, text)
    assert.deepEqual(codesOf({ subject: text }), ['words.magic_link.en.subject linkable_text'], text)
  }
  assert.match(issuesOf({ text: 'See m.in. this' })[0]?.message ?? '', /may turn "m\.in\." into/)
})

test('a link cannot be put together around a name', () => {
  for (const text of ['{app}.com', 'www.{app}', 'https://{app}', 'me@{app}', 'acme.{app}', 'tel:{app}'])
    assert.deepEqual(codesOf({ text }), linkable, text)
  assert.deepEqual(codesOf({ text: '{app}com' }, { name: 'acme.' }), linkable)
  assert.deepEqual(codesOf({ text: 'Call 0800 {app}' }, { name: '4 you' }), linkable)
  assert.deepEqual(
    codesOf({ text: 'Welcome to {app}' }, { name: 'Booking.com' }),
    [],
    'it is so in Postern’s words, too',
  )
  const invited = { type: 'organisation_invite' }
  assert.equal(codesOf({ text: '{inviter}.{organisation}' }, invited).length, 1)
})

test('no pattern backtracks', () => {
  for (const piece of ['a.', '1 ', '1 - ', ':', '@', 'www', '。', 'a。', '. ', 'http', '\\\\', '\u0301', 'http:'])
    assert.ok(codesOf({ text: piece.repeat(200_000) }).length > 0)
  for (const piece of ['a.', '1 - ', 'a @ ', 'www ', 'a。b ', 'http: ', '://'])
    assert.ok(issuesOf({ text: piece.repeat(50).trim() }).length < 2)
})

test('types without words are removed, and the rest is in order', () => {
  assert.deepEqual(pruneOwnWords({ magic_link: {}, password_reset: { en: words } }), { password_reset: { en: words } })
  assert.equal(pruneOwnWords({ magic_link: {} }), undefined)
  assert.equal(pruneOwnWords(), undefined)
  const { signOff, ...others } = words
  const ordered = pruneOwnWords({ magic_link: { en: { signOff: 'x', ...others }, de: others } })
  const wanted = { magic_link: { de: others, en: { ...others, signOff: 'x' } } }
  assert.equal(JSON.stringify(ordered), JSON.stringify(wanted))
})
