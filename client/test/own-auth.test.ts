/** The own-auth adapter, and own-auth's own managed provider, which sends to the same endpoint. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startTestService } from '../../test/support/service.ts'
import { type OwnAuthMessage, ownAuthEmail, splitToken } from '../src/own-auth.ts'
import { Postern } from '../src/postern.ts'
import { CapturingPostern, DevInbox } from '../src/testing.ts'

const service = await startTestService({ after })
const postern = new Postern({ deliveryKey: service.key, baseUrl: service.urls.api ?? '' })
const inbox = new DevInbox(service.urls.inbox ?? '')

/** The provider interface of own-auth 0.3. */
type EmailProvider = {
  send(message: { to: string; type: string; token: string; url: string; expiresAt: Date }): Promise<void>
}

const message = (change: Partial<OwnAuthMessage> = {}): OwnAuthMessage => ({
  to: 'own@example.com',
  type: 'magic_link',
  token: 'abc',
  url: 'https://app.acme.test/auth?token=abc',
  expiresAt: new Date(Date.now() + 900_000),
  ...change,
})

test('it is an EmailProvider; every type arrives with its link and its end', async () => {
  const provider: EmailProvider = ownAuthEmail({ postern, organisationName: 'Blue' })
  for (const type of ['magic_link', 'email_verification', 'password_reset', 'organisation_invite'] as const) {
    const sent = message({ type, to: `${type}@example.com` })
    await provider.send(sent)
    const received = await inbox.next(sent.to, type)
    assert.equal(received.url, sent.url)
    assert.equal(received.expiresAt, sent.expiresAt.toISOString())
  }
})

test('an invitation shows the organisation at hand and who invites', async () => {
  const provider = ownAuthEmail({
    postern,
    organisationName: async ({ token }) => `Organisation ${token}`,
    inviterName: () => 'Grace',
  })
  await provider.send(message({ type: 'organisation_invite', to: 'invited@example.com' }))
  assert.match((await inbox.next('invited@example.com')).text, /Grace[\s\S]*Organisation abc/)
  const nameless = ownAuthEmail({ postern })
  await assert.rejects(nameless.send(message({ type: 'organisation_invite' })), /Give organisationName/)
})

test('a second parameter is left out, or travels in the token', async () => {
  const captured = new CapturingPostern()
  const url = 'https://app.acme.test/auth?redirect=%2Fdash%3Fa%3D1&token=abc#top'
  await ownAuthEmail({ postern: captured }).send(message({ url }))
  assert.equal(captured.emails[0]?.url, 'https://app.acme.test/auth?token=abc#top')
  await ownAuthEmail({ postern: captured, parameters: 'in-token' }).send(message({ url }))
  const link = new URL(captured.emails[1]?.url ?? '')
  assert.deepEqual(splitToken(link.searchParams.get('token') ?? ''), {
    token: 'abc',
    rest: 'redirect=%2Fdash%3Fa%3D1',
  })
  await ownAuthEmail({ postern }).send(message({ url, to: 'two@example.com' }))
  assert.ok(await inbox.next('two@example.com'))
})

test('a type of its own is refused clearly; waitUntil hands the sending over', async () => {
  await assert.rejects(ownAuthEmail({ postern }).send(message({ type: 'otp' })), {
    code: 'unsupported_email',
  })
  const captured = new CapturingPostern()
  const promises: Promise<unknown>[] = []
  await ownAuthEmail({ postern: captured, waitUntil: (promise) => promises.push(promise) }).send(message())
  assert.equal(promises.length, 1)
  await Promise.all(promises)
  assert.equal(captured.emails.length, 1)
})

/** Sends a body as own-auth's managed provider does. */
async function managed(body: string, key = service.key): Promise<{ status: number; text: string }> {
  const response = await fetch(`${service.urls.api}/v1/email`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body,
  })
  return { status: response.status, text: await response.text() }
}

test('its managed provider’s requests are taken as they are', async () => {
  const expiresAt = new Date(Date.now() + 900_000).toISOString()
  const url = 'https://app.acme.test/auth?token=abc'
  for (const type of ['magic_link', 'email_verification', 'password_reset']) {
    const body = `{"to":"${type}.managed@example.com","type":"${type}","url":"${url}","expiresAt":"${expiresAt}"}`
    assert.equal(body, JSON.stringify({ to: `${type}.managed@example.com`, type, url, expiresAt }))
    assert.deepEqual(await managed(body), { status: 202, text: '{"ok":true}' })
    assert.equal((await inbox.next(`${type}.managed@example.com`)).url, url)
  }
})

test('its managed provider shows code and message of every refusal: both are short strings', async () => {
  const expiresAt = new Date(Date.now() + 900_000).toISOString()
  const body = (change: object) =>
    JSON.stringify({
      to: 'm@example.com',
      type: 'magic_link',
      url: 'https://app.acme.test/a?token=t',
      expiresAt,
      ...change,
    })
  for (const [refused, expected, key] of [
    [body({ type: 'organisation_invite' }), 'invalid_body', service.key],
    [body({ url: 'https://app.acme.test/a?token=t&redirect=x' }), 'invalid_url', service.key],
    [body({ url: 'https://evil.test/?token=t' }), 'url_not_allowed', service.key],
    [body({}), 'invalid_key', 'pst_nonsense'],
  ] as const) {
    const { error } = JSON.parse((await managed(refused, key)).text) as { error: Record<string, unknown> }
    assert.equal(error.code, expected)
    assert.ok(typeof error.message === 'string' && error.message.length <= 240)
  }
})
