/** The Better Auth adapter in a real Better Auth, sending through the real service. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { type BetterAuthOptions, betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { magicLink, organization } from 'better-auth/plugins'
import { startTestService } from '../../test/support/service.ts'
import { betterAuthEmail } from '../src/better-auth.ts'
import { Postern } from '../src/postern.ts'
import { CapturingPostern, DevInbox } from '../src/testing.ts'

const origin = 'https://app.acme.test'
const base = `${origin}/api/auth`
const service = await startTestService({ after })
const postern = new Postern({ deliveryKey: service.key, baseUrl: service.urls.api ?? '' })
const inbox = new DevInbox(service.urls.inbox ?? '')
const pages = { organisation_invite: `${origin}/accept-invitation` }
const password = 'a long password'
let serial = 0

type Lifetimes = { magicLinkS?: number; resetS?: number; invitationS?: number; verificationS?: number }

async function startAuth(email: ReturnType<typeof betterAuthEmail>, lives: Lifetimes = {}) {
  const options = {
    appName: 'Acme <b>',
    baseURL: origin,
    secret: 'a secret of thirty-two characters',
    database: new DatabaseSync(':memory:'),
    logger: { disabled: true },
    emailAndPassword: {
      enabled: true,
      ...(lives.resetS && { resetPasswordTokenExpiresIn: lives.resetS }),
    },
    emailVerification: { sendOnSignUp: true, ...(lives.verificationS && { expiresIn: lives.verificationS }) },
    plugins: [
      email.plugin,
      magicLink({
        sendMagicLink: email.sendMagicLink,
        ...(lives.magicLinkS && { expiresIn: lives.magicLinkS }),
      }),
      organization({
        sendInvitationEmail: email.sendInvitationEmail,
        ...(lives.invitationS && { invitationExpiresIn: lives.invitationS }),
      }),
    ],
  } satisfies BetterAuthOptions
  const auth = betterAuth(options)
  await (await getMigrations(options)).runMigrations()
  const call = (path: string, body?: unknown, cookie = '') =>
    auth.handler(
      new Request(path.startsWith('https:') ? path : base + path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { 'content-type': 'application/json', origin, cookie },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    )
  /** Presses the button of a page: posts its form and follows one redirect. */
  const press = async (url: string) => {
    const page = await call(url)
    assert.equal(page.status, 200, await page.clone().text())
    assert.match(await page.text(), /<form method="post"><button>/)
    const pressed = await auth.handler(new Request(url, { method: 'POST', headers: { origin: 'null' } }))
    assert.equal(pressed.status, 303)
    return call(new URL(pressed.headers.get('location') ?? '', url).href)
  }
  return { auth, call, press }
}

const cookieOf = (response: Response) =>
  response.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; ')

const newAddress = () => `better${serial++}@example.com`

async function signUp({ call }: Awaited<ReturnType<typeof startAuth>>, email = newAddress()) {
  const answer = await call('/sign-up/email', { email, password, name: 'Ada', callbackURL: '/welcome' })
  assert.equal(answer.status, 200, await answer.clone().text())
  return { email, cookie: cookieOf(answer) }
}

/** Asserts that a time is `seconds` from now, or up to 60 s less. */
const assertEnds = (expiresAt: string, seconds: number) => {
  const left = (Date.parse(expiresAt) - Date.now()) / 1000
  assert.ok(left <= seconds && left > seconds - 60, `${left} s left instead of ${seconds}`)
}

const email = betterAuthEmail({ postern, pages })
const app = await startAuth(email, { magicLinkS: 700, resetS: 1700, verificationS: 2700, invitationS: 3700 })

test('verification: the link lives as long as the JWT, and its button verifies and goes on', async () => {
  const { email: to } = await signUp(app)
  const received = await inbox.next(to, 'email_verification')
  assertEnds(received.expiresAt, 2700)
  const landed = await app.press(received.url)
  assert.equal(landed.status, 302)
  assert.equal(landed.headers.get('location'), '/welcome')
  const again = await app.call('/sign-in/email', { email: to, password })
  assert.equal(((await again.json()) as { user: { emailVerified: boolean } }).user.emailVerified, true)
})

test('magic link: as long as the plugin says; looking burns nothing, the button signs in', async () => {
  const to = newAddress()
  const body = { email: to, callbackURL: '/dash?tab=1&x=ü', newUserCallbackURL: '/new~user' }
  assert.equal((await app.call('/sign-in/magic-link', body)).status, 200)
  const received = await inbox.next(to, 'magic_link')
  assertEnds(received.expiresAt, 700)
  for (let i = 0; i < 3; i++) assert.equal((await app.call(received.url)).status, 200)
  const landed = await app.press(received.url)
  assert.match(cookieOf(landed), /session_token/)
  assert.equal(landed.headers.get('location'), `${origin}/new~user`)
})

test('password reset: straight to the form, whose token sets the new password', async () => {
  const { email: to } = await signUp(app)
  await app.call('/request-password-reset', { email: to, redirectTo: '/new-password' })
  const received = await inbox.next(to, 'password_reset')
  assertEnds(received.expiresAt, 1700)
  const onward = await app.call(received.url)
  assert.equal(onward.status, 303)
  const form = await app.call(new URL(onward.headers.get('location') ?? '', received.url).href)
  const token = new URL(form.headers.get('location') ?? '').searchParams.get('token')
  assert.match(form.headers.get('location') ?? '', /\/new-password\?token=/)
  assert.equal((await app.call('/reset-password', { token, newPassword: 'another password' })).status, 200)
  assert.equal((await app.call('/sign-in/email', { email: to, password: 'another password' })).status, 200)
})

test('invitation: to the app’s page, with the names, until the invitation ends', async () => {
  const { cookie } = await signUp(app)
  const made = await app.call('/organization/create', { name: 'Blue & Co', slug: `blue-${serial++}` }, cookie)
  const { id: organizationId } = (await made.json()) as { id: string }
  const to = newAddress()
  const invited = await app.call('/organization/invite-member', { email: to, role: 'member', organizationId }, cookie)
  const { id } = (await invited.json()) as { id: string }
  const received = await inbox.next(to, 'organisation_invite')
  assert.equal(received.url, `${pages.organisation_invite}?token=${id}`)
  assert.match(received.text, /Ada[\s\S]*Blue & Co/)
  assertEnds(received.expiresAt, 3700)
})

test('pages of the app’s own get the bare token', async () => {
  const captured = new CapturingPostern()
  const own = betterAuthEmail({
    postern: captured,
    pages: {
      magic_link: 'acme://sign-in',
      email_verification: `${origin}/verify`,
      password_reset: `${origin}/#/reset`,
    },
  })
  const auth = await startAuth(own)
  const { email: to } = await signUp(auth)
  assert.match(captured.latest(to)?.url ?? '', /^https:\/\/app\.acme\.test\/verify\?token=[\w-]+\.[\w-]+\.[\w-]+$/)
  await auth.call('/request-password-reset', { email: to, redirectTo: '/x' })
  assert.match(captured.latest(to)?.url ?? '', /^https:\/\/app\.acme\.test\/\?token=\w+#\/reset$/)
  await auth.call('/sign-in/magic-link', { email: to, callbackURL: '/dash' })
  assert.match(captured.latest(to)?.url ?? '', /^acme:\/\/sign-in\?token=[a-zA-Z]{32}$/)
  assertEnds(captured.latest(to)?.expiresAt ?? '', 300)
})

test('with waitUntil the answer does not wait, and failures are reported', async () => {
  const captured = new CapturingPostern()
  captured.refusal = { status: 429, code: 'recipient_rate_limited', retryAfterS: 360 }
  const promises: Promise<unknown>[] = []
  const errors: unknown[] = []
  const auth = await startAuth(
    betterAuthEmail({
      postern: captured,
      waitUntil: (promise) => promises.push(promise),
      onError: (error) => errors.push(error),
    }),
  )
  assert.equal((await auth.call('/sign-in/magic-link', { email: newAddress() })).status, 200)
  assert.equal(promises.length, 1)
  await Promise.all(promises)
  assert.equal((errors[0] as { code: string }).code, 'recipient_rate_limited')
})

test('without it a magic link that was not queued is not said to be sent', async () => {
  const captured = new CapturingPostern()
  captured.refusal = { status: 429, code: 'daily_limit_reached' }
  const auth = await startAuth(betterAuthEmail({ postern: captured }))
  assert.equal((await auth.call('/sign-in/magic-link', { email: newAddress() })).status, 500)
})

test('emails that Postern has no type for are refused clearly', async () => {
  const user = { email: 'ada@example.com' }
  const refused = { code: 'unsupported_email', message: /send (them|it) by other means/ }
  const deletion = { user, url: `${base}/delete-user/callback?token=a&callbackURL=/`, token: 'a' }
  await assert.rejects(email.sendVerificationEmail(deletion), refused)
  const claims = Buffer.from(JSON.stringify({ requestType: 'change-email-confirmation', exp: 9e9 })).toString(
    'base64url',
  )
  const token = `e30.${claims}.sig`
  const change = { user, url: `${base}/verify-email?token=${token}&callbackURL=/`, token }
  await assert.rejects(email.sendVerificationEmail(change), refused)
  for (const odd of ['canary', 'e30.Y2FuYXJ5.sig', 'e30.bnVsbA.sig']) {
    const url = `${base}/verify-email?token=${odd}&callbackURL=/`
    await assert.rejects(email.sendVerificationEmail({ user, url, token: odd }), {
      code: 'unsupported_email',
      message: /not the JWT/,
    })
  }
  const code = { email: user.email, otp: '123456', type: 'sign-in' } as never
  await assert.rejects(email.sendMagicLink(code), refused)
})

test('what the set-up lacks is named', async () => {
  const lonely = betterAuthEmail({ postern })
  const url = `${base}/magic-link/verify?token=a&callbackURL=/`
  await assert.rejects(lonely.sendMagicLink({ email: 'a@example.com', url, token: 'a' }), /plugins: \[email\.plugin\]/)
  const invitation = {
    id: 'a',
    email: 'a@example.com',
    organization: { name: 'Blue' },
    invitation: { expiresAt: new Date() },
    inviter: { user: { name: '', email: 'b@example.com' } },
  }
  await assert.rejects(lonely.sendInvitationEmail(invitation), /pages\.organisation_invite/)
})

test('the page: inert, private, in the app’s name; damaged links and other methods go nowhere', async () => {
  const page = await app.call(`${base}/postern/magic_link?token=abc`)
  const text = await page.text()
  assert.match(text, /<h1>Sign in to \u2068Acme &#60;b&#62;\u2069<\/h1>/)
  assert.doesNotMatch(text, /abc|href|<script/)
  assert.equal(page.headers.get('cache-control'), 'no-store')
  assert.equal(page.headers.get('referrer-policy'), 'strict-origin')
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/)
  for (const query of ['', '?token=', '?token=a~%21', `?token=a~${btoa('x\r\ny')}`]) {
    assert.equal((await app.call(`${base}/postern/magic_link${query}`)).status, 400)
  }
  const put = await app.auth.handler(new Request(`${base}/postern/magic_link?token=a`, { method: 'PUT' }))
  assert.equal(put.status, 405)
  assert.equal((await app.call(`${base}/postern/constructor?token=a`)).status, 404)
})

test('with trailing slashes the pages lead on as well', async () => {
  const url = `${base}/postern/magic_link/?token=a`
  assert.equal((await app.call(url)).status, 200)
  const pressed = await app.auth.handler(new Request(url, { method: 'POST' }))
  const onward = new URL(pressed.headers.get('location') ?? '', url)
  assert.equal(onward.pathname, '/api/auth/magic-link/verify')
})

test('the plugin switches on nothing that the app has not', async () => {
  const captured = new CapturingPostern()
  const { plugin, sendMagicLink } = betterAuthEmail({ postern: captured })
  for (const [options, verification, reset] of [
    [{}, false, false],
    [{ emailVerification: {} }, true, false],
    [{ emailAndPassword: { enabled: true } }, false, true],
    [{ emailAndPassword: { enabled: false } }, false, false],
    [{ emailAndPassword: { enabled: true, requireEmailVerification: true } }, true, true],
    [{ user: { changeEmail: { enabled: true } } }, true, false],
    [
      {
        emailVerification: {},
        plugins: [{ id: 'email-otp', options: { overrideDefaultEmailVerification: true } }],
      },
      false,
      false,
    ],
  ] as const) {
    const given = plugin.init({ options })
    assert.equal('emailVerification' in given.options, verification, JSON.stringify(options))
    assert.equal('emailAndPassword' in given.options, reset, JSON.stringify(options))
  }
  const settings = {
    baseURL: origin,
    database: new DatabaseSync(':memory:'),
    secret: 'a secret of thirty-two characters',
    logger: { disabled: true },
    plugins: [plugin, magicLink({ sendMagicLink })],
  }
  await (await getMigrations(settings)).runMigrations()
  const auth = betterAuth(settings)
  const body = JSON.stringify({ email: 'a@example.com', redirectTo: '/' })
  for (const path of ['request-password-reset', 'send-verification-email']) {
    const headers = { 'content-type': 'application/json', origin }
    assert.equal((await auth.handler(new Request(`${base}/${path}`, { method: 'POST', headers, body }))).status, 400)
  }
})

test('pages that are none are refused at once, by name', () => {
  assert.throws(() => betterAuthEmail({ postern, pages: { magic_link: '/sign-in' } }), /pages\.magic_link must be/)
})

test('onError hears of every failure, and may fail itself', async () => {
  const captured = new CapturingPostern()
  captured.refusal = { status: 429, code: 'daily_limit_reached' }
  const errors: unknown[] = []
  const awaited = await startAuth(betterAuthEmail({ postern: captured, onError: (error) => errors.push(error) }))
  assert.equal((await awaited.call('/sign-in/magic-link', { email: newAddress() })).status, 500)
  assert.equal(errors.length, 1)
  const onError = async () => {
    throw new Error('the log is full')
  }
  const background = betterAuthEmail({ postern: captured, waitUntil: () => {}, onError })
  const { call } = await startAuth(background)
  assert.equal((await call('/sign-in/magic-link', { email: newAddress() })).status, 200)
})

test('a made-up link leads to Better Auth’s own route, which checks where it goes on to', async () => {
  const forged = `a~${Buffer.from('callbackURL=https%3A%2F%2Fevil.test').toString('base64url')}`
  const url = `${base}/postern/magic_link?token=${forged}`
  const pressed = await app.auth.handler(new Request(url, { method: 'POST' }))
  const onward = new URL(pressed.headers.get('location') ?? '', url)
  assert.equal(onward.origin + onward.pathname, `${base}/magic-link/verify`)
  assert.equal((await app.call(onward.href)).status, 403)
})

test('where hosted links show a button already, the pages lead on at once', async () => {
  const auth = await startAuth(betterAuthEmail({ postern, confirm: false }))
  const page = await auth.call(`${base}/postern/email_verification?token=a.b.c`)
  assert.equal(page.status, 303)
  assert.equal(page.headers.get('location'), '../verify-email?token=a.b.c')
})
