/** The Auth.js adapter in a real Auth.js, sending through the real service. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Auth, type AuthConfig, setEnvDefaults } from '@auth/core'
import type { Adapter, AdapterSession, AdapterUser, VerificationToken } from '@auth/core/adapters'
import type { EmailConfig } from '@auth/core/providers'
import { startTestService } from '../../test/support/service.ts'
import { confirm, posternProvider } from '../src/auth-js.ts'
import { Postern } from '../src/postern.ts'
import { CapturingPostern, DevInbox } from '../src/testing.ts'

const origin = 'https://app.acme.test'
const service = await startTestService({ after })
const postern = new Postern({ deliveryKey: service.key, baseUrl: service.urls.api ?? '' })
const inbox = new DevInbox(service.urls.inbox ?? '')
const confirmUrl = `${origin}/sign-in/confirm`

/** A minimal database for Auth.js. */
function memoryAdapter(): Adapter {
  const users: AdapterUser[] = []
  const sessions: AdapterSession[] = []
  const tokens: VerificationToken[] = []
  const userOf = (id: string) => users.find((user) => user.id === id) ?? null
  return {
    createUser: async (user) => users[users.push(user) - 1] as AdapterUser,
    getUser: async (id) => userOf(id),
    getUserByEmail: async (email) => users.find((user) => user.email === email) ?? null,
    getUserByAccount: async () => null,
    updateUser: async (user) => Object.assign(userOf(user.id) ?? {}, user) as AdapterUser,
    linkAccount: async () => undefined,
    createSession: async (session) => sessions[sessions.push(session) - 1] as AdapterSession,
    getSessionAndUser: async (sessionToken) => {
      const session = sessions.find((known) => known.sessionToken === sessionToken)
      const user = session && userOf(session.userId)
      return session && user ? { session, user } : null
    },
    updateSession: async () => null,
    deleteSession: async () => undefined,
    createVerificationToken: async (token) => void tokens.push(token),
    useVerificationToken: async ({ identifier, token }) => {
      const at = tokens.findIndex((known) => known.identifier === identifier && known.token === token)
      return at < 0 ? null : (tokens.splice(at, 1)[0] ?? null)
    },
  }
}

function startAuth(provider: EmailConfig) {
  const config: AuthConfig = {
    adapter: memoryAdapter(),
    providers: [provider],
    secret: 'a secret of thirty-two characters',
    trustHost: true,
    basePath: '/api/auth',
    logger: { error: () => {} },
  }
  setEnvDefaults({}, config)
  const jar = new Map<string, string>()
  const call = async (url: string, form?: Record<string, string>): Promise<Response> => {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const request = new Request(url, {
      method: form ? 'POST' : 'GET',
      headers: { cookie, ...(form && { 'content-type': 'application/x-www-form-urlencoded' }) },
      ...(form && { body: new URLSearchParams(form) }),
    })
    const response = (await Auth(request, config)) as Response
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      jar.set(name, value)
    }
    return response
  }
  const signIn = async (id: string, email: string, callbackUrl: string): Promise<Response> => {
    const { csrfToken } = (await (await call(`${origin}/api/auth/csrf`)).json()) as { csrfToken: string }
    return call(`${origin}/api/auth/signin/${id}`, { email, csrfToken, callbackUrl })
  }
  return { call, signIn }
}

test('sign-in: the email’s link leads to a button, and the button signs in and goes on', async () => {
  const { call, signIn } = startAuth(posternProvider({ postern, confirmUrl, maxAge: 1200 }))
  const to = 'auth+js@example.com'
  const asked = await signIn('postern', to, `${origin}/dash?a=1&b=ü`)
  assert.match(asked.headers.get('location') ?? '', /verify-request/)
  const email = await inbox.next(to, 'magic_link')
  const left = (Date.parse(email.expiresAt) - Date.now()) / 1000
  assert.ok(left <= 1200 && left > 1140, `${left}`)
  assert.match(email.url, /^https:\/\/app\.acme\.test\/sign-in\/confirm\?token=[^&=]+$/)

  const page = confirm(new Request(email.url))
  assert.equal(page.status, 200)
  assert.match(await page.text(), /<form method="post"><button>Sign in<\/button>/)
  const pressed = confirm(new Request(email.url, { method: 'POST' }))
  assert.equal(pressed.status, 303)
  const landed = await call(new URL(pressed.headers.get('location') ?? '', email.url).href)
  assert.equal(landed.headers.get('location'), `${origin}/dash?a=1&b=ü`)
  const session = (await (await call(`${origin}/api/auth/session`)).json()) as { user: { email: string } }
  assert.equal(session.user.email, to)
})

test('an email that was not queued is an error of the sign-in; with waitUntil it goes to onError', async () => {
  const captured = new CapturingPostern()
  captured.refusal = { status: 429, code: 'recipient_rate_limited' }
  const failing = startAuth(posternProvider({ postern: captured, confirmUrl, id: 'link' }))
  const answer = await failing.signIn('link', 'a@example.com', origin)
  assert.match(answer.headers.get('location') ?? '', /error/)

  const errors: unknown[] = []
  const promises: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => promises.push(promise)
  const onError = (error: unknown) => errors.push(error)
  const background = startAuth(posternProvider({ postern: captured, confirmUrl, waitUntil, onError }))
  const ok = await background.signIn('postern', 'a@example.com', origin)
  assert.match(ok.headers.get('location') ?? '', /verify-request/)
  await Promise.all(promises)
  assert.equal((errors[0] as { code: string }).code, 'recipient_rate_limited')
})

test('a confirm page elsewhere is refused by name', async () => {
  const provider = posternProvider({ postern, confirmUrl: 'https://elsewhere.test/confirm' })
  const request = {
    identifier: 'a@example.com',
    token: 'a',
    expires: new Date(),
    url: `${origin}/api/auth/callback/x?token=a`,
  }
  await assert.rejects(provider.sendVerificationRequest(request), /confirmUrl must be on Auth\.js's own origin/)
})

test('a confirm page that is no address is refused when the provider is made', () => {
  assert.throws(() => posternProvider({ postern, confirmUrl: '/confirm' }), /confirmUrl must be an absolute address/)
})

test('a made-up link leads nowhere but to a callback of this origin', () => {
  const forged = (rest: string) => `${confirmUrl}?token=a~${Buffer.from(rest).toString('base64url')}`
  for (const rest of [
    '//evil.test/callback/x?',
    '/\\evil.test/callback/x?',
    'https://evil.test/callback/x?',
    '/logout?',
    '/a/../callback/../x?',
  ]) {
    assert.equal(confirm(new Request(forged(rest), { method: 'POST' })).status, 400, rest)
  }
  const fine = confirm(new Request(forged('/auth/callback/postern?email=a'), { method: 'POST' }))
  assert.equal(fine.headers.get('location'), '/auth/callback/postern?email=a&token=a')
})

test('a token that people can type is shown as a code if that is asked for', async () => {
  const capturing = new CapturingPostern()
  const url = `${origin}/api/auth/callback/postern?callbackUrl=x&token=t&email=ada%40example.com`
  const given = { identifier: 'ada@example.com', url, expires: new Date(Date.now() + 60_000) }
  for (const [code, token] of [
    [true, 'AB12CD34'],
    [true, 'f'.repeat(64)],
    [false, 'AB12CD34'],
  ] as const)
    await posternProvider({ postern: capturing, confirmUrl, code }).sendVerificationRequest({
      ...given,
      token,
    })
  assert.deepEqual(
    capturing.emails.map(({ code }) => code),
    ['AB12CD34', undefined, undefined],
  )
})
