/** `postern check-link`: its verdict is that of a request, and it says what differs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postern, posternJson, serveAcme } from '../support/cli.ts'
import { send, validBody } from '../support/service.ts'

const links: [what: string, url: string][] = [
  ['an allowed one', 'https://app.acme.test/auth/verify?token=any'],
  ['different path', 'https://app.acme.test/other?token=any'],
  ['different host', 'https://elsewhere.test/auth/verify?token=any'],
  ['more than a token', 'https://app.acme.test/auth/verify?token=any&next=/home'],
  ['an app scheme', 'acme://auth/magic?token=any'],
  ['an unknown scheme', 'other://auth/magic?token=any'],
  ['not absolute', '/auth/verify?token=any'],
]

type Check = { allowed: boolean; refusal: { code: string; issues: { code: string }[] } | null }

test('a link is judged as in a request, whatever it is', async (t) => {
  const { api, key, env } = await serveAcme(t, { POSTERN_SMTP_URL: 'smtp://127.0.0.1:1' })
  const settings = ['--remove-allow-url', 'https://app.acme.test', '--allow-url', 'https://app.acme.test/auth/*']
  await posternJson(env, ['app', 'update', 'acme', ...settings, '--app-scheme', 'acme', '--hosted-links', 'off'])
  for (const [what, url] of links) {
    const ran = await postern(env, ['check-link', 'acme', url, '--json'])
    const check = JSON.parse(ran.out) as Check
    const { status, body } = await send(`${api}/v1/email`, JSON.stringify(validBody({ url })), {
      authorization: `Bearer ${key}`,
    })
    assert.equal(check.allowed, status === 202, what)
    assert.equal(ran.code, check.allowed ? 0 : 1, what)
    if (check.refusal === null) continue
    assert.equal(check.refusal.code, body.error.code, what)
    const issues = body.error.issues?.map(({ code }) => code) ?? []
    assert.deepEqual(
      check.refusal.issues.map(({ code }) => code),
      issues,
      what,
    )
  }
})

test('for people: each entry with the part that differs, and what to do', async (t) => {
  const { env } = await serveAcme(t, { POSTERN_SMTP_URL: 'smtp://127.0.0.1:1' })
  await posternJson(env, ['app', 'update', 'acme', '--allow-url', 'https://www.acme.test/auth/*'])
  const url = 'https://www.acme.test/sign-in?token=a-real-token'
  const ran = await postern(env, ['check-link', 'acme', url])
  assert.equal(ran.code, 1)
  assert.match(ran.out, /^url_not_allowed: .* To allow it: postern app update acme --allow-url/)
  assert.match(ran.out, /^https:\/\/app\.acme\.test +different host$/m)
  assert.match(ran.out, /^https:\/\/www\.acme\.test\/auth\/\* +different path$/m)
  assert.doesNotMatch(ran.out + ran.err, /a-real-token/)
  const fine = await postern(env, ['check-link', 'acme', 'https://app.acme.test/any?token=x'])
  assert.equal(fine.code, 0)
  assert.match(fine.out, /^The allow-list of acme allows the link\.[\s\S]*^https:\/\/app\.acme\.test +matches$/m)
  await posternJson(env, ['app', 'update', 'acme', '--allow-url', 'http://localhost:3000', '--allow-localhost'])
  const local = await postern(env, ['check-link', 'acme', 'http://localhost:5173/?token=x'])
  assert.match(local.out, /^http:\/\/localhost:3000 +different port$/m)
  assert.match(local.out, /^--allow-localhost +matches$/m)
  await posternJson(env, ['app', 'disable', 'acme'])
  assert.equal((await postern(env, ['check-link', 'acme', 'https://app.acme.test/any?token=x'])).code, 1)
  const disabled = await postern(env, ['check-link', 'acme', url, '--type', 'wrong'])
  assert.equal(disabled.code, 2)
  assert.match(disabled.err, /Allowed choices are magic_link/)
  const { out } = await postern(env, ['check-link', 'acme', url])
  assert.match(out, /The app is disabled: all its requests are refused/)
})
