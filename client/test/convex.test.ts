/**
 * The Convex Auth adapter in a real Convex Auth, run by Convex's own test runtime, sending through the
 * real service.
 */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, test } from 'node:test'
import { Email } from '@convex-dev/auth/providers/Email'
import { Password } from '@convex-dev/auth/providers/Password'
import { authTables, convexAuth, type EmailConfig } from '@convex-dev/auth/server'
import { defineSchema, makeFunctionReference } from 'convex/server'
import { convexTest } from 'convex-test'
import { startTestService } from '../../test/support/service.ts'
import { posternEmail } from '../src/convex.ts'
import { Postern } from '../src/postern.ts'
import { CapturingPostern, DevInbox } from '../src/testing.ts'

const service = await startTestService({ after })
const postern = new Postern({ deliveryKey: service.key, baseUrl: service.urls.api ?? '' })
const inbox = new DevInbox(service.urls.inbox ?? '')
const page = 'https://app.acme.test/sign-in'
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
process.env.JWT_PRIVATE_KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
process.env.CONVEX_SITE_URL = 'https://acme.convex.test'
process.env.SITE_URL = 'https://app.acme.test'

const reset = posternEmail({ postern, page: `${page}/reset`, type: 'password_reset', id: 'reset' })
const auth = convexAuth({
  providers: [posternEmail({ postern, page, maxAge: 1200 }), Password({ reset })],
})
const backend = convexTest(defineSchema(authTables), {
  './convex/_generated/api.js': async () => ({}),
  './convex/auth.ts': async () => auth,
})

type SignedIn = { started?: boolean; tokens?: { token: string } | null }
const action = makeFunctionReference<'action', Record<string, unknown>, SignedIn>('auth:signIn')
const signIn = (provider: string, params: Record<string, unknown>) => backend.action(action, { provider, params })

test('it is a provider of Convex Auth, and fits its helper', () => {
  const provider: EmailConfig = posternEmail({ postern, page })
  assert.equal(Email(posternEmail({ postern, page })).type, provider.type)
})

test('magic link: the email carries the code as token, and the code signs in', async () => {
  const to = 'convex@example.com'
  assert.deepEqual(await signIn('postern', { email: to, redirectTo: '/dash' }), { started: true })
  const email = await inbox.next(to, 'magic_link')
  const left = (Date.parse(email.expiresAt) - Date.now()) / 1000
  assert.ok(left <= 1200 && left > 1140, `${left}`)
  const code = /^https:\/\/app\.acme\.test\/sign-in\?token=(\w{32})$/.exec(email.url)?.[1]
  const { tokens } = await signIn('postern', { code })
  assert.ok(tokens?.token)
})

test('a code that people can type is shown if that is asked for, and is valid only with its address', async () => {
  const capturing = new CapturingPostern()
  const provider = posternEmail({ postern: capturing, page, code: true })
  const given = { identifier: 'ada@example.com', expires: new Date(Date.now() + 60_000) }
  for (const token of ['24681357', 'ab-CD12', 'x'.repeat(32), '12-34'])
    await provider.sendVerificationRequest({ ...given, token })
  await posternEmail({ postern: capturing, page }).sendVerificationRequest({ ...given, token: '24681357' })
  assert.deepEqual(
    capturing.emails.map(({ code }) => code),
    ['24681357', 'ab-CD12', undefined, undefined, undefined],
  )
  assert.ok('authorize' in provider && provider.authorize)
  assert.ok(!('authorize' in posternEmail({ postern, page })))
})

test('password reset, by the same means', async () => {
  const email = 'forgetful@example.com'
  await signIn('password', { flow: 'signUp', email, password: 'a long password' })
  await signIn('password', { flow: 'reset', email })
  const received = await inbox.next(email, 'password_reset')
  const code = new URL(received.url).searchParams.get('token')
  const params = { flow: 'reset-verification', email, code, newPassword: 'another password' }
  await assert.rejects(signIn('password', { ...params, email: 'victim@example.com' }))
  assert.ok((await signIn('password', params)).tokens?.token)
})

test('a code for a password counts for its own address alone, whatever Convex Auth checks itself', async () => {
  const account = { providerAccountId: 'a@example.com' }
  await reset.authorize?.({ email: 'a@example.com' }, account)
  await assert.rejects(async () => reset.authorize?.({ email: 'b@example.com' }, account), /email address/)
  assert.equal(posternEmail({ postern, page }).authorize, undefined)
  assert.throws(() => posternEmail({ postern, page: '/relative' }), /page must be an absolute address/)
})

test('an email that was not queued fails the action', async () => {
  const captured = new CapturingPostern()
  captured.refusal = { status: 429, code: 'recipient_rate_limited' }
  const provider = posternEmail({ postern: captured, page })
  const request = { identifier: 'a@example.com', token: 'a', expires: new Date() }
  await assert.rejects(provider.sendVerificationRequest(request), { code: 'recipient_rate_limited' })
})
