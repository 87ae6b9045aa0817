/** What tests of apps use: the capturing client and the reader of the dev inbox. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startTestService, validBody } from '../../test/support/service.ts'
import { CapturingPostern, DevInbox } from '../src/testing.ts'

const service = await startTestService({ after })
const inbox = () => new DevInbox(`${service.urls.console}/`)

test('captured emails are what the service would have got; a refusal captures nothing', async () => {
  const postern = new CapturingPostern()
  const email = { to: 'a@example.com', type: 'magic_link', url: new URL('https://a.test/?token=t') } as const
  const { emailId } = await postern.send({ ...email, expiresAt: new Date(0) })
  assert.ok(emailId)
  const captured = { ...email, url: 'https://a.test/?token=t', expiresAt: '1970-01-01T00:00:00.000Z' }
  assert.deepEqual(postern.latest('a@example.com'), captured)
  postern.refusal = { status: 403, code: 'url_not_allowed' }
  await assert.rejects(postern.send({ ...email, expiresAt: new Date(0) }), {
    code: 'url_not_allowed',
    status: 403,
  })
  assert.equal(postern.emails.length, 1)
  assert.equal(postern.latest('b@example.com'), undefined)
})

test('the inbox gives each email once, and waits for the next', async () => {
  const reader = inbox()
  const to = 'reader+1@example.com'
  assert.equal(await reader.latest(to), null)
  const waiting = reader.next(to)
  await service.post(validBody({ to }))
  const first = await waiting
  assert.equal(first.url, 'https://app.acme.test/auth?token=abc')
  const second = reader.next(to, 'password_reset')
  await service.post(validBody({ to, type: 'password_reset' }))
  assert.notEqual((await second).id, first.id)
  await assert.rejects(reader.next(to, undefined, 30), { code: 'timeout' })
})

test('what is no inbox is told', async () => {
  for (const url of [service.urls.ops, service.urls.api]) {
    await assert.rejects(new DevInbox(url ?? '').latest('a@example.com'), { code: 'unexpected_response' })
  }
})
