/** The example as a user runs it: one command, a real browser, emails from the inbox. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { DevInbox } from '@postern/client/testing'
import type { Page } from 'playwright-core'
import { openBrowser } from '../../test/support/browser.ts'
import { lacking } from '../../test/support/installed.ts'
import { atEnd, type Scope, temporaryFolder } from '../../test/support/temporary.ts'

const skip = lacking('chromium')
const password = 'correct horse'

async function freePort(): Promise<number> {
  const server = createServer().listen(0, 'localhost')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Runs the command behind `npm run example`, with its own ports and folder. */
async function startExample(scope: Scope): Promise<{ origin: string; inbox: DevInbox }> {
  const anyPort = '127.0.0.1:0'
  const port = await freePort()
  const child = spawn(process.execPath, [fileURLToPath(new URL('main.ts', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      EXAMPLE_FOLDER: temporaryFolder(scope),
      EXAMPLE_PORT: String(port),
      POSTERN_API_LISTEN: anyPort,
      POSTERN_LINKS_LISTEN: anyPort,
      POSTERN_CONSOLE_LISTEN: anyPort,
      POSTERN_OPS_LISTEN: anyPort,
      POSTERN_AUTH_HOOKS_LISTEN: anyPort,
    },
  })
  const exited = once(child, 'exit')
  atEnd(scope, async () => {
    child.kill('SIGTERM')
    await exited
  })
  let printed = ''
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`the example did not start: ${printed}`)))
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text
      if (printed.includes('Stop with')) resolve()
    })
  })
  const [, origin = '', inboxUrl = ''] = /at (http:\S+), its emails at (http:\S+)\.\n/.exec(printed) ?? []
  return { origin, inbox: new DevInbox(inboxUrl) }
}

/** Fills and submits the form with the button. */
async function submit(page: Page, button: string, fields: Record<string, string> = {}, nth = 0): Promise<void> {
  const form = page.locator('form', { has: page.getByRole('button', { name: button, exact: true }) }).nth(nth)
  for (const [name, value] of Object.entries(fields)) await form.locator(`[name=${name}]`).fill(value)
  await form.getByRole('button').click()
}

const shows = (page: Page, text: string) => page.getByText(text).first().waitFor()

test('sign-up, verification, magic link, reset and invitation, in a browser', { skip }, async () => {
  const scope: Scope = { after }
  const { origin, inbox } = await startExample(scope)
  const browser = await openBrowser(scope)
  const ada = await (await browser.newContext()).newPage()
  const to = 'ada@example.com'

  await ada.goto(origin)
  await submit(ada, 'Sign up', { name: 'Ada', email: to, password })
  await shows(ada, 'ada@example.com is not verified yet.')
  await ada.goto((await inbox.next(to, 'email_verification')).url)
  await ada.getByRole('button', { name: 'Confirm address' }).click()
  await shows(ada, 'ada@example.com is verified.')

  await submit(ada, 'Sign out')
  await shows(ada, 'You are signed out.')
  await submit(ada, 'Email me a link', { email: to })
  await shows(ada, 'A link is on its way.')
  await ada.goto((await inbox.next(to, 'magic_link')).url)
  await ada.getByRole('heading', { name: /Sign in to .?Example/ }).waitFor()
  await ada.getByRole('button', { name: 'Sign in' }).click()
  await shows(ada, 'Hello, Ada')
  await ada.goBack()
  await ada.getByRole('button', { name: 'Sign in' }).click()
  await shows(ada, 'This link has been used or has expired.')

  await submit(ada, 'Sign out')
  await submit(ada, 'Email me a link', { email: to }, 1)
  await shows(ada, 'a link is on its way.')
  await ada.goto((await inbox.next(to, 'password_reset')).url)
  await submit(ada, 'Save', { password: 'battery staple' })
  await shows(ada, 'Your password is changed.')
  await submit(ada, 'Sign in', { email: to, password: 'battery staple' })
  await shows(ada, 'Hello, Ada')

  await submit(ada, 'Create', { name: 'Analytical Engines' })
  await submit(ada, 'Invite', { email: 'grace@example.com' })
  await shows(ada, 'The invitation is on its way.')
  const invitation = await inbox.next('grace@example.com', 'organisation_invite')
  assert.match(invitation.text, /Ada[\s\S]*Analytical Engines/)
  const grace = await (await browser.newContext()).newPage()
  await grace.goto(invitation.url)
  await submit(grace, 'Email me a link', { email: 'grace@example.com' })
  await grace.goto((await inbox.next('grace@example.com', 'magic_link')).url)
  await grace.getByRole('button', { name: 'Sign in' }).click()
  await shows(grace, 'Join Analytical Engines')
  await submit(grace, 'Accept the invitation')
  await shows(grace, 'You have joined.')
  await grace.getByRole('heading', { name: 'Analytical Engines' }).waitFor()
})
