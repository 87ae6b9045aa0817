/** Auth servers, connected from an app that has nothing, by keyboard, to the first email in the inbox. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { findSystem } from '../../src/domain/auth-hooks/auth-hooks.ts'
import { authHookNames, sign } from '../support/auth-hooks.ts'
import { openBrowser } from '../support/browser.ts'
import { newHands } from '../support/hands.ts'
import { lacking } from '../support/installed.ts'
import { newSender, startTestService, testSettings } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking('chromium')
const service = await startTestService({ after }, { authHooks: true, linksBaseUrl: 'https://links.acme.test' })
const at = service.urls.console ?? ''

/** A message of each system, and the page that it needs. */
const kinds = {
  supabase: 'signup',
  kratos: 'login_code_valid',
  zitadel: 'user.human.email.code.added',
  logto: 'SignIn',
} as const

for (const name of authHookNames)
  test(`${name}: secret, settings, check, and its first call is an email`, { skip }, async (t) => {
    const slug = `new-${name}`
    const allowedUrls = ['https://app.acme.test', 'https://auth.example.com', 'https://id.example.com']
    await newSender(service, slug, { ...testSettings, allowedUrls, allowCodes: true })
    const page = await (await openBrowser(t)).newPage()
    const hands = newHands(page)
    const { auth, title = '', sample } = findSystem(name) ?? {}
    await page.goto(`${at}/apps/${slug}`)
    await hands.press('Connect')
    await hands.press(title)
    const isGiven = auth?.kind === 'signed' && auth.makeSecret === null
    const given = 'S8bZ1kQ0pX3vL6nT9wR2yU5iO7aD4fGh'
    if (isGiven) await hands.type('Secret', 'too short')
    if (isGiven) {
      await hands.press('Keep the secret')
      assert.match(String(await page.textContent('main')), /16 to 256 characters/)
      await hands.type('Secret', given)
    }
    await hands.press(isGiven ? 'Keep the secret' : 'Create a secret')
    const secret = isGiven ? given : String(await page.textContent('.new-secret code'))
    await page.goto(`${at}/apps/${slug}/connect/${name}`)
    assert.doesNotMatch(String(await page.content()), /psh_\w{49}|whsec_[A-Za-z0-9+/]{32}|S8bZ1kQ0/, 'shown once')
    await hands.type('Page of the app', 'https://elsewhere.test/code')
    await hands.press('Save')
    assert.match(String(await page.textContent('.problem')), /not allowed|differs|allow/)
    await hands.type('Page of the app', 'https://app.acme.test/code')
    await hands.press('Save')
    assert.match(String(await page.textContent('main')), /Saved/)
    const [row] = await page.locator('tr', { hasText: kinds[name] }).allTextContents()
    assert.match(row ?? '', /sent/)
    const body = JSON.stringify(sample?.(kinds[name])).replaceAll('someone@', `${name}@`)
    const answer = await fetch(`${service.urls.authHooks}/${name}/${slug}`, {
      method: 'POST',
      headers: sign(name, secret, body, service.store.now()),
      body,
    })
    assert.equal(await answer.text(), '{}')
    const to = /[\w.+-]+@example\.com/.exec(body)?.[0] ?? ''
    await eventually(
      async () => (await fetch(`${service.urls.inbox}/api/inbox/latest?app=${slug}&to=${encodeURIComponent(to)}`)).ok,
    )
    await page.goto(`${at}/apps/${slug}/connect`)
    await eventually(async () => {
      await page.reload()
      return /in use/.test(String(await page.locator('tr', { hasText: title }).textContent()))
    })
  })

test('an address that the app does not allow is allowed and saved in one step', { skip }, async (t) => {
  const sender = await newSender(service, 'one-step', testSettings)
  const page = await (await openBrowser(t)).newPage()
  const hands = newHands(page)
  await page.goto(`${at}/apps/one-step/connect/supabase`)
  await hands.type('Verify URL', 'https://ref.supabase.test/auth/v1/verify')
  await hands.press('Save')
  assert.match(String(await page.textContent('main')), /not allowed|allow-list/)
  await hands.press('Allow these addresses and save')
  const { settings } = (await service.store.findApp(sender.app.id)) ?? {}
  assert.deepEqual(settings?.allowedUrls, ['https://app.acme.test', 'https://ref.supabase.test/auth/v1/verify'])
  assert.equal(settings?.authHooks?.supabase?.verifyUrl, 'https://ref.supabase.test/auth/v1/verify')
  await page.goto(`${at}/apps/one-step/connect/supabase`)
  await hands.type('Page of the app', 'http://plain.example/x?y=z')
  await hands.press('Save')
  assert.doesNotMatch(String(await page.textContent('main')), /Allow these addresses/)
})
