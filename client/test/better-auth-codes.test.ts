/** Codes of a real Better Auth, sent through the real service, while machines open the links. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { type BetterAuthOptions, betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import { emailOTP, magicLink } from 'better-auth/plugins'
import { openBrowser } from '../../test/support/browser.ts'
import { lacking } from '../../test/support/installed.ts'
import { newSender, startTestService, testSettings } from '../../test/support/service.ts'
import { betterAuthEmail } from '../src/better-auth.ts'
import { Postern } from '../src/postern.ts'
import { CapturingPostern, DevInbox, type InboxEmail } from '../src/testing.ts'

const service = await startTestService({ after }, { settings: { allowLocalhost: true, allowCodes: true } })
const baseUrl = service.urls.api ?? ''
const postern = new Postern({ deliveryKey: service.key, baseUrl })
const inbox = new DevInbox(service.urls.inbox ?? '')
const skip = lacking('chromium')
let serial = 0
const newAddress = () => `codes${serial++}@example.com`

/** Fills the code in, as docs/codes.md asks, and does not submit it. */
const codePage = `<!doctype html><title>Code</title><form method="post" action="/api/auth/sign-in/email-otp">
<input name="otp" autocomplete="one-time-code" inputmode="numeric"><button>Sign in</button></form>
<script>document.querySelector('input').value = new URL(location.href).searchParams.get('token') ?? ''</script>`

type Options = Partial<Parameters<typeof betterAuthEmail>[0]>

/** An app on a port of its own, with magic links and codes. */
async function startApp(options: Options = {}, linkLifeS = 900) {
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/api/auth/')) return void handle(request, response)
    response.writeHead(200, { 'content-type': 'text/html' }).end(codePage)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => server.close())
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`
  const email = betterAuthEmail({ postern, codePage: `${origin}/enter-code`, ...options })
  const settings = {
    appName: 'Acme',
    baseURL: origin,
    secret: 'a secret of thirty-two characters',
    database: new DatabaseSync(':memory:'),
    logger: { disabled: true },
    rateLimit: { enabled: false },
    emailAndPassword: { enabled: true },
    plugins: [
      email.plugin,
      magicLink({ sendMagicLink: email.sendMagicLink, expiresIn: linkLifeS }),
      emailOTP({
        sendVerificationOTP: email.sendVerificationOTP,
        expiresIn: 400,
        changeEmail: { enabled: true },
      }),
    ],
  } satisfies BetterAuthOptions
  const auth = betterAuth(settings)
  await (await getMigrations(settings)).runMigrations()
  const handle = toNodeHandler(auth)
  const call = (path: string, body: object, cookie = '') =>
    fetch(`${origin}/api/auth${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin, cookie },
      body: JSON.stringify(body),
    })
  return { call }
}

const cookieOf = (response: Response) =>
  response.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; ')

const secondsLeft = ({ expiresAt }: InboxEmail) => (Date.parse(expiresAt) - Date.now()) / 1000

const app = await startApp()
const both = await startApp({ code: true })

test('each kind of code has its email, which lives as long as the plugin says', async () => {
  const email = newAddress()
  await app.call('/sign-up/email', { email, password: 'a long password', name: 'Ada' })
  for (const [type, expected] of [
    ['sign-in', 'magic_link'],
    ['email-verification', 'email_verification'],
    ['forget-password', 'password_reset'],
  ] as const) {
    assert.equal((await app.call('/email-otp/send-verification-otp', { email, type })).status, 200)
    const received = await inbox.next(email, expected)
    assert.match(received.code ?? '', /^\d{6}$/)
    assert.equal(new URL(received.url).searchParams.get('token'), received.code)
    const left = secondsLeft(received)
    assert.ok(left <= 400 && left > 340, `${left} s left`)
    assert.match(received.text, /Open Acme/, 'the code comes first')
  }
})

test('a change of address: the code goes to the new one and makes it so', async () => {
  const email = newAddress()
  await app.call('/email-otp/send-verification-otp', { email, type: 'sign-in' })
  const { code: otp } = await inbox.next(email)
  const cookie = cookieOf(await app.call('/sign-in/email-otp', { email, otp }))
  const newEmail = newAddress()
  assert.equal((await app.call('/email-otp/request-email-change', { newEmail }, cookie)).status, 200)
  const change = await inbox.next(newEmail, 'email_verification')
  assert.equal((await app.call('/email-otp/change-email', { newEmail, otp: change.code }, cookie)).status, 200)
})

test('a magic link with a code ends with the earlier of the two', async () => {
  const email = newAddress()
  assert.equal((await both.call('/sign-in/magic-link', { email })).status, 200)
  const received = await inbox.next(email, 'magic_link')
  assert.match(received.text, /Or enter this code/)
  assert.ok(secondsLeft(received) <= 400)
  const short = await startApp({ code: true }, 60)
  await short.call('/sign-in/magic-link', { email })
  const link = await inbox.next(email, 'magic_link')
  assert.ok(link.code && secondsLeft(link) <= 60)
})

for (const [name, start, send] of [
  ['a code', app, '/email-otp/send-verification-otp'],
  ['a link with a code', both, '/sign-in/magic-link'],
] as const)
  test(`${name}: machines that open the link and run its scripts use nothing up, and the typed code signs in`, {
    skip,
  }, async (t) => {
    const email = newAddress()
    assert.equal((await start.call(send, { email, type: 'sign-in' })).status, 200)
    const { code, url } = await inbox.next(email, 'magic_link')
    for (const method of ['HEAD', 'GET']) assert.ok((await fetch(url, { method })).ok)
    const page = await (await openBrowser(t)).newPage()
    await page.goto(url, { waitUntil: 'networkidle' })
    assert.equal(await page.locator('button').count(), 1)
    const typed = await start.call('/sign-in/email-otp', { email, otp: code })
    assert.equal(typed.status, 200, await typed.clone().text())
    assert.match(cookieOf(typed), /session_token/)
    assert.equal((await start.call('/sign-in/email-otp', { email, otp: code })).status, 400, 'once')
  })

test('an app that allows no codes: a code alone is an error that says what to do, a link goes out', async () => {
  const { key } = await newSender(service, 'no-codes', { ...testSettings, allowLocalhost: true })
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const plain = { postern: new Postern({ deliveryKey: key, baseUrl }), onError }
  const [alone, beside] = [await startApp(plain), await startApp({ ...plain, code: true })]
  const email = newAddress()
  await alone.call('/email-otp/send-verification-otp', { email, type: 'sign-in' })
  assert.match(String(errors), /--allow-codes/)
  assert.equal((errors[0] as { code: string }).code, 'code_not_shown')
  assert.equal((await beside.call('/sign-in/magic-link', { email })).status, 200)
  assert.equal(errors.length, 1)
})

test('without a page for codes the error names it, where Better Auth would answer as if all were well', async () => {
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const capturing = new CapturingPostern()
  const pageless = await startApp({ postern: capturing, codePage: undefined, onError })
  await pageless.call('/email-otp/send-verification-otp', { email: newAddress(), type: 'sign-in' })
  assert.match(String(errors), /codePage/)
  assert.throws(() => betterAuthEmail({ postern: capturing, codePage: 'https://a.test/?x=1' }), /codePage/)
  const pages = { 'forget-password': '/reset' }
  assert.throws(() => betterAuthEmail({ postern: capturing, codePage: pages }), /codePage.forget-password/)
  assert.deepEqual(capturing.emails, [])
})

test('each kind of code has its own page', async () => {
  const capturing = new CapturingPostern()
  const [signIn, reset] = ['https://app.acme.test/in', 'https://app.acme.test/reset']
  const codePage = { 'sign-in': signIn, 'forget-password': reset }
  const { sendVerificationOTP } = betterAuthEmail({ postern: capturing, codePage })
  const context = { context: { options: { plugins: [] } } } as never
  for (const type of ['sign-in', 'forget-password'] as const)
    await sendVerificationOTP({ email: 'ada@example.com', otp: '246813', type }, context)
  assert.deepEqual(
    capturing.emails.map(({ url }) => url),
    [`${signIn}?token=246813`, `${reset}?token=246813`],
  )
  const other = { email: 'ada@example.com', otp: '246813', type: 'change-email' } as const
  await assert.rejects(sendVerificationOTP(other, context), /codePage/)
})

test('a code that cannot be made or shown does not keep back its link, and is reported', async () => {
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const capturing = new CapturingPostern()
  const { sendMagicLink } = betterAuthEmail({ postern: capturing, code: true, onError })
  const url = 'https://app.acme.test/api/auth/magic-link/verify?token=t'
  const made = (endpoints?: object) =>
    ({ context: { options: { plugins: [{ id: 'magic-link' }, { id: 'email-otp', endpoints }] } } }) as never
  const page = { email: 'ada@example.com', url, token: 't' }
  const options = { createVerificationOTP: async () => '785838705801' }
  for (const context of [made(), made(options)]) {
    const sent = sendMagicLink(page, context)
    // Without the plugin of ours in a Better Auth, there is no page for the link.
    await assert.rejects(sent, /plugins: \[email\.plugin\]/)
  }
  assert.match(String(errors[0]), /emailOTP/)
  assert.match(errors.map(String).join(), /otpLength/)
})

test('a code alone is for its reader: kind, request and life are Better Auth’s, and an unknown kind is an error', async () => {
  const capturing = new CapturingPostern()
  const asked: unknown[] = []
  const request = new Request('https://a.test')
  const { sendVerificationOTP } = betterAuthEmail({
    postern: capturing,
    codePage: 'https://a.test/code',
    locale: (about, from) => void asked.push([about.type, from]),
  })
  const context = { context: { options: { plugins: [] } }, request } as never
  const code = { email: 'ada@example.com', otp: '246813', type: 'forget-password' } as const
  await assert.rejects(sendVerificationOTP({ ...code, type: 'step-up' } as never, context), {
    code: 'unsupported_email',
  })
  await sendVerificationOTP(code, context)
  assert.deepEqual(asked.at(-1), ['password_reset', request])
  const [sent] = capturing.emails
  const left = (Date.parse(String(sent?.expiresAt)) - Date.now()) / 1000
  assert.ok(left > 240 && left <= 300, `${left} s: Better Auth's default`)
})
