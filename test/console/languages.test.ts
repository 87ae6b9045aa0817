/** Every language as a browser lays it out: emails and hosted pages, narrow and wide, in mail clients too. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { type OwnWords, ownWordsMax } from '../../src/domain/app/own-words.ts'
import { emailTypes } from '../../src/domain/request/email-kinds.ts'
import { escapeHtml } from '../../src/templates/html.ts'
import { languageOf, languageTags } from '../../src/templates/locales/locales.ts'
import { openBrowser } from '../support/browser.ts'
import { newVisitor, signIn, startBusyConsole } from '../support/console.ts'
import { lacking } from '../support/installed.ts'
import { longCode, longName, renderPages, renderSample, sampleNames } from '../support/language-samples.ts'
import { startTestService } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking('chromium')
const browser = skip === false ? await openBrowser({ after }) : null

/** Shows a document at each width, light and dark, and says of each what is wrong with it. */
async function assertFaultless(page: Page, html: string, { direction, what }: Shown): Promise<void> {
  await page.setContent(html)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 })
      const faults = await page.evaluate(findFaults, direction)
      assert.deepEqual(faults, [], `${what}, ${colorScheme}, ${width} px`)
    }
  }
}

type Shown = { readonly direction: string; readonly what: string }
const widths = [320, 390, 1280]

/** Runs in the browser: what reaches beyond its place, is cut off, cannot be read or runs the wrong way. */
function findFaults(direction: string): string[] {
  const faults: string[] = []
  if (document.documentElement.scrollWidth > window.innerWidth) faults.push('the page is too wide')
  const readColour = (colour: string): number[] => (colour.match(/[\d.]+/g) ?? []).map(Number)
  const measureLight = (colour: string): number => {
    const [red = 0, green = 0, blue = 0] = readColour(colour).map((part) => {
      const share = part / 255
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const findBackground = (element: Element): string => {
    const { backgroundColor } = getComputedStyle(element)
    const isOpaque = readColour(backgroundColor)[3] !== 0
    return isOpaque || element.parentElement === null ? backgroundColor : findBackground(element.parentElement)
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    const element = node.parentElement
    const range = document.createRange()
    range.selectNodeContents(node)
    const lines = [...range.getClientRects()].filter(({ width }) => width > 0)
    if (element === null || lines.length === 0 || node.nodeValue?.trim() === '') continue
    const fault = (what: string) => faults.push(`${what}: ${node.nodeValue?.trim().slice(0, 40)}`)
    const block = element.closest('h1, p, td, button, .button, section') ?? element
    const place = block.getBoundingClientRect()
    for (const { left, right } of lines) {
      if (left < -0.5 || right > window.innerWidth + 0.5) fault('outside the window')
      if (left < place.left - 1 || right > place.right + 1) fault('spilled')
    }
    for (let around: Element | null = element; around !== null; around = around.parentElement) {
      const { clientHeight, clientWidth, scrollHeight, scrollWidth } = around
      if (clientWidth > 0 && scrollWidth > clientWidth + 1) fault('cut off')
      if (getComputedStyle(around).overflowY === 'hidden' && scrollHeight > clientHeight + 1) fault('cut off')
    }
    const style = getComputedStyle(element)
    const [darker = 0, lighter = 0] = [style.color, findBackground(element)]
      .map(measureLight)
      .sort((one, other) => one - other)
    if ((lighter + 0.05) / (darker + 0.05) < 4.5) fault('hard to read')
    const isOurs = element.closest('[dir=ltr] a, .destination, .code') === null
    if (isOurs && style.direction !== direction) fault('wrong direction')
    const { textAlign } = getComputedStyle(block)
    const isStart = textAlign === 'start' || textAlign === (direction === 'rtl' ? 'right' : 'left')
    if (element.closest('.card h1, .card p, section h1, section p') !== null && !isStart) fault(textAlign)
  }
  return faults
}

test('no email overflows, is cut off, is hard to read or runs the wrong way', { skip }, async () => {
  assert.ok(browser)
  const page = await browser.newPage()
  for (const [l, tag] of languageTags.entries()) {
    const { direction } = languageOf(tag).strings
    for (const [n, type] of emailTypes.entries()) {
      // Each type with another name; all names and types meet over the languages.
      const app = sampleNames[(n + l) % sampleNames.length] ?? ''
      const { html } = renderSample(tag, type, { app })
      await assertFaultless(page, html, { direction, what: `${tag} ${type} ${app}` })
      if (type === 'organisation_invite') continue
      const code = (n + l) % 2 === 0 ? 'beside' : 'first'
      const withCode = renderSample(tag, type, { app, code }).html
      await assertFaultless(page, withCode, { direction, what: `${tag} ${type} ${app}, code ${code}` })
    }
  }
  await page.close()
})

/** As long as they may be: in words of the language, and in one word that has no place to break. */
const longestWords = (text: string): OwnWords[] =>
  [`${text} `, 'Donaudampfschifffahrt'].map((piece) => {
    const write = (name: keyof OwnWords) => piece.repeat(Math.floor(ownWordsMax[name] / piece.length)).trim()
    return { subject: write('subject'), text: write('text'), signOff: write('signOff') }
  })

test('the longest words of an app’s own overflow nothing, in any language', { skip }, async () => {
  assert.ok(browser)
  const page = await browser.newPage()
  for (const [l, tag] of languageTags.entries()) {
    const { direction, hostedPage } = languageOf(tag).strings
    const type = emailTypes[l % emailTypes.length] ?? 'magic_link'
    for (const own of longestWords(hostedPage.unknownAdvice.slice(0, 90).trim())) {
      const words = { [type]: { [tag]: own } }
      const { html } = renderSample(tag, type, { app: longName, words })
      assert.ok(html.replaceAll('\u2060', '').includes(escapeHtml(own.text)), tag)
      await assertFaultless(page, html, { direction, what: `${tag} ${type}, own words` })
    }
  }
  await page.close()
})

test('one click selects the whole code on one line, and nothing else', { skip }, async () => {
  assert.ok(browser)
  for (const width of widths) {
    const page = await browser.newPage({ viewport: { width, height: 900 } })
    for (const tag of ['en', 'ar', 'ja'])
      for (const code of ['beside', 'first'] as const) {
        await page.setContent(renderSample(tag, 'magic_link', { app: 'Acme', code }).html)
        await page.click('.code')
        assert.equal(await page.evaluate('getSelection().toString()'), longCode)
        const height = await page.evaluate("document.querySelector('.code').getBoundingClientRect().height")
        assert.ok(Number(height) < 50, `${tag}, ${width} px: ${height} px high`)
      }
    await page.close()
  }
})

test('no hosted page overflows, is cut off, is hard to read or runs the wrong way', { skip }, async () => {
  assert.ok(browser)
  const page = await browser.newPage()
  for (const [l, tag] of languageTags.entries()) {
    const { direction } = languageOf(tag).strings
    for (const [n, html] of renderPages(tag, longName).entries())
      await assertFaultless(page, html, { direction, what: `${tag}, page ${n}` })
    const short = renderPages(tag, sampleNames[l % sampleNames.length] ?? '')
    await assertFaultless(page, short[0] ?? '', { direction, what: tag })
  }
  await page.close()
})

/** Gmail shows the body of an email as a part of its own page, without its head and without `<bdi>`. */
const embed = (email: string, direction: string): string => {
  const body = /<body([^>]*)>([\s\S]*)<\/body>/.exec(email)
  return `<!doctype html><html dir="${direction}"><meta charset="utf-8"><div${body?.[1]}>${body?.[2]?.replace(/<\/?bdi[^>]*>/g, '')}</div></html>`
}

/** Runs in the browser: directions and alignments, and where the last stop of each paragraph is. */
function describeParagraphs(): string[] {
  return [...document.querySelectorAll('h1, .card p:not([dir])')].map((element) => {
    const { direction, textAlign } = getComputedStyle(element)
    const last = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).lastChild()
    const text = last?.nodeValue ?? ''
    if (last === null || !/[.。：:]$/.test(text)) return `${direction} ${textAlign}`
    const range = document.createRange()
    range.selectNodeContents(element)
    const letters = [...range.getClientRects()]
    range.setStart(last, text.length - 1)
    range.setEnd(last, text.length)
    const stop = range.getBoundingClientRect()
    const line = letters.filter(({ bottom, top }) => bottom > stop.top + 4 && top < stop.bottom - 4)
    const isLeft = stop.left <= Math.min(...line.map(({ left }) => left)) + 1
    return `${direction} ${textAlign}, stop ${isLeft ? 'left' : 'right'}`
  })
}

test('an email keeps its direction, and the place of its stops, inside a mail client of either direction', {
  skip,
}, async () => {
  assert.ok(browser)
  const page = await browser.newPage({ viewport: { width: 600, height: 900 } })
  for (const tag of languageTags)
    for (const type of emailTypes)
      for (const around of ['ltr', 'rtl']) {
        const { direction } = languageOf(tag).strings
        const { html } = renderSample(tag, type, { app: 'Acme' })
        await page.setContent(embed(html, around))
        const [start, end] = direction === 'rtl' ? ['right', 'left'] : ['left', 'right']
        const found = new Set(await page.evaluate(describeParagraphs))
        const wanted = [`${direction} ${start}`, `${direction} ${start}, stop ${end}`]
        assert.deepEqual([...found].sort(), wanted, `${tag} ${type} in ${around}`)
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
  assert.equal((await service.store.findApp('acme'))?.settings.locale, 'fr', 'the language of a preview is not saved')
  for (const [to, locale, language] of [
    ['ar@example.com', 'ar', 'ar'],
    ['app@example.com', '', 'fr'],
  ]) {
    await fetch(`${at}/apps/acme/test-email`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams({ to: to ?? '', type: 'magic_link', locale: locale ?? '', code: 'first' }),
    })
    const latest = `${service.urls.inbox}/api/inbox/latest?to=${to}`
    const found = await eventually(async () => {
      const answer = await fetch(latest)
      return answer.ok ? ((await answer.json()) as { language: string; code: string }) : null
    })
    assert.deepEqual([found.language, found.code], [language, '246813'])
  }
})

test('the list of languages marks the one of the app, and no other', async (t) => {
  const service = await startBusyConsole(t)
  const visitor = newVisitor(service, await signIn(service))
  const page = await (await visitor.get('/apps/acme/look')).text()
  const marked = [...page.matchAll(/<span class="soft">([\w-]+), the app's<\/span>/g)].map(([, tag]) => tag)
  assert.deepEqual(marked, ['en'])
})
