/**
 * Every page at six widths, and at 200 % zoom (640 px): nothing that can be pressed lies outside the box that
 * shows it, and no page scrolls sideways.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { consoleAt, consolePages, signIn, startBusyConsole, useSession } from '../support/console.ts'
import { lacking } from '../support/installed.ts'

const widths = [640, 800, 1024, 1280, 1440, 1920]

/** The controls of which a part cannot be seen without scrolling sideways, by their text. */
const hiddenControls = `[...document.querySelectorAll('a, button, input, select, textarea, summary')]
  .filter((each) => each.checkVisibility() && !each.closest('.skip, .hidden') && !each.matches('.skip'))
  .filter((each) => {
    const { left, right, width } = each.getBoundingClientRect()
    if (width === 0) return false
    for (let box = each.parentElement; box !== null; box = box.parentElement) {
      const style = getComputedStyle(box)
      if (box !== document.documentElement && style.overflowX === 'visible') continue
      const edge = box === document.documentElement ? innerWidth : box.getBoundingClientRect().left + box.clientLeft + box.clientWidth
      const start = box === document.documentElement ? 0 : box.getBoundingClientRect().left
      if (right > edge + 1 || left < start - 1) return true
    }
    return false
  })
  .map((each) => each.textContent.trim() || each.name)`

test('nothing that can be pressed lies outside its box, at six widths', {
  skip: lacking('chromium'),
}, async (t) => {
  const service = await startBusyConsole(t)
  const at = consoleAt(service)
  const context = await (await openBrowser(t)).newContext()
  await useSession(context, at, await signIn(service))
  const page = await context.newPage()
  const paths = [...(await consolePages(service)), '/emails?state=failed&within=10080']
  for (const path of paths) {
    await page.goto(`${at}${path}`)
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 })
      assert.deepEqual(await page.evaluate(hiddenControls), [], `${path} at ${width} px`)
      const beyond = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
      assert.ok(Number(beyond) <= 0, `${path}: ${beyond} px wider than ${width}`)
    }
  }
})
