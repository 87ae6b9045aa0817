/** Pages that stay up to date by themselves, and do not disturb the person who works in them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import { openBrowser } from '../support/browser.ts'
import { consoleAt, cookieOf, type Signed, signIn, startBusyConsole, useSession } from '../support/console.ts'
import { lacking } from '../support/installed.ts'
import { operator } from '../support/operator.ts'
import { relayTo, startTestService, type TestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { startProxy } from '../support/tcp-proxy.ts'
import type { Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking('chromium')

/** A page of a browser in which somebody is signed in, and that prefers neither light nor dark. */
async function openPage(t: Scope, service: TestService, at = consoleAt(service)) {
  const context = await (await openBrowser(t)).newContext({ colorScheme: null })
  await useSession(context, at, await signIn(service))
  return { at, page: await context.newPage() }
}

test('a relay that stops appears on an open overview and goes again; typing and open details survive', {
  skip,
}, async (t) => {
  const relay = await startSmtpServer(t)
  const proxy = await startProxy(t, relay.port)
  const service = await startTestService(t, { isDev: false, relays: [relayTo(proxy.port)] })
  const { at, page } = await openPage(t, service)
  await page.goto(at)
  await page.waitForSelector('#live >> text=Live')
  assert.match(String(await page.textContent('#attention')), /Sending normally/)
  const refresh = page.waitForRequest((request) => request.url() === `${at}/` && request.resourceType() === 'fetch')
  await page.fill('#find', 'half an addr')
  await page.click('#charts summary >> nth=0')
  proxy.cut()
  await service.post(validBody())
  await page.waitForSelector('#attention >> text=Nothing has been delivered since')
  assert.equal((await refresh).headers()['postern-refresh'], 'yes', 'it does not extend the session')
  assert.equal(await page.inputValue('#find'), 'half an addr')
  assert.equal(await page.evaluate('document.activeElement.tagName'), 'SUMMARY')
  assert.equal(await page.evaluate("document.querySelector('#charts details').open"), true)
  proxy.restore()
  await page.waitForSelector('#attention >> text=Sending normally', { timeout: 60_000 })
})

test('a person may read local times beside UTC, on every page and as long as wanted', { skip }, async (t) => {
  const service = await startBusyConsole(t)
  const context = await (await openBrowser(t)).newContext({ timezoneId: 'Asia/Tokyo' })
  const at = consoleAt(service)
  await useSession(context, at, await signIn(service))
  const page = await context.newPage()
  const id = await service.find('later1@example.com')
  const accepted = async () => {
    await page.goto(`${at}/emails/${id}`)
    return (await page.textContent('dl time')) ?? ''
  }
  assert.match(await accepted(), /^\S+ \S+Z$/)
  await page.goto(`${at}/account`)
  await page.click('text=Show local times, too')
  const [, utc = '', local = ''] = /^(.*)Z \((.*) local\)$/.exec(await accepted()) ?? []
  assert.equal(Date.parse(`${local.replace(' ', 'T')}Z`) - Date.parse(`${utc.replace(' ', 'T')}Z`), 9 * 3_600_000)
  await page.goto(`${at}/account`)
  await page.click('text=Show UTC alone')
  assert.match(await accepted(), /Z$/)
})

test('an open page of an email follows its attempts', { skip }, async (t) => {
  const service = await startBusyConsole(t)
  const { at, page } = await openPage(t, service)
  const id = await service.find('later1@example.com')
  await page.goto(`${at}/emails/${id}`)
  const attempts = () => page.locator('.timeline .deferred').count()
  const before = await attempts()
  await eventually(async () => (await attempts()) > before)
  assert.equal(await page.evaluate('performance.getEntriesByType("navigation").length'), 1, 'without a reload')
})

test('a list leaves the row alone that somebody has reached, and goes on when it is left', {
  skip,
}, async (t) => {
  const service = await startBusyConsole(t)
  const { at, page } = await openPage(t, service)
  await page.goto(`${at}/apps/acme`)
  const newest = () => page.getAttribute('#emails tbody a', 'href')
  const counts = () => page.textContent('#limits dd')
  const [row, before] = [await newest(), await counts()]
  await page.focus('#emails tbody a')
  await service.post(validBody({ to: 'new@example.com' }))
  await eventually(async () => (await counts()) !== before) // all parts of the page are replaced at once
  assert.equal(await newest(), row)
  assert.equal(await page.evaluate('document.activeElement.getAttribute("href")'), row)
  await page.evaluate('document.activeElement.blur()')
  await service.post(validBody({ to: 'newer@example.com' }))
  await eventually(async () => (await newest()) !== row)
})

test('what changes before the stream of a page is open appears', { skip }, async (t) => {
  const service = await startBusyConsole(t)
  const { at, page } = await openPage(t, service)
  const id = await service.find('later1@example.com')
  await page.route('**/live?*', async (route) => {
    await service.store.cancelEmail(id as EmailId, operator)
    await route.continue()
  })
  await page.goto(`${at}/emails/${id}`)
  await page.waitForSelector('#state >> text=cancelled')
})

test('a stream that is cut is opened again, and the page catches up', { skip }, async (t) => {
  const service = await startBusyConsole(t)
  const proxy = await startProxy(t, Number(new URL(service.urls.console ?? '').port))
  const { at, page } = await openPage(t, service, `http://postern.localhost:${proxy.port}`)
  await page.goto(at)
  await page.waitForSelector('#live >> text=Live')
  const delivered = () => page.locator('.tile >> nth=1').locator('b').textContent()
  const before = Number(await delivered())
  proxy.cut()
  await service.post(validBody({ to: 'cut@example.com' }))
  await eventually(async () => service.relay.received.some(({ to }) => to.includes('cut@example.com')))
  proxy.restore()
  await eventually(async () => Number(await delivered()) > before, 60_000)
})

test('a stop with 50 open streams ends them', async (t) => {
  const service = await startTestService(t, { isDev: false })
  const people = [await signIn(service), await signIn(service)]
  const { hostname, port } = new URL(service.urls.console ?? '')
  const ended: Promise<void>[] = []
  for (let n = 0; n < 50; n++) {
    const opened = Promise.withResolvers<void>()
    ended.push(
      new Promise((resolve) => {
        const headers = { cookie: cookieOf(people[n % 2] as Signed), host: 'localhost' }
        const stream = request({ hostname, port, path: '/live?topic=service', headers }, (response) => {
          assert.equal(response.statusCode, 200)
          response.once('data', () => opened.resolve())
          response.on('end', resolve)
        })
        stream.end()
      }),
    )
    await opened.promise
  }
  await service.stop()
  await Promise.all(ended)
})

test('a stream that is asked for while the service stops ends at once', async (t) => {
  const service = await startTestService(t, { isDev: false })
  const { hostname, port } = new URL(service.urls.console ?? '')
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {}) // it may be closed already
  await once(socket, 'connect')
  const head = `GET /live?topic=service HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookieOf(await signIn(service))}\r\n`
  await new Promise<void>((resolve) => socket.write(head, () => resolve()))
  const stopping = service.stop()
  await eventually(async () => (await fetch(service.urls.console ?? '').catch(() => null)) === null)
  socket.write('\r\n')
  await stopping
  socket.destroy()
})

test('a stream carries no data, and knows its topics', async (t) => {
  const service = await startBusyConsole(t)
  const headers = { cookie: cookieOf(await signIn(service)), host: 'localhost' }
  const open = async (topic: string) => {
    const stop = new AbortController()
    const response = await fetch(`${service.urls.console}/live?topic=${encodeURIComponent(topic)}`, {
      headers,
      signal: stop.signal,
    })
    return { response, stop }
  }
  const member = cookieOf(await signIn(service, 'reader', [service.app.id]))
  const foreign = `email:${await service.find('dan@example.com')}`
  for (const topic of ['', 'all', 'inbox', 'email:', 'email:../x', 'email:em_none', 'service\n'])
    assert.equal((await open(topic)).response.status, 404, topic)
  const asMember = { headers: { cookie: member, host: 'localhost' } }
  const hidden = await fetch(`${service.urls.console}/live?topic=${foreign}`, asMember)
  assert.equal(hidden.status, 404, 'an email of another app is not there')
  const { response, stop } = await open(`email:${await service.find('later2@example.com')}`)
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    if (text.includes('event: changed')) break
  }
  stop.abort()
  assert.match(text, /^retry: 3000\n\n(event: changed\ndata:\n\n)+$/)
})

test('previews are light and dark, whatever the browser prefers', { skip }, async (t) => {
  const service = await startBusyConsole(t)
  const { at, page } = await openPage(t, service)
  await page.goto(`${at}/apps/acme/look`)
  const frames = page.frames().slice(1)
  const backgrounds = frames.map((frame) => frame.evaluate('getComputedStyle(document.body).backgroundColor'))
  const [light, dark] = ['rgb(243, 244, 246)', 'rgb(17, 19, 23)']
  assert.deepEqual(await Promise.all(backgrounds), [light, dark, light, dark])
})
