/** The job of each page of the console, done in Chromium: by keyboard alone, with JavaScript and without. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { openBrowser } from '../support/browser.ts'
import { consoleAt, signIn, startBusyConsole, useSession } from '../support/console.ts'
import { newHands } from '../support/hands.ts'
import { lacking } from '../support/installed.ts'
import { operator } from '../support/operator.ts'
import { refusalsOf } from '../support/service.ts'
import type { Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking('chromium')

async function newPage(scope: Scope, { javaScriptEnabled }: { javaScriptEnabled: boolean }) {
  const context = await (await openBrowser(scope)).newContext({
    javaScriptEnabled,
    viewport: { width: 1280, height: 900 },
  })
  const page = await context.newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => void (message.type() === 'error' && faults.push(`${page.url()}: ${message.text()}`)))
  return { context, page, faults, hands: newHands(page) }
}

const search = 'Search for an address, an email, a request, a key or an app'
const text = async (page: Page): Promise<string> => String(await page.textContent('main'))
const secretOf = async (page: Page): Promise<string> => String(await page.textContent('.secret code'))

for (const javaScriptEnabled of [true, false]) {
  const way = javaScriptEnabled ? 'with JavaScript' : 'without JavaScript'

  test(`a newcomer sends a test email, finds it, and learns why another one failed, by keyboard, ${way}`, {
    skip,
  }, async (t) => {
    const service = await startBusyConsole(t, { isDev: true })
    const { page, faults, hands } = await newPage(t, { javaScriptEnabled })
    await page.goto(`${service.urls.console}/`)
    await hands.press('Apps')
    await hands.press('Acme')
    await hands.type('To', 'you@example.com')
    await hands.press('Send')
    assert.match(page.url(), /\/emails\/em_\w+$/)
    if (javaScriptEnabled) await page.waitForSelector('#state >> text=delivered')
    else
      await eventually(async () => {
        await page.reload()
        return (await page.textContent('#state'))?.includes('delivered')
      })
    await hands.type(search, 'you@example.com')
    await hands.press('Search')
    assert.match(page.url(), /\/emails\?recipient=rc_[\w-]+$/)
    assert.equal(await page.locator('tbody tr').count(), 1)
    assert.equal(await page.getByRole('link', { name: /^Retry all/ }).count(), 0, 'one address is no filter')
    await hands.type(search, 'nobody@example.com')
    await hands.press('Search')
    await hands.press('Open the email')
    assert.match(await text(page), /Not sent: the relay .* refused it: the mailbox does not exist \(550 5\.1\.1/)
    // "She gets no mail": the search says why, and one button changes it.
    await hands.type(search, 'nobody@example.com')
    await hands.press('Search')
    assert.match(await text(page), /Mail of acme to this recipient is suppressed \(no such mailbox\), until 20/)
    await hands.press('End the suppression')
    assert.match(await text(page), /The suppression was ended/)
    assert.match(page.url(), /\/emails\?recipient=rc_[\w-]+&done=suppression_removed$/)
    assert.doesNotMatch(await text(page), /is suppressed/)
    assert.deepEqual(faults, [])
  })

  test(`a recipient is suppressed, and suppressions are cleared by a filter, ${way}`, { skip }, async (t) => {
    const service = await startBusyConsole(t)
    const at = consoleAt(service)
    const { context, page, faults, hands } = await newPage(t, { javaScriptEnabled })
    await useSession(context, at, await signIn(service, 'operator'))
    await page.goto(`${at}/delivery`)
    await hands.press('Show the suppressions')
    await hands.type('Address', 'eve@gmail')
    await hands.press('Suppress')
    assert.match(await text(page), /Nothing was changed\. Correct this:/)
    assert.match(faults.splice(0).join(), /400 \(Bad Request\)$/)
    assert.equal(await page.locator('#suppress-to').inputValue(), 'eve@gmail')
    await hands.type('Address', 'eve@gmail.com')
    await hands.press('Suppress')
    assert.match(await text(page), /The recipient is suppressed/)
    assert.deepEqual(
      (await page.locator('tbody tr').allTextContents()).map((row) => /acme|gmail|operator|mailbox/.exec(row)?.[0]),
      ['acme', 'acme'],
    )
    assert.equal(await page.getByText('all apps').count(), 0, 'which is an admin’s')
    await page.goto(`${at}/suppressions?reason=no_mailbox`)
    await hands.press('Clear all of these…')
    await hands.press('Clear them')
    assert.match(await text(page), /The suppressions were cleared/)
    await page.goto(`${at}/suppressions`)
    assert.equal(await page.locator('tbody tr').count(), 1)
    assert.deepEqual(faults, [])
  })

  test(`apps, links, look, keys and settings are made and changed, ${way}`, { skip }, async (t) => {
    const service = await startBusyConsole(t)
    const at = consoleAt(service)
    const { context, page, faults, hands } = await newPage(t, { javaScriptEnabled })
    await useSession(context, at, await signIn(service))

    await page.goto(`${at}/apps`)
    await hands.press('New app')
    await hands.type('Name', 'Blue Team')
    await hands.type('Sender address', 'auth@blue.test')
    await hands.type('Allowed link', 'http://blue.test')
    await hands.press('Create the app')
    assert.match(await text(page), /http is for localhost and 127\.0\.0\.1 only; use https/)
    assert.equal(await page.inputValue('#new-app-name'), 'Blue Team', 'nothing that was typed is lost')
    await hands.type('Allowed link', 'https://blue.test/auth/*')
    await hands.press('Create the app')
    assert.equal(new URL(page.url()).pathname, '/apps/blue-team/keys')

    await hands.type('Name of a new key', 'production')
    await hands.press('Create a key')
    const key = await secretOf(page)
    assert.match(key, /^pst_\w{49}$/)
    await page.goto(`${at}/apps/blue-team/keys`)
    assert.ok(!(await page.content()).includes(key), 'it is shown once')
    await hands.type('Name of a new key', 'production')
    await hands.press('Create a key')
    assert.match(await text(page), /already has a working key named "production"/)
    await page.goto(`${at}/apps/blue-team/keys`)
    await hands.press('Replace… production')
    await hands.press('Replace the key')
    assert.notEqual(await secretOf(page), key)
    assert.match(await text(page), /The old key works until/)
    await page.goto(`${at}/apps/blue-team/keys`)
    await hands.press('Revoke… production')
    assert.match(await text(page), /Revoke the key production, or replace it\? It has never been used/)
    await hands.press('Revoke the key')
    assert.match(await text(page), /The key was revoked/)

    await hands.press('Links')
    await hands.type('Link', 'https://blue.test/login?token=secret-of-the-link')
    await hands.press('Test')
    assert.match(await text(page), /It would be refused\..*different path/s)
    assert.ok(!(await page.content()).includes('secret-of-the-link'), 'the token is not shown again')
    await hands.type('Allow another link', 'BLUE.test/login/')
    await hands.press('Allow')
    assert.match(await text(page), /https:\/\/blue\.test\/login\/ is allowed/)
    assert.deepEqual((await service.store.findApp('blue-team'))?.settings.allowedUrls, [
      'https://blue.test/auth/*',
      'https://blue.test/login/',
    ])
    await hands.type('Link', 'https://blue.test/login/?token=x')
    await hands.press('Test')
    assert.match(await text(page), /It would be sent\..*unchanged/s)
    await hands.press('Remove… https://blue.test/auth/*')
    await hands.press('Remove it')
    assert.deepEqual((await service.store.findApp('blue-team'))?.settings.allowedUrls, ['https://blue.test/login/'])
    await hands.press('Undo')
    assert.equal((await service.store.findApp('blue-team'))?.settings.allowedUrls.length, 2)

    await hands.press('Look')
    await hands.type('Button colour', '#0f766e')
    await hands.press('Preview')
    const frame = page.frameLocator('iframe[title="Desktop, light"]')
    assert.match(String(await frame.locator('table.button').innerHTML()), /#0f766e/)
    assert.equal(
      (await service.store.findApp('blue-team'))?.settings.branding.accentColour,
      undefined,
      'a preview saves nothing',
    )
    await hands.press('Save')
    assert.equal((await service.store.findApp('blue-team'))?.settings.branding.accentColour, '#0f766e')
    await hands.press('Invitation')
    assert.match(String(await frame.locator('h1').textContent()), /invited/)

    await page.goto(`${at}/apps/blue-team/settings`)
    await hands.type('Emails a day (UTC)', 'many')
    await hands.press('Save')
    assert.match(await text(page), /Nothing was changed\. Correct this/)
    await page.goto(`${at}/apps/blue-team/settings`)
    await hands.type('Emails a day (UTC)', '1,234')
    await hands.press('Save')
    assert.equal((await service.store.findApp('blue-team'))?.settings.limits.daily, 1234)
    await hands.press('Disable…')
    await hands.press('Disable the app')
    await hands.press('Delete…')
    await hands.type('Type the slug to confirm', 'blue')
    await hands.press('Delete the app')
    assert.match(await text(page), /Type blue-team\. The app was not deleted/)
    await page.goto(`${at}/apps/blue-team/settings`)
    await hands.press('Delete…')
    await hands.type('Type the slug to confirm', 'blue-team')
    await hands.press('Delete the app')
    assert.equal(new URL(page.url()).pathname, '/apps')
    assert.equal(await service.store.findApp('blue-team'), null)
    const expected = faults.filter((fault) => !/status of (400|409)/.test(fault))
    assert.deepEqual(expected, [], 'the console of the browser stays empty, but for refused forms')
  })

  test(`emails are retried and cancelled, and changes found in the audit, ${way}`, { skip }, async (t) => {
    const service = await startBusyConsole(t)
    const at = consoleAt(service)
    const { context, page, hands } = await newPage(t, { javaScriptEnabled })
    await useSession(context, at, await signIn(service))
    const [one, two] = [await service.find('later1@example.com'), await service.find('later2@example.com')]
    await page.goto(`${at}/emails/${one}`)
    assert.match(await text(page), /451 4\.7\.1 Greylisted/)
    const before = (await service.store.findEmail(one as Parameters<typeof service.store.findEmail>[0]))?.attempts ?? 0
    await hands.press('Retry now')
    await eventually(
      async () =>
        ((await service.store.findEmail(one as Parameters<typeof service.store.findEmail>[0]))?.attempts ?? 0) > before,
    )
    await eventually(async () => {
      await page.goto(`${at}/emails/${two}`)
      return page.getByRole('link', { name: 'Cancel…' }).isVisible()
    })
    await hands.press('Cancel…')
    await hands.press('Cancel the email')
    assert.match(await text(page), /an operator cancelled it/)
    await page.goto(`${at}/emails`)
    await hands.press((await page.getByRole('link', { name: /^Retry [\d,]+ deferred…$/ }).textContent()) ?? '')
    await hands.press('Retry all now')
    assert.match(await text(page), /All deferred emails are due now/)
    await page.goto(`${at}/audit?group=emails`)
    assert.match(await text(page), /cancelled an email of acme in the console/)
    await page.goto(
      `${at}/refusals/${(await refusalsOf(service.store, service.app.id)).find(({ code }) => code === 'url_not_allowed')?.requestId}`,
    )
    assert.match(await text(page), /Link not allowed.*403 url_not_allowed.*https:\/\/staging\.acme\.test/s)
    await hands.press('Test this link')
    assert.match(await text(page), /It would be refused.*different host/s)
    await hands.press('Allow https://staging.acme.test')
    assert.match(await text(page), /https:\/\/staging\.acme\.test is allowed.*It would be sent/s)
    await hands.press('Undo')
    assert.deepEqual((await service.store.findApp('acme'))?.settings.allowedUrls, ['https://app.acme.test'])
  })

  test(`people are invited and disabled, tokens made and revoked, checks run, sessions ended, ${way}`, {
    skip,
  }, async (t) => {
    const service = await startBusyConsole(t)
    const at = consoleAt(service)
    const { context, page, hands } = await newPage(t, { javaScriptEnabled })
    const signed = await signIn(service)
    await useSession(context, at, signed)
    await page.goto(`${at}/settings`)
    await hands.press('Run the checks')
    assert.match(await text(page), /All checks passed.*relay/s)
    await hands.press('People')
    await hands.type('Name', 'Bob')
    await hands.choose('Role', 'operator')
    await hands.tabTo('the whole service')
    await page.keyboard.press('ArrowDown')
    await hands.tabTo('acme')
    await page.keyboard.press('Space')
    await hands.press('Invite')
    const link = await secretOf(page)
    assert.match(link, /\/sign-in#psl_\w{49}$/)
    const other = await (await openBrowser(t)).newContext({ javaScriptEnabled })
    const invited = await other.newPage()
    await invited.goto(`${at}/sign-in`)
    await invited.fill('#code', link.split('#')[1] ?? '')
    await invited.press('#code', 'Enter')
    await invited.waitForURL(`${at}/`)
    assert.match(String(await invited.textContent('.menu')), /Bob, operator/)
    await hands.press('Sessions')
    assert.equal(await page.locator('tbody tr').count(), 2)
    await hands.press('People')
    await hands.press('Bob')
    await hands.choose('Role', 'reader')
    await hands.press('Save')
    const [bob] = (await service.store.listPeople()).filter(({ name }) => name === 'Bob')
    assert.deepEqual([bob?.role, bob?.apps], ['reader', [service.app.id]])
    await hands.press('Disable…')
    await hands.press('Disable Bob')
    assert.match(await text(page), /disabled/)
    await invited.goto(`${at}/apps`)
    assert.equal(new URL(invited.url()).pathname, '/sign-in')
    await hands.press('Tokens')
    await hands.type('Name', 'deployments')
    await hands.press('Create a token')
    const token = await secretOf(page)
    const list = await fetch(`${service.urls.console}/v1/apps`, {
      headers: { authorization: `Bearer ${token}` },
    })
    assert.equal(list.status, 200)
    await page.goto(`${at}/settings/tokens`)
    assert.ok(!(await page.content()).includes(token))
    await hands.press('Revoke… deployments')
    await hands.press('Revoke the token')
    assert.match(await text(page), /The token was revoked/)
    await hands.tabTo(`A ${signed.name}`)
    await page.keyboard.press('Enter')
    await hands.press('Sign out')
    assert.equal(new URL(page.url()).pathname, '/sign-in')
  })
}

test('a new service leads to its first email', { skip }, async (t) => {
  const service = await startBusyConsole(t)
  for (const { id } of await service.store.listApps()) {
    await service.store.updateApp(id, { status: 'disabled' }, operator)
    await service.store.deleteApp(id, operator)
  }
  const at = consoleAt(service)
  const { context, page, hands } = await newPage(t, { javaScriptEnabled: true })
  await useSession(context, at, await signIn(service))
  await page.goto(at)
  assert.match(await text(page), /Welcome to Postern/)
  assert.match(await text(page), /Mail will go to:\s*127\.0\.0\.1:\d+ available/)
  await hands.type('Name', 'First')
  await hands.type('Sender address', 'auth@first.test')
  await hands.type('Allowed link', 'https://first.test')
  await hands.press('Create the app')
  await hands.type('Name of a new key', 'production')
  await hands.press('Create a key')
  await page.goto(`${at}/apps/first`)
  await hands.type('To', 'you@example.com')
  await hands.press('Send')
  await page.waitForSelector('#state >> text=delivered')
  await page.goto(at)
  assert.match(await text(page), /Sending normally/)
})
