/** The `locale` option of each adapter: what it is given, and what becomes of its answer. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { posternProvider } from '../src/auth-js.ts'
import { betterAuthEmail } from '../src/better-auth.ts'
import { posternEmail } from '../src/convex.ts'
import { fromBrowser } from '../src/locale.ts'
import { ownAuthEmail } from '../src/own-auth.ts'
import { CapturingPostern } from '../src/testing.ts'

const page = 'https://app.acme.test/auth/confirm'
const expires = new Date(Date.now() + 60_000)
const browser = new Request(page, { headers: { 'accept-language': 'de-AT, en;q=0.5' } })
const locales = (postern: CapturingPostern) => postern.emails.map(({ locale }) => locale)

test('Auth.js: the browser of the request', async () => {
  const postern = new CapturingPostern()
  const given = { identifier: 'ana@example.com', url: `${page}?callbackUrl=x&token=t`, expires, token: 't' }
  for (const locale of [({ request }: { request?: Request | undefined }) => fromBrowser(request), undefined]) {
    const provider = posternProvider({ postern, confirmUrl: page, locale })
    await provider.sendVerificationRequest({ ...given, request: browser })
  }
  assert.deepEqual(locales(postern), ['de-AT, en;q=0.5', undefined])
})

test('Convex Auth: what a function finds by the address and the context', async () => {
  const postern = new CapturingPostern()
  const provider = posternEmail({
    postern,
    page,
    locale: async ({ identifier }, ctx) => (identifier === 'ana@example.com' ? (ctx as { tag: string }).tag : null),
  })
  const given = { token: 't'.repeat(32), expires }
  await provider.sendVerificationRequest({ ...given, identifier: 'ana@example.com' }, { tag: 'fr' })
  await provider.sendVerificationRequest({ ...given, identifier: 'ben@example.com' }, { tag: 'fr' })
  assert.deepEqual(locales(postern), ['fr', undefined])
})

test('own-auth: what a function finds by the message; a failure keeps no email from being sent', async () => {
  const said = mock.method(console, 'error', () => {})
  const postern = new CapturingPostern()
  const message = {
    to: 'ana@example.com',
    type: 'magic_link',
    token: 't',
    url: `${page}?token=t`,
    expiresAt: expires,
  }
  for (const locale of [
    (given: { to: string }) => given.to.slice(0, 2),
    () => '',
    () => Promise.reject(new Error('the table is gone')),
  ])
    await ownAuthEmail({ postern, locale }).send(message)
  assert.deepEqual(locales(postern), ['an', undefined, undefined])
  assert.equal(said.mock.callCount(), 1)
  said.mock.restore()
})

test('Better Auth: the user and the browser of the recipient, never that of an inviter', async () => {
  const postern = new CapturingPostern()
  const email = betterAuthEmail({
    postern,
    pages: { password_reset: page, organisation_invite: page },
    locale: ({ user, metadata, type }, request) => user?.locale ?? metadata?.locale ?? fromBrowser(request) ?? type,
  })
  email.plugin.init({ options: {} })
  const url = 'https://app.acme.test/api/auth/reset-password/t?callbackURL=x'
  const user = { email: 'ana@example.com' }
  await email.sendResetPassword({ user: { ...user, locale: 'sv' } as typeof user, url, token: 't' }, browser)
  await email.sendResetPassword({ user, url, token: 't' }, browser)
  await email.sendInvitationEmail({
    id: 'i',
    email: 'ana@example.com',
    organization: { name: 'Blue' },
    invitation: { expiresAt: expires },
    inviter: { user: { name: 'Ben', email: 'ben@example.com' } },
  })
  assert.deepEqual(locales(postern), ['sv', 'de-AT, en;q=0.5', 'organisation_invite'])
})

test('a language that takes too long, is too long or is no text keeps no email from being sent, and no answer waiting', async () => {
  const message = {
    to: 'ana@example.com',
    type: 'magic_link',
    token: 't',
    url: `${page}?token=t`,
    expiresAt: expires,
  }
  const failures: unknown[] = []
  const postern = new CapturingPostern()
  const wrong: readonly unknown[] = ['x'.repeat(501), 5n, {}]
  // A cast, because JavaScript can return what the types refuse.
  for (const value of wrong) await ownAuthEmail({ postern, locale: () => value as string }).send(message)
  assert.deepEqual(locales(postern), [undefined, undefined, undefined])
  mock.timers.enable({ apis: ['setTimeout'] })
  const waiting: Promise<unknown>[] = []
  const slow = {
    postern,
    locale: () => new Promise<string>(() => {}),
    onError: (error: unknown) => failures.push(error),
  }
  // It returns before the language is known: the time of the answer says nothing of the account.
  await ownAuthEmail({ ...slow, waitUntil: (sending) => void waiting.push(sending) }).send(message)
  mock.timers.tick(2000)
  mock.timers.reset()
  await Promise.all(waiting)
  assert.equal(locales(postern).length, 4)
  assert.match(String(failures), /took over two seconds/)
})
