/** Hosted links in a real browser: what they open, and what burns nothing. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { linksBaseUrl, startHostedLinks } from '../support/hosted-links.ts'
import { lacking } from '../support/installed.ts'
import { atEnd, type Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const { service, receive, local, newApp } = await startHostedLinks({ after })
const skip = lacking('chromium')
let serial = 0

async function startAppPage(t: Scope) {
  const seen: string[] = []
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/auth'))
      seen.push(`${request.method} ${request.url} ${request.headers.referer ?? 'no referrer'}`)
    response.setHeader('content-type', 'text/html')
    response.end('<h1>signed in</h1>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => server.close())
  return { seen, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

test('in a browser: inbox, email, hosted page, button, and the app receives the token', {
  skip,
}, async (t) => {
  const appPage = await startAppPage(t)
  const { key } = await newApp(`browser-${serial++}`, { allowLocalhost: true })
  const context = await (await openBrowser(t)).newContext({ viewport: { width: 320, height: 640 } })
  const email = await receive({ url: `${appPage.origin}/auth?token=from-the-browser` }, key)
  // Acts as the proxy in front of the links listener.
  await context.route(`${linksBaseUrl}/**`, async (route) => {
    const url = local(route.request().url())
    const answer = await context.request.fetch(url, { method: route.request().method(), maxRedirects: 0 })
    await route.fulfill({ response: answer })
  })
  const inbox = await context.newPage()
  await inbox.goto(`${service.urls.inbox}/inbox`)
  await inbox.click('.inbox a')
  const opened = context.waitForEvent('page')
  await inbox.frameLocator('iframe').locator('table.button a').click()
  const page = await opened
  const faults: string[] = []
  page.on('console', (message) => void (message.type() === 'error' && faults.push(message.text())))
  await page.waitForSelector('button')
  assert.equal(page.url(), email.url)
  assert.match(String(await page.textContent('h1')), /Sign in to Acme/)
  const wide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
  assert.equal(await page.evaluate(wide), false)
  assert.deepEqual(appPage.seen, [], 'showing the page burnt nothing')
  await page.goto(local(email.url)) // from here on without the proxy, which cannot redirect a form
  await page.click('button')
  await page.waitForSelector('text=signed in')
  assert.deepEqual(appPage.seen, ['GET /auth?token=from-the-browser no referrer'])
  assert.deepEqual(faults, [])
})

test('row 47: in a browser: a scanner that runs scripts, prefetches and follows every link burns nothing', {
  skip,
}, async (t) => {
  const appPage = await startAppPage(t)
  const { key } = await newApp(`scanned-${serial++}`, {
    allowLocalhost: true,
    fallbackUrl: `https://127.0.0.1:1/get`,
  })
  const context = await (await openBrowser(t)).newContext()
  for (const url of [`${appPage.origin}/auth?token=precious`, 'acme://auth/magic?token=precious']) {
    const email = await receive({ url }, key)
    for (let visits = 0; visits < 3; visits++) {
      const page = await context.newPage()
      await page.setExtraHTTPHeaders(visits === 0 ? { 'sec-purpose': 'prefetch' } : {})
      await page.goto(local(email.url))
      const anchors = await page.locator('a').all()
      const links = await Promise.all(anchors.map(async (anchor) => (await anchor.getAttribute('href')) ?? ''))
      for (const link of links.filter((href) => /^http/.test(href))) {
        assert.doesNotMatch(link, /precious/)
        await page.goto(link).catch(() => {})
      }
      await page.close()
    }
  }
  assert.deepEqual(appPage.seen, [])
})

test('row 47: in a browser: a page that frames ours shows nothing of it', { skip }, async (t) => {
  const email = await receive({})
  const page = await (await openBrowser(t)).newPage()
  const refusals: string[] = []
  page.on('console', (message) => refusals.push(message.text()))
  await page.setContent(`<iframe src="${local(email.url)}"></iframe>`)
  await eventually(() => refusals.some((text) => /frame-ancestors|X-Frame-Options/i.test(text)))
  assert.equal(await page.frameLocator('iframe').locator('button').count(), 0)
})

test('in a browser: an app link is exact, and says what to do without the app', { skip }, async (t) => {
  const { key } = await newApp(`scheme-${serial++}`, { fallbackUrl: 'https://app.acme.test/get' })
  const email = await receive({ url: 'acme://auth/magic?token=exact%20token' }, key)
  const page = await (await openBrowser(t)).newPage({ javaScriptEnabled: false })
  await page.goto(local(email.url))
  assert.equal(await page.getAttribute('a.button', 'href'), 'acme://auth/magic?token=exact%20token')
  assert.match(String(await page.textContent('section')), /app is not installed/)
  assert.equal(await page.getAttribute('p.soft a', 'href'), 'https://app.acme.test/get')
})
