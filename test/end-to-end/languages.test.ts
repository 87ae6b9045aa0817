/** Languages from the request to the email and its page. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { composeMessage } from '../../src/delivery/message/compose-message.ts'
import type { Reference } from '../../src/domain/delivery/reference.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { languageTags, readLanguageFile } from '../../src/templates/locales/language-files.ts'
import { languageOf } from '../../src/templates/locales/locales.ts'
import { serveEnvironment } from '../support/cli.ts'
import { linksBaseUrl, startHostedLinks } from '../support/hosted-links.ts'
import { validBody } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary.ts'

const { service, receive, visit, local, newApp } = await startHostedLinks({ after })
const post = (body: Record<string, unknown>) =>
  service.post(validBody({ to: `ask${serial++}@example.com`, ...body }, service.store.now()), {
    authorization: `Bearer ${service.key}`,
  })
let serial = 0

const heading = (tag: string) => languageOf(tag).strings.words('magic_link', 'Acme', 'none').heading

test('an email, its headers and its page are in the language that the request asks for', async () => {
  for (const [locale, tag] of [
    ['zh-TW', 'zh-Hant'],
    ['ca, es;q=0.9', 'es'],
    ['ar-EG', 'ar'],
    ['de_AT.UTF-8', 'de'],
  ] as const) {
    const email = await receive({ locale })
    assert.match(email.html, new RegExp(`<html lang="${tag}" dir="${tag === 'ar' ? 'rtl' : 'ltr'}"`))
    assert.ok(email.text.startsWith(heading(tag)), email.text)
    const answer = await visit(email.url)
    const page = await answer.text()
    assert.match(page, new RegExp(`<html lang="${tag}"`))
    assert.ok(page.includes(`<h1>${heading(tag)}</h1>`))
  }
})

test('without a language, or with none of ours, the email is in that of its app', async () => {
  const { key } = await newApp('swedish', { locale: 'sv' })
  for (const [locale, tag] of [
    [undefined, 'sv'],
    [null, 'sv'],
    ['tlh', 'sv'],
    ['ja', 'ja'],
  ] as const) {
    const email = await receive({ locale }, key)
    assert.match(email.html, new RegExp(`<html lang="${tag}"`))
    assert.match(await (await visit(email.url)).text(), new RegExp(`<html lang="${tag}"`))
  }
})

test('the answer names the language if the request asks for one, and a repeated one does not', async () => {
  const language = async (locale: unknown) => (await post({ locale })).headers.get('email-language')
  assert.deepEqual([await language('pt'), await language('tlh'), await language(5)], ['pt-BR', 'en', 'en'])
  assert.deepEqual([await language(undefined), await language(null)], [null, null])
  const body = validBody({ to: 'again@example.com', locale: 'de' }, service.store.now())
  const headers = { authorization: `Bearer ${service.key}`, 'idempotency-key': 'one' }
  assert.equal((await service.post(body, headers)).headers.get('email-language'), 'de')
  const replay = await service.post(body, headers)
  assert.deepEqual([replay.status, replay.headers.get('email-language')], [202, null])
  const other = await service.post({ ...body, locale: 'fr' }, headers)
  assert.equal(other.status, 400)
  assert.match(JSON.stringify(other.body), /idempotency_key_reused/)
})

test('a value of any kind is accepted, and appears in no log and no metric', async () => {
  const mark = 'marked-language'
  for (const locale of [0, true, [], [mark], {}, { [mark]: mark }, mark, `${mark},de`, mark.repeat(100), '<script>'])
    assert.equal((await post({ locale })).status, 202, JSON.stringify(locale))
  const metrics = await (await fetch(`${service.urls.ops}/metrics`)).text()
  assert.ok(!(service.log.join('') + metrics).includes(mark))
  assert.match(metrics, /postern_emails_language_total\{language="unknown"\} [1-9]/)
  assert.match(metrics, /postern_emails_language_total\{language="de"\} [1-9]/)
  assert.match(metrics, /postern_emails_language_total\{language="none"\} [1-9]/)
})

test('a value of any kind that is no language of ours gives the email that a request without it gives', async () => {
  const expiresAt = new Date(service.store.now() + 100 * 3_600_000).toISOString()
  const read = async (body: Record<string, unknown>) => {
    const { url, text, html } = await receive({ expiresAt, ...body })
    return [text, html].map((part) => part.replaceAll(url, 'LINK'))
  }
  const without = await read({})
  for (const locale of [null, 0, -1.5, true, false, '', 'tlh', 'x'.repeat(501), [], ['de'], {}, { de: 'de' }])
    assert.deepEqual(await read({ locale }), without, JSON.stringify(locale))
})

test('where no app is known, the page is in the language of the browser', async () => {
  const page = async (path: string) =>
    (await fetch(local(`${linksBaseUrl}${path}`), { headers: { 'accept-language': 'uk-UA, en;q=0.5' } })).text()
  for (const path of ['/nobody/nothing', '/acme/forged', '/none'])
    assert.match(await page(path), /<html lang="uk" dir="ltr"/, path)
})

const app = { ...service.app, settings: { ...service.app.settings, name: 'Acme' } }
const compose = (locale: string, lifeLeftMs: number) =>
  composeMessage({
    claim: {
      ...{ type: 'magic_link', acceptedAt: 0, expiresAt: lifeLeftMs },
      content: {
        to: 'a@b.test' as EmailAddress,
        url: 'https://a.test/?token=x',
        messageIdDomain: 'b.test',
        locale,
      },
    } as Parameters<typeof composeMessage>[0]['claim'],
    reference: 'em_x' as Reference,
    app,
    lifeLeftMs,
  })

test('a message of any length of life is written in each language, and says which', () => {
  const tags = fc.constantFrom(...languageTags)
  fc.assert(
    fc.property(tags, fc.integer({ min: 0, max: 400 * 86_400_000 }), (tag, lifeLeftMs) => {
      const message = compose(tag, lifeLeftMs).toString()
      assert.match(message, new RegExp(`\r\nContent-Language: ${tag}\r\n`))
      assert.doesNotMatch(message, /undefined|NaN|\{\w+\}/)
    }),
  )
})

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

test('another language is one file: it is listed, looked up, a setting of an app, and written', async (t) => {
  const folder = temporaryFolder(t)
  for (const part of ['bin', 'src', 'package.json']) cpSync(join(root, part), join(folder, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const tag = ['mt', 'cy', 'ga'].find((other) => !languageTags.includes(other)) ?? ''
  const file = readLanguageFile('en')
  const added = { ...file, magicLink: { ...file.magicLink, subject: `Into {app}, in ${tag}` } }
  writeFileSync(join(folder, 'src/templates/locales', `${tag}.json`), JSON.stringify(added))
  const env = { PATH: process.env.PATH, ...(await serveEnvironment(t)) }
  const postern = async (...args: string[]) =>
    (await run(process.execPath, [join(folder, 'bin/postern.js'), ...args], { env, cwd: folder })).stdout
  const listed = JSON.parse(await postern('languages', '--json')) as { tag: string }[]
  assert.deepEqual(listed.map((language) => language.tag).sort(), [...languageTags, tag].sort())
  assert.equal(await postern('languages', `xx, ${tag}-001;q=0.5, de;q=0.1`), `${tag}\n`)
  await postern('app', 'create', 'Acme', '--from', 'Acme <auth@acme.test>', '--locale', tag)
  for (const asked of [[], ['--locale', `${tag}, de`]])
    assert.match(
      await postern('preview', 'acme', ...asked),
      new RegExp(`^Language: ${tag}\nSubject: Into Acme, in ${tag}\n`),
    )
})

test('the command line reads no language before a command needs one, so help is as fast as without', async (t) => {
  const authHooks = join(temporaryFolder(t), 'hooks.mjs')
  writeFileSync(
    authHooks,
    `import { registerHooks } from 'node:module'
registerHooks({ load: (url, context, next) => (console.error(url), next(url, context)) })`,
  )
  const read = async (...args: string[]) =>
    (await run(process.execPath, ['--import', authHooks, join(root, 'bin/postern.js'), ...args])).stderr
  const help = await read('--help')
  assert.match(help, /src\/cli\/program\.ts/)
  assert.doesNotMatch(help, /\/templates\//)
  assert.match(await read('languages', 'de'), /templates\/locales\/choose-language\.ts/)
})
