/** The pages of the adapters speak the language of the email that leads to them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { makePageWords } from '../../scripts/page-words.ts'
import { confirm, posternProvider } from '../src/auth-js.ts'
import { betterAuthEmail } from '../src/better-auth.ts'
import { choosePageLanguage, takeLanguage, withLanguage } from '../src/page-language.ts'
import { pageWords } from '../src/page-words.ts'
import { CapturingPostern } from '../src/testing.ts'

const base = 'https://app.acme.test/api/auth'
const page = 'https://app.acme.test/auth/confirm'
const urlOf = ({ emails }: CapturingPostern) => emails.at(-1)?.url ?? ''

test('the words are those of the emails: else build the client', () => {
  assert.deepEqual(pageWords, makePageWords())
})

test('a tag or a list chooses a language of the pages', () => {
  for (const [locale, language] of [
    ['de', 'de'],
    ['de-AT', 'de'],
    ['DE_at', 'de'],
    ['en-GB', 'en'],
    ['pt', 'pt-BR'],
    ['pt-PT', 'pt-BR'],
    ['no', 'nb'],
    ['nn-NO', 'nb'],
    ['zh', 'zh-Hans'],
    ['zh-TW', 'zh-Hant'],
    ['zh-Hant-HK', 'zh-Hant'],
    ['zh-Hans-HK', 'zh-Hans'],
    ['xx, fr;q=0.5, ja;q=0.8', 'ja'],
    ['fr;q=0, it;q=0.1', 'it'],
    ['xx', null],
    ['__proto__', null],
    ['toString', null],
    ['', null],
    [null, null],
  ] as const)
    assert.equal(choosePageLanguage(locale), language, String(locale))
})

test('a language goes into the parameters and comes out again; nothing else is taken for one', () => {
  const parameters = fc.string({ unit: fc.constantFrom(...'ab=&-1/') })
  fc.assert(
    fc.property(parameters, fc.constantFrom('ar', 'zh-TW', 'de'), (rest, locale) => {
      const language = choosePageLanguage(locale)
      assert.deepEqual(takeLanguage(withLanguage(rest, locale)), { rest, language })
    }),
  )
  for (const rest of ['', 'a=b', 'postern-lang=xx', 'postern-lang=toString', 'postern-lang=de&a=b'])
    assert.deepEqual(takeLanguage(rest), { rest, language: 'en' })
})

test('Better Auth: the pages speak the language of the email, and lead on without it', async () => {
  const postern = new CapturingPostern()
  const email = betterAuthEmail({ postern, locale: ({ email: to }) => to.slice(0, 2) })
  email.plugin.init({ options: { appName: 'Acme' } })
  const url = `${base}/magic-link/verify?token=t&callbackURL=%2Fhome`
  await email.sendMagicLink({ email: 'ar@example.com', url, token: 't' })
  const answer = async (method = 'GET') =>
    (await email.plugin.onRequest(new Request(urlOf(postern), { method })))?.response
  const text = (await (await answer())?.text()) ?? ''
  assert.match(text, /<html lang="ar" dir="rtl">/)
  assert.ok(text.includes(`<h1>${pageWords.ar.signInTo.replace('{app}', '\u2068Acme\u2069')}</h1>`), text)
  assert.ok(text.includes(`<button>${pageWords.ar.signIn}</button>`))
  const location = (await answer('POST'))?.headers.get('location')
  assert.equal(location, '../magic-link/verify?token=t&callbackURL=%2Fhome')
  await email.sendMagicLink({ email: 'xx@example.com', url, token: 't' })
  assert.match((await (await answer())?.text()) ?? '', /<html lang="en" dir="ltr">/)
})

test('Auth.js: the page speaks the language of the email; one for a damaged link that of the browser', async () => {
  const postern = new CapturingPostern()
  const { sendVerificationRequest } = posternProvider({ postern, confirmUrl: page, locale: () => 'he' })
  const url = `https://app.acme.test/api/auth/callback/postern?callbackUrl=%2F&token=t&email=a`
  const expires = new Date(Date.now() + 60_000)
  await sendVerificationRequest({ identifier: 'ana@example.com', url, expires, token: 't' })
  const text = await confirm(new Request(urlOf(postern))).text()
  assert.match(text, /<html lang="he" dir="rtl">/)
  assert.ok(text.includes(`<button>${pageWords.he.signIn}</button>`))
  const posted = confirm(new Request(urlOf(postern), { method: 'POST' }))
  assert.equal(posted.headers.get('location'), '/api/auth/callback/postern?callbackUrl=%2F&email=a&token=t')
  const damaged = confirm(new Request(`${page}?token=t~x`, { headers: { 'accept-language': 'ja, en;q=0.5' } }))
  assert.equal(damaged.status, 400)
  assert.ok((await damaged.text()).includes(pageWords.ja.damaged))
  assert.match(await confirm(new Request(`${page}?token=t~x`)).text(), /<html lang="en" dir="ltr">/)
})
