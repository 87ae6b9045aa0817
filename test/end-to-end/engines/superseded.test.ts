/** After an outage of the relay, a person who asked several times gets one email: the newest. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { supersededAfterMs } from '../../../src/domain/bounds.ts'
import type { EmailId } from '../../../src/domain/id.ts'
import type { EmailRecord } from '../../../src/store/operator-store.ts'
import { relayTo, startTestService, type TestService, testSettings, validBody } from '../../support/service.ts'
import { startScriptedServer } from '../../support/smtp.ts'
import { eventually } from '../../support/wait.ts'

/** Posts, and waits until the relay, which is down, has deferred the email. */
async function ask(service: TestService, change: object): Promise<EmailId> {
  const answer = await service.post(validBody({ ...change }))
  assert.equal(answer.status, 202, JSON.stringify(answer.body))
  const id = answer.headers.get('email-id') as EmailId
  await eventually(async () => (await find(service, id)).state === 'deferred')
  service.advance(supersededAfterMs)
  return id
}

async function find({ store }: TestService, id: EmailId): Promise<EmailRecord> {
  const email = await store.findEmail(id)
  assert.ok(email)
  return email
}

const link = (token: string, page = 'auth') => ({ url: `https://app.acme.test/${page}?token=${token}` })

/** A service whose relay defers all mail until `recover` is called. */
async function startDuringOutage(t: Parameters<typeof startTestService>[0], settings = testSettings) {
  let isDown = true
  const relay = await startScriptedServer(t, {
    rcpt: (socket) => socket.write(isDown ? '450 4.3.0 not now\r\n' : '250 ok\r\n'),
  })
  const service = await startTestService(t, { relays: [relayTo(relay.port)], settings })
  const recover = async (emails: number) => {
    isDown = false
    await service.store.retryDeferred(null, null, null)
    await eventually(() => relay.messages.length >= emails)
    await eventually(async () => (await service.store.readQueueGauge()).depth === 0)
    const found = relay.messages.map((text) => /token(?:=3D|=)([a-z0-9]+)/.exec(text)?.[1] ?? '')
    return found.toSorted()
  }
  return { service, recover }
}

test('five requests of one person while the relay is down make one email, with the newest link', async (t) => {
  const { service, recover } = await startDuringOutage(t)
  const ids = []
  for (const token of ['a1', 'b2', 'c3', 'd4', 'e5']) ids.push(await ask(service, link(token)))
  assert.deepEqual(await recover(1), ['e5'])
  const emails = await Promise.all(ids.map((id) => find(service, id)))
  assert.deepEqual(
    emails.map(({ state, reason }) => `${state} ${reason}`),
    [...Array.from({ length: 4 }, () => 'cancelled superseded'), 'delivered null'],
  )
  for (const id of ids.slice(0, -1)) {
    const lines = service.log.filter((line) => line.includes(id) && line.includes('superseded'))
    assert.equal(lines.length, 1, 'the end of each is logged once')
  }
})

test('other people, types, pages and invitations get their own', async (t) => {
  const { service, recover } = await startDuringOutage(t)
  const invitation = { type: 'organisation_invite', organisationName: 'Acme' }
  await ask(service, link('a1'))
  await ask(service, { ...link('b2'), to: 'bob@example.com' })
  await ask(service, { ...link('c3'), type: 'password_reset' })
  await ask(service, link('d4', 'other'))
  await ask(service, { ...link('e5'), ...invitation })
  await ask(service, { ...link('f6'), ...invitation })
  assert.deepEqual(await recover(6), ['a1', 'b2', 'c3', 'd4', 'e5', 'f6'])
})

test('an app may have every email sent', async (t) => {
  const { service, recover } = await startDuringOutage(t, { ...testSettings, supersede: false })
  for (const token of ['a1', 'b2']) await ask(service, link(token))
  assert.deepEqual(await recover(2), ['a1', 'b2'])
})
