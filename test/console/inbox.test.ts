/** The inbox as a developer uses it: in a real browser, and from tests over its JSON. */
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { after, test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { lacking } from '../support/installed.ts'
import { newSender, refusalsOf, startTestService, testSettings, validBody } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const service = await startTestService({ after }, { settings: { allowLocalhost: true } })
const inbox = service.urls.inbox ?? ''
const skip = lacking('chromium')

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
  await service.post(validBody({ to: 'browser@example.com', url: 'http://localhost:9/auth?token=from-the-inbox' }))
  await page.click('text=browser@example.com')
  assert.equal(await page.textContent('.mail h2'), 'Sign in to Acme')
  assert.equal(await page.getAttribute('.mail a.link', 'href'), 'http://localhost:9/auth?token=from-the-inbox')
  assert.match(String(await page.textContent('dl')), /in 1[45] min/)
  const frame = page.frameLocator('iframe')
  assert.equal(
    await frame.locator('table.button a').getAttribute('href'),
    'http://localhost:9/auth?token=from-the-inbox',
  )
  const size = await page.frames().at(-1)?.evaluate("getComputedStyle(document.querySelector('h1')).fontSize")
  assert.equal(size, '24px', 'styles apply')
  for (const [tab, expected] of [
    ['Text', /Open the link/],
    ['Headers', /Message-ID: <em_/],
    ['Raw', /multipart\/alternative/],
  ] as const) {
    await page.click(`.tabs >> text=${tab}`)
    assert.match(String(await page.textContent('pre')), expected)
  }
  assert.match(String(await page.textContent('dl')), /captured/)
  const overflow = await page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth')
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
  const read = async (path: string) => (await fetch(`${at}${path}`)).text()
  const mainButton = /<button class="main">Send one of each kind/
  assert.match(await read('/inbox'), mainButton)
  assert.equal((await post('/inbox/examples')).status, 303)
  const captured = await eventually(async () => ((await list()).length === 4 ? list() : null))
  const [one, two] = captured.map(({ id }) => id)
  const unread = async () => (await read('/inbox')).match(/class="unread"/g)?.length
  assert.equal(await unread(), 4)
  assert.doesNotMatch(await read('/inbox'), mainButton)
  assert.match(await read(`/inbox/${one}?view=checks`), /Gmail clips/)
  assert.equal(await unread(), 3)
  const attempt = await eventually(async () => /<li class="delivered">.*/.exec(await read(`/emails/${one}`)))
  assert.match(attempt[0], /<b>captured<\/b>/)
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

type Summary = { id: string; seq: number; to: string; type: string; receivedAt: string; code?: string | null }

/** A service of its own, whose emails come from two apps. */
async function startWaiting() {
  const own = await startTestService({ after }, { settings: { allowCodes: true } })
  const shop = await newSender(own, 'shop', { ...testSettings, name: 'The Shop' })
  const post = (change: object, key = own.key) =>
    own.post(validBody(change as Record<string, unknown>), { authorization: `Bearer ${key}` })
  const ask = async (path: string, query: Record<string, string> = {}) => {
    const answer = await fetch(`${own.urls.inbox}/api/inbox${path}?${new URLSearchParams(query)}`)
    const body = (await answer.json()) as Summary & Summary[] & { error: { code: string; message: string } }
    return { status: answer.status, cursor: answer.headers.get('inbox-cursor') ?? '', body }
  }
  return { own, shop, post, ask }
}

test('a wait ends with the email that fits, whether it is there, comes later or does not come', async () => {
  const { post, ask, own, shop } = await startWaiting()
  const to = 'waits@example.com'
  const later = ask('/wait', { to, type: 'password_reset', app: 'shop', timeout: '20' })
  await post({ to })
  await post({ to, type: 'password_reset' })
  await post({ to: 'other@example.com', type: 'password_reset' }, shop.key)
  await post({ to: to.toUpperCase(), type: 'password_reset', code: '246813' }, shop.key)
  const nobody = ask('/wait', { to: 'nobody@example.com', timeout: '5' })
  const { status, body } = await Promise.race([later, nobody])
  assert.deepEqual([status, body.type, body.code], [200, 'password_reset', null], 'this app shows no codes')
  const first = await ask('/wait', { to })
  assert.deepEqual([first.status, first.body.seq], [200, 1], 'what is there is given at once, the oldest first')
  await post({ to, code: '246813' })
  const next = await ask('/wait', { to, after: String(body.seq) })
  assert.equal(next.body.code, '246813')
  const page = await (await fetch(`${own.urls.inbox}/inbox/${next.body.id}`)).text()
  assert.match(page, /Code <span class="copy"><code[^>]*>246813/)
  const late = await ask('/wait', { to, after: String(next.body.seq), timeout: '0.05' })
  assert.deepEqual([late.status, late.body.error.code], [404, 'no_such_email'])
  assert.match(late.body.error.message, /magic_link, .* ago; password_reset, .* ago; password_reset, /)
  const three = late.body.error.message.match(/ ago/g)
  assert.equal(three?.length, 3, 'of four')
  const any = await ask('/wait', { type: 'organisation_invite', timeout: '0' })
  assert.equal(any.body.error.message, 'No such email came in time.')
  const none = await ask('/wait', { to: 'nobody@example.com', timeout: '0' })
  assert.match(none.body.error.message, /none to this address/)
  await own.stop()
})

test('a list is filtered by each part, and its cursor leaves out what was there', async () => {
  const { post, ask, shop } = await startWaiting()
  await post({ to: 'ada@example.com' })
  await post({ to: 'bob@example.com', type: 'email_verification' }, shop.key)
  await eventually(async () => (await ask('')).body.length === 2)
  const list = async (query: Record<string, string>) => (await ask('', query)).body.map(({ seq }) => seq)
  assert.deepEqual(await list({}), [2, 1])
  assert.deepEqual(await list({ limit: '1' }), [2])
  assert.deepEqual(await list({ to: 'ADA@example.com' }), [1])
  assert.deepEqual(await list({ type: 'email_verification' }), [2])
  assert.deepEqual([await list({ app: 'acme' }), await list({ app: 'The Shop' })], [[1], [2]])
  assert.deepEqual(await list({ q: ' BOB ' }), [2])
  const [newest] = (await ask('')).body
  assert.equal((await list({ after: newest?.receivedAt ?? '' }))[0], 2, 'of its very millisecond')
  assert.deepEqual([await list({ after: '1' }), await list({ after: '2' })], [[2], []])
  assert.deepEqual(await list({ after: '2020-01-01T00:00:00Z' }), [2, 1])
  assert.deepEqual(await list({ after: '2999-01-01T00:00:00Z' }), [])
  const { cursor } = await ask('')
  await post({ to: 'ada@example.com', type: 'password_reset' })
  assert.equal((await ask('/wait', { after: cursor })).body.type, 'password_reset')
  assert.equal((await ask('/latest', { type: 'magic_link' })).body.to, 'ada@example.com')
})

test('what is asked wrongly is said, and no wait is longer than it may be', async () => {
  const { ask } = await startWaiting()
  for (const [path, query, said] of [
    ['/wait', { timeout: '26' }, /at most 25/],
    ['/wait', { timeout: 'x' }, /number of seconds/],
    ['/wait', { after: 'yesterday' }, /Inbox-Cursor/],
    ['/wait', { after: '2026-01-01T00:00:00' }, /a time with its zone/],
    ['', { type: 'newsletter' }, /magic_link/],
    ['', { limit: '0' }, /1 to 500/],
    ['', { limit: '1.5' }, /whole/],
    ['/latest', { type: 'newsletter' }, /magic_link/],
  ] as const) {
    const { status, body } = await ask(path, query)
    assert.equal(status, 400, path)
    assert.match(body.error.message, said)
  }
})

test('a hundred wait independently: each gets what it waits for, and nothing is warned of', async (t) => {
  const { post, ask, own } = await startWaiting()
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => void warnings.push(name)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  // A look whether it is full takes a place for a moment.
  const wait = async (to: string): ReturnType<typeof ask> => {
    const answer = await ask('/wait', { to, timeout: '25' })
    return answer.status === 429 ? wait(to) : answer
  }
  const [ada, bob] = ['ada@example.com', 'bob@example.com']
  const others = Array.from({ length: 97 }, () => wait('nobody@example.com'))
  const [forAda, forBob] = [Promise.all([wait(ada), wait(ada)]), wait(bob)]
  await eventually(async () => (await ask('/wait', { timeout: '0' })).status === 429)
  await post({ to: bob })
  assert.equal((await forBob).body.to, bob)
  await post({ to: ada })
  assert.deepEqual(
    (await forAda).map(({ body }) => [body.to, body.seq]),
    [
      [ada, 2],
      [ada, 2],
    ],
  )
  await own.stop()
  assert.deepEqual([...new Set((await Promise.all(others)).map(({ status }) => status))], [404])
  assert.deepEqual(
    warnings.filter((name) => name === 'MaxListenersExceededWarning'),
    [],
  )
})

test('a hundred wait, the next is refused, and a client that leaves makes room', async () => {
  const { ask, own } = await startWaiting()
  const url = `${own.urls.inbox}/api/inbox/wait?to=nobody@example.com&timeout=25`
  const isFull = async () => (await ask('/wait', { timeout: '0' })).status === 429
  // A look whether it is full takes a place for a moment.
  const waitForPlace = async (options: RequestInit): Promise<Response> => {
    const response = await fetch(url, options)
    return response.status === 429 ? waitForPlace(options) : response
  }
  const fill = (options: RequestInit = {}) =>
    Promise.allSettled(Array.from({ length: 100 }, () => waitForPlace(options)))
  const gone = new AbortController()
  const left = fill({ signal: gone.signal })
  await eventually(isFull)
  gone.abort()
  await left
  await eventually(async () => !(await isFull()))
  const stopped = fill()
  await eventually(isFull)
  await own.stop()
  const statuses = (await stopped).map((each) => (each.status === 'fulfilled' ? each.value.status : 'lost'))
  assert.deepEqual([...new Set(statuses)], [404], 'a stop ends each wait with an answer')
})

test('the last refused requests of all apps are shown, however many apps there are', async (t) => {
  const dev = await startTestService(t)
  const senders = []
  for (let n = 0; n < 7; n++) senders.push(await newSender(dev, `many-${n}`))
  for (const { key } of senders) await dev.post(validBody({ to: 'not an address' }), { authorization: `Bearer ${key}` })
  for (const { app } of senders) await eventually(async () => (await refusalsOf(dev.store, app.id)).length === 1)
  const page = await (await fetch(`${dev.urls.inbox}/inbox`)).text()
  const shown = [...page.matchAll(/many-(\d) ·/g)].map(([, n]) => Number(n))
  assert.equal(shown.length, 5)
  assert.ok(shown.includes(6) && !shown.includes(0), shown.join())
})
