/** The inbox as a developer uses it: in a real browser, and from tests over its JSON. */
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { after, test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { chromium, lacking } from '../support/installed.ts'
import { startTestService, validBody } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const service = await startTestService({ after }, { settings: { allowLocalhost: true } })
const inbox = service.urls.inbox ?? ''
const skip = lacking({ chromium })

const latest = (to: string) =>
  eventually(async () => {
    const response = await fetch(`${inbox}/api/inbox/latest?to=${encodeURIComponent(to)}`)
    return response.status === 200 ? ((await response.json()) as Record<string, string>) : null
  })

/** `fetch` does not send these headers. */
const statusWith = (headers: Record<string, string>) =>
  new Promise<number | undefined>((resolve, reject) => {
    httpRequest(`${inbox}/api/inbox`, { headers }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })

test('an email appears in an open inbox by itself, and opens with link, parts and attempts', {
  skip,
}, async (t) => {
  const page = await (await openBrowser(t)).newPage({ viewport: { width: 360, height: 740 } })
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => void (message.type() === 'error' && faults.push(message.text())))
  await page.goto(`${inbox}/inbox`)
  assert.match(await page.textContent('main').then(String), /No email yet/)
  await service.post(
    validBody({ to: 'browser@example.com', url: 'http://localhost:9/auth?token=from-the-inbox' }),
  )
  await page.click('text=browser@example.com')
  assert.equal(await page.textContent('.mail h2'), 'Sign in to Acme')
  assert.equal(
    await page.getAttribute('.mail a.link', 'href'),
    'http://localhost:9/auth?token=from-the-inbox',
  )
  assert.match(String(await page.textContent('dl')), /in 1[45] min/)
  const frame = page.frameLocator('iframe')
  assert.equal(
    await frame.locator('table.button a').getAttribute('href'),
    'http://localhost:9/auth?token=from-the-inbox',
  )
  const size = await page.frames().at(-1)?.evaluate("getComputedStyle(document.querySelector('h1')).fontSize")
  assert.equal(size, '24px', 'styles apply')
  for (const [tab, expected] of [
    ['Text', /Press the button/],
    ['Headers', /Message-ID: <em_/],
    ['Raw', /multipart\/alternative/],
  ] as const) {
    await page.click(`.tabs >> text=${tab}`)
    assert.match(String(await page.textContent('pre')), expected)
  }
  assert.match(String(await page.textContent('dl')), /captured/)
  const overflow = await page.evaluate(
    'document.documentElement.scrollWidth > document.documentElement.clientWidth',
  )
  assert.equal(overflow, false, 'nothing is wider than a phone')
  assert.deepEqual(faults, [])
})

test('the frame runs no script and the page cannot be framed', async () => {
  await service.post(validBody({ to: 'frame@example.com' }))
  const { id } = await latest('frame@example.com')
  const frame = await fetch(`${inbox}/inbox/${id}/html`)
  const policy = frame.headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'.*sandbox allow-popups/)
  assert.doesNotMatch(policy, /script-src|allow-scripts|allow-same-origin/)
  const page = await fetch(`${inbox}/inbox/${id}`)
  assert.match(page.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/)
  assert.match(await page.text(), /<iframe [^>]*sandbox="allow-popups allow-popups-to-escape-sandbox"/)
})

test('row 43: a hostile name stays text in the inbox too', async () => {
  const organisationName = '<img src=x onerror=alert(1)>'
  await service.post(validBody({ to: 'hostile@example.com', type: 'organisation_invite', organisationName }))
  const { id } = await latest('hostile@example.com')
  for (const view of ['email', 'text', 'headers', 'raw']) {
    assert.doesNotMatch(await (await fetch(`${inbox}/inbox/${id}?view=${view}`)).text(), /<img/)
  }
})

test('one of each kind is sent; emails are read, kept as files and deleted', async () => {
  const own = await startTestService({ after })
  const at = own.urls.inbox ?? ''
  const post = (path: string) =>
    fetch(`${at}${path}`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin', accept: 'text/html' },
      redirect: 'manual',
    })
  const list = async () => (await (await fetch(`${at}/api/inbox`)).json()) as { id: string }[]
  assert.equal((await post('/inbox/examples')).status, 303)
  const captured = await eventually(async () => ((await list()).length === 4 ? list() : null))
  const [one, two] = captured.map(({ id }) => id)
  const unread = async () => (await (await fetch(`${at}/inbox`)).text()).match(/class="unread"/g)?.length
  assert.equal(await unread(), 4)
  assert.match(await (await fetch(`${at}/inbox/${one}?view=checks`)).text(), /Gmail clips/)
  assert.equal(await unread(), 3)
  const file = await fetch(`${at}/inbox/${one}/raw`)
  assert.equal(file.headers.get('content-type'), 'message/rfc822')
  assert.match(await file.text(), /^Message-ID: </m)
  assert.equal((await post(`/inbox/${one}/delete`)).status, 303)
  assert.equal((await fetch(`${at}/api/inbox/${two}`, { method: 'DELETE' })).status, 204)
  assert.deepEqual(
    (await list()).map(({ id }) => id).filter((id) => id === one || id === two),
    [],
  )
  assert.equal((await list()).length, 2)
  const foreign = { method: 'DELETE', headers: { origin: 'https://evil.test' } }
  assert.equal((await fetch(`${at}/api/inbox`, foreign)).status, 403)
  assert.equal((await fetch(`${at}/api/inbox`, { method: 'DELETE' })).status, 204)
  assert.deepEqual(await list(), [])
})

test('the JSON for tests: the newest email to an address, in any case', async () => {
  await service.post(validBody({ to: 'json@example.com', type: 'password_reset' }))
  await service.post(validBody({ to: 'json@example.com' }))
  const email = await eventually(async () => {
    const newest = await latest('JSON@example.com')
    return newest.type === 'magic_link' ? newest : null
  })
  assert.equal(email.url, 'https://app.acme.test/auth?token=abc')
  assert.equal(email.app, 'Acme')
  assert.match(String(email.expiresAt), /Z$/)
  assert.equal((await fetch(`${inbox}/api/inbox/latest?to=nobody@example.com`)).status, 404)
  assert.equal((await fetch(`${inbox}/inbox/em_nothing`)).status, 404)
})

test('row 48: other Hosts (DNS rebinding) and other Origins are refused', async () => {
  const { host } = new URL(inbox)
  assert.equal(await statusWith({ host }), 200)
  assert.equal(await statusWith({ host: `localhost:${new URL(inbox).port}` }), 200)
  assert.equal(await statusWith({ host: 'evil.test' }), 403)
  assert.equal(await statusWith({ host: '127.0.0.1.evil.test' }), 403)
  assert.equal(await statusWith({ host, origin: 'https://evil.test' }), 403)
  assert.equal(await statusWith({ host, origin: 'null' }), 403)
  assert.equal(await statusWith({ host, origin: `http://${host}` }), 200)
})

test('pages let the browser name their own origin', async () => {
  assert.equal((await fetch(`${inbox}/inbox`)).headers.get('referrer-policy'), 'same-origin')
})

test('long lives are shown in days and hours, and the page of a short email is one colour down to its end', {
  skip,
}, async (t) => {
  const expiresAt = new Date(service.store.now() + 3 * 86_400_000 + 60_000).toISOString()
  await service.post(validBody({ to: 'colour@example.com', expiresAt }))
  const { id } = await latest('colour@example.com')
  const browser = await openBrowser(t)
  for (const [colorScheme, expected] of [
    ['light', 'rgb(243, 244, 246)'],
    ['dark', 'rgb(17, 19, 23)'],
  ] as const) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 800, height: 2400 } })
    await page.goto(`${inbox}/inbox/${id}`)
    assert.match(String(await page.textContent('dl')), /in 3 d/)
    await page.goto(`${inbox}/inbox/${id}/html`)
    assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), expected)
    await page.close()
  }
})
