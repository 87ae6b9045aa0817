/** Every language as a browser lays it out: emails and hosted pages, narrow and wide, in mail clients too. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { type AppSettings, defaultSettings } from '../../src/domain/app/settings.ts'
import { parseAuthLink } from '../../src/domain/request/auth-link.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { type EmailType, emailTypes } from '../../src/domain/request/email-request.ts'
import { renderEmail } from '../../src/templates/emails/render-email.ts'
import { findLanguage, languageTags } from '../../src/templates/locales/locales.ts'
import { expiredPage, openPage, unavailablePage, unknownPage } from '../../src/templates/pages/hosted-page.ts'
import { openBrowser } from '../support/browser.ts'
import { chromium, lacking } from '../support/installed.ts'
import { startTestService } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking({ chromium })
const browser = skip === false ? await openBrowser({ after }) : null
const longName = 'Donaudampfschifffahrtsgesellschaft'

const newApp = (name: string): AppSettings => ({
  ...defaultSettings,
  name,
  from: { name, address: 'auth@acme.test' },
  supportContact: 'help@acme.test',
  fallbackUrl: 'https://acme.test/get',
})

const render = (locale: string, type: EmailType, name: string) =>
  renderEmail({
    app: newApp(name),
    type,
    content: {
      ...{ to: 'ana@example.com' as EmailAddress, messageIdDomain: 'acme.test', locale },
      url: `https://app.acme.test/auth?token=${'aB3-'.repeat(40)}`,
      ...{ organisationName: longName, inviterName: 'דנה كريم 山田' },
    },
    expiresAt: Date.UTC(2026, 10, 20, 17, 5),
    lifeLeftMs: 900_000,
  }).html

/** Elements that reach beyond the window, or hold more than they show. */
const findOverflow = (page: Page) =>
  page.evaluate(() => {
    const wide = document.documentElement.scrollWidth > window.innerWidth ? ['the page'] : []
    const outside = [...document.querySelectorAll('h1, p, a, button, td, section')].filter((element) => {
      const { left, right, width } = element.getBoundingClientRect()
      return width > 0 && (left < -0.5 || right > window.innerWidth + 0.5)
    })
    return [...wide, ...outside.map((element) => `${element.tagName}: ${element.textContent?.slice(0, 40)}`)]
  })

const widths = [320, 390, 1280]
const names = ['Acme', longName, 'عيادة', 'さくら銀行']

test('no email is wider than its window, whatever the language, the name and the width', {
  skip,
}, async () => {
  assert.ok(browser)
  const page = await browser.newPage()
  for (const tag of languageTags)
    for (const [n, type] of emailTypes.entries()) {
      // Each type with another name; all names and types meet over the languages.
      const name = names[(n + languageTags.indexOf(tag)) % names.length] ?? ''
      await page.setContent(render(tag, type, name))
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 })
        assert.deepEqual(await findOverflow(page), [], `${tag} ${type} ${name} ${width}`)
      }
    }
  await page.close()
})

test('no hosted page is wider than its window', { skip }, async () => {
  assert.ok(browser)
  const page = await browser.newPage({ viewport: { width: 320, height: 800 } })
  const destination = parseAuthLink('acme://auth/verify?token=x', new Set(['acme']))
  assert.ok(destination.ok)
  for (const tag of languageTags) {
    const language = findLanguage(tag)
    const app = newApp(longName)
    const opening = { ...language, app, destination: destination.value, destinationName: 'acme:' }
    for (const { body } of [
      ...emailTypes.map((type) => openPage({ ...opening, type })),
      ...[expiredPage(language, app), unknownPage(language), unavailablePage(language)],
    ]) {
      await page.setContent(body)
      assert.deepEqual(await findOverflow(page), [], tag)
    }
  }
  await page.close()
})

/** Gmail shows the body of an email as a part of its own page, without its head and without `<bdi>`. */
const embed = (email: string, direction: string): string => {
  const body = /<body([^>]*)>([\s\S]*)<\/body>/.exec(email)
  return `<!doctype html><html dir="${direction}"><meta charset="utf-8"><div${body?.[1]}>${body?.[2]?.replace(/<\/?bdi[^>]*>/g, '')}</div></html>`
}

test('an email keeps its direction inside a mail client that is written the other way', {
  skip,
}, async () => {
  assert.ok(browser)
  const page = await browser.newPage({ viewport: { width: 600, height: 900 } })
  for (const tag of languageTags) {
    const { direction } = findLanguage(tag).strings
    await page.setContent(
      embed(render(tag, 'organisation_invite', 'Acme'), direction === 'rtl' ? 'ltr' : 'rtl'),
    )
    const styles = await page.evaluate(() =>
      [...document.querySelectorAll('h1, .card p:not([dir])')].map((element) => {
        const { direction, textAlign } = getComputedStyle(element)
        return `${direction} ${textAlign}`
      }),
    )
    const start = direction === 'rtl' ? 'right' : 'left'
    assert.deepEqual([...new Set(styles)], [`${direction} ${start}`], tag)
  }
  await page.close()
})

test('a preview and a test email are in the language that is chosen, and else in the app’s', async (t) => {
  const service = await startTestService(t, { settings: { locale: 'de' } })
  const at = service.urls.console ?? ''
  const preview = async (chosen: string) =>
    /<html lang="([^"]+)" dir="([^"]+)">/
      .exec(await (await fetch(`${at}/apps/acme/look/email?type=magic_link&in=${chosen}`)).text())
      ?.slice(1)
  assert.deepEqual(await preview('ar'), ['ar', 'rtl'])
  assert.deepEqual(await preview(''), ['de', 'ltr'])
  assert.deepEqual(await preview('xx'), ['de', 'ltr'])
  const saved = await fetch(`${at}/apps/acme/look`, {
    method: 'POST',
    headers: { 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ locale: 'fr', type: 'password_reset', in: 'ja' }),
    redirect: 'manual',
  })
  assert.match(saved.headers.get('location') ?? '', /type=password_reset&in=ja/)
  assert.equal(
    (await service.store.findApp('acme'))?.settings.locale,
    'fr',
    'the language of a preview is not saved',
  )
  for (const [to, locale, language] of [
    ['ar@example.com', 'ar', 'ar'],
    ['app@example.com', '', 'fr'],
  ]) {
    await fetch(`${at}/apps/acme/test-email`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams({ to: to ?? '', type: 'magic_link', locale: locale ?? '' }),
    })
    const latest = `${service.urls.inbox}/api/inbox/latest?to=${to}`
    const found = await eventually(async () => {
      const answer = await fetch(latest)
      return answer.ok ? ((await answer.json()) as { language: string }) : null
    })
    assert.equal(found.language, language)
  }
})
