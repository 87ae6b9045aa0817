/**
 * Uses a page by keyboard alone, as somebody does who has no mouse: Tab to a control, by the name that is
 * read out, then type or press Enter.
 */
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'

/** The name of the control that has the focus: its label, or its text. Runs in the page. */
const focusedName = `(() => {
  const { activeElement: at } = document
  if (at === null || at === document.body) return ''
  const label = at.labels?.[0]?.textContent ?? at.getAttribute('aria-label') ?? at.textContent
  return String(label).trim()
})()`

const tabsMax = 120
const paintsMax = 20

export const newHands = (page: Page) => {
  /** Presses Tab until a control of this name has the focus. */
  const tabTo = async (name: string): Promise<void> => {
    const seen: string[] = []
    for (let tabs = 0; tabs < tabsMax; tabs++) {
      await page.keyboard.press('Tab')
      const focused = String(await page.evaluate(focusedName))
      if (focused === name) return
      seen.push(focused)
    }
    assert.fail(`Tab does not reach "${name}" on ${page.url()}: ${[...new Set(seen)].join(' | ')}`)
  }
  /** Presses Enter on a control that leads to another page, and waits for it. */
  const press = async (name: string): Promise<void> => {
    await tabTo(name)
    const navigated = page.waitForEvent('framenavigated', (frame) => frame === page.mainFrame())
    await page.keyboard.press('Enter')
    await navigated
    await page.waitForLoadState('load')
  }
  const type = async (name: string, text: string): Promise<void> => {
    await tabTo(name)
    // A fault above the form has a link of the same name to the field.
    if (await page.evaluate("document.activeElement.tagName === 'A'")) await page.keyboard.press('Enter')
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type(text)
  }
  /** Chooses the option that begins with this text. */
  const choose = async (name: string, option: string): Promise<void> => {
    await tabTo(name)
    await page.keyboard.type(option)
  }
  /** A frame in another process gets the focus after the press has returned, and lets go of it as late. */
  const focusAfter = async (last: string): Promise<string> => {
    const most = (await page.locator('iframe').count()) === 0 ? 0 : paintsMax
    for (let paints = 0; ; paints++) {
      const id = String(await page.evaluate(focusedIndex))
      if ((id !== '-1' && id !== last) || paints === most) return id
      await page.evaluate('new Promise(requestAnimationFrame)')
    }
  }
  /** Every control that Tab reaches, in its order, until the focus comes back. */
  const tour = async (): Promise<number> => {
    const ids = new Set<string>()
    let [first, last] = ['', '']
    for (let tabs = 0; tabs < 400; tabs++) {
      await page.keyboard.press('Tab')
      const id = await focusAfter(last)
      if (id === '-1') continue // past the end, or on the way into a frame or out of it
      if (id === first && id !== last) break // others may be seen again, on the way out of a frame
      first ||= id
      ids.add(id)
      last = id
    }
    return ids.size
  }
  return { tabTo, press, type, choose, tour }
}

const controls = `[...document.querySelectorAll('a[href], button, input, select, summary, iframe, [tabindex="0"]')]`
const focusedIndex = `${controls}.indexOf(document.activeElement)`

/** Visible controls that the keyboard must reach. */
export const countControls = (page: Page): Promise<number> =>
  page.evaluate(
    `${controls}.filter((each) => each.type !== 'hidden' && !each.disabled && !(each.type === 'radio' && !each.checked) && each.checkVisibility({ visibilityProperty: true })).length`,
  )
