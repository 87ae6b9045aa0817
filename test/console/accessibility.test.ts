/**
 * Every page held against axe (WCAG 2.2 A and AA, and best practice), in light and dark, on a desk and on a
 * phone, full and empty; and what axe does not see: sideways scroll, controls that Tab does not reach, text
 * that is too small.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { openBrowser } from '../support/browser.ts'
import { consoleAt, consolePages, signIn, startBusyConsole, useSession } from '../support/console.ts'
import { countControls, newHands } from '../support/hands.ts'
import { lacking } from '../support/installed.ts'
import { startTestService, validBody } from '../support/service.ts'
import type { Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking('chromium')
const axe = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

type Violation = { id: string; nodes: { html: string; failureSummary: string }[] }

async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  const options = JSON.stringify({ runOnly: tags, resultTypes: ['violations'] })
  // Frames hold emails, which have tests of their own.
  const found = await page.evaluate(`axe.run({ exclude: [['iframe']] }, ${options})`)
  const { violations } = found as { violations: Violation[] }
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
  )
}

const sizes = [
  ['light', 1280],
  ['dark', 1280],
  ['light', 390],
  ['dark', 390],
] as const

/** Smaller text is hard to read; the smallest is that of the charts. */
const smallestText = `Math.min(...[...document.querySelectorAll('main *, footer *')]
  .filter((each) => each.checkVisibility() && [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== ''))
  .map((each) => parseFloat(getComputedStyle(each).fontSize)))`

async function checkPages(
  scope: Scope,
  at: string,
  pages: readonly string[],
  prepare: (context: Awaited<ReturnType<Awaited<ReturnType<typeof openBrowser>>['newContext']>>) => Promise<void>,
) {
  const browser = await openBrowser(scope)
  for (const [colorScheme, width] of sizes) {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } })
    await prepare(context)
    const page = await context.newPage()
    for (const path of pages) {
      const where = `${path} ${colorScheme} ${width}`
      await page.goto(`${at}${path}`)
      assert.deepEqual(await violationsOf(page), [], where)
      assert.ok(Number(await page.evaluate(smallestText)) >= 12, where)
      for (const narrow of width === 390 ? [390, 320] : [width]) {
        await page.setViewportSize({ width: narrow, height: 900 })
        const beyond = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
        assert.ok(Number(beyond) <= 0, `${where}: ${beyond} px wider than ${narrow}`)
      }
      await page.setViewportSize({ width, height: 900 })
    }
    await context.close()
  }
}

test('every page, with something on it', { skip }, async (t) => {
  const service = await startBusyConsole(t)
  const at = consoleAt(service)
  const signed = await signIn(service)
  await checkPages(t, at, await consolePages(service), (context) => useSession(context, at, signed))
})

test('every page, with nothing on it', { skip }, async (t) => {
  const service = await startTestService(t, { isDev: false })
  const at = consoleAt(service)
  const signed = await signIn(service)
  const pages = [
    '/',
    '/apps',
    '/new-app',
    '/apps/acme',
    '/apps/acme/keys',
    '/emails',
    '/delivery',
    '/audit?actor=nobody',
    '/settings/tokens',
    '/settings/transports',
    '/account',
  ]
  await checkPages(t, at, pages, (context) => useSession(context, at, signed))
  await checkPages(t, at, ['/sign-in'], async () => {})
})

test('the inbox, full and empty', { skip }, async (t) => {
  const service = await startTestService(t)
  const at = service.urls.console ?? ''
  await checkPages(t, at, ['/', '/inbox'], async () => {})
  await service.post(validBody({ to: 'ada@example.com' }))
  const id = await eventually(async () => {
    const response = await fetch(`${at}/api/inbox/latest`)
    return response.status === 200 ? ((await response.json()) as { id: string }).id : null
  })
  await checkPages(
    t,
    at,
    ['/', '/inbox', `/inbox/${id}`, `/inbox/${id}?view=phone-dark`, `/inbox/${id}?view=raw`],
    async () => {},
  )
})

test('Tab reaches every control of every page', { skip }, async (t) => {
  const service = await startBusyConsole(t)
  const at = consoleAt(service)
  const context = await (await openBrowser(t)).newContext({ viewport: { width: 1280, height: 900 } })
  await useSession(context, at, await signIn(service))
  const page = await context.newPage()
  await page.route('**/live?*', (route) => route.abort()) // what changes meanwhile, such as an attempt, changes the controls
  for (const path of await consolePages(service)) {
    await page.goto(`${at}${path}`)
    const [expected, reached] = [await countControls(page), await newHands(page).tour()]
    assert.equal(reached, expected, path)
  }
})
