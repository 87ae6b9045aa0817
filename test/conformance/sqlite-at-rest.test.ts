/**
 * Content in the database file is always sealed, and is deleted once an email is finished. The test
 * reads the ciphertext, since the plaintext is never in the file.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { scanEveryMs, webhookDays } from '../../src/domain/bounds.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import type { EndState } from '../../src/domain/delivery/states.ts'
import { newId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { Connection } from '../../src/store/sqlite/engine/connection.ts'
import { listEmails, operator } from '../support/operator.ts'
import { newRing, startTestService, validBody } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary.ts'

const canary = {
  to: 'canary-recipient@example.com',
  url: 'https://app.acme.test/?token=canary-token',
  organisationName: 'canary-organisation',
  inviterName: 'canary-inviter',
}

type Ending = (service: Awaited<ReturnType<typeof startTestService>>) => Promise<unknown>

const endings: Record<Exclude<EndState, 'suppressed'>, Ending> = {
  delivered: (service) => finish(service, { kind: 'delivered', reply: parseReply('250 ok'), relay: 'r' }),
  failed: (service) =>
    finish(service, {
      kind: 'failed',
      reply: parseReply('550 no'),
      relay: 'r',
      reason: 'refused_by_relay',
    }),
  expired: async (service) => {
    service.advance(3_600_000)
    await service.store.claimDue({ max: 9, perApp: 9, leases: [] })
  },
  cancelled: async (service) => {
    for (const email of await listEmails(service.store, { limit: 9 }))
      await service.store.cancelEmail(email.id, operator)
  },
}

type Outcome = Parameters<Awaited<ReturnType<typeof startTestService>>['store']['recordOutcome']>[1]

async function finish(service: Awaited<ReturnType<typeof startTestService>>, outcome: Outcome): Promise<void> {
  const { claims } = await service.store.claimDue({ max: 9, perApp: 9, leases: [] })
  for (const claim of claims) await service.store.recordOutcome(claim, outcome)
}

/** Sealed content begins with it. */
const ringId = 'key-of-content'

type Opened = { service: Awaited<ReturnType<typeof startTestService>>; path: string }

async function open(t: TestContext): Promise<Opened> {
  const ring = newRing(ringId)
  const path = join(temporaryFolder(t), 'postern.db')
  const database = { engine: 'sqlite', path } as const
  return { service: await startTestService(t, { roles: new Set(['api'] as const), database, ring }), path }
}

async function postCanary({ service }: Opened): Promise<void> {
  const headers = { 'idempotency-key': 'canary-idempotency-key' }
  const { status } = await service.post(validBody({ ...canary, type: 'organisation_invite' }), headers)
  assert.equal(status, 202)
}

/** The sealed content of the queue. */
function readSealed({ path }: Opened): Buffer[] {
  const reader = new Connection(path, { readOnly: true })
  const rows = reader.sql('select sealed from queue').all()
  reader.close()
  return rows.map((row) => Buffer.from(row.sealed as Uint8Array))
}

async function assertGone(opened: Opened, state: EndState): Promise<void> {
  const { path, service } = opened
  assert.deepEqual(
    (await listEmails(service.store, { limit: 9 })).map((email) => email.state),
    [state],
  )
  assert.deepEqual(readSealed(opened), [])
  for (const file of [path, `${path}-wal`]) assert.doesNotMatch(readFileSync(file, 'latin1'), /canary/, file)
}

for (const [state, end] of Object.entries(endings)) {
  test(`an email that is ${state} leaves no content, sealed or not`, async (t) => {
    const opened = await open(t)
    await postCanary(opened)
    const [ciphertext, ...more] = readSealed(opened)
    assert.ok(ciphertext !== undefined && more.length === 0)
    await end(opened.service)
    await assertGone(opened, state as EndState)
  })
}

test('an email that is suppressed never has content in the file, sealed or not', async (t) => {
  const opened = await open(t)
  const { path, service } = opened
  const suppression = {
    app: service.app.id,
    recipient: service.store.nameRecipient(canary.to as EmailAddress),
    destination: 'other',
    until: service.store.now() + 3_600_000,
  } as const
  await service.store.setSuppression(suppression, operator)
  const countSealed = () => readFileSync(`${path}-wal`, 'latin1').split(ringId).length
  const before = countSealed() // the database's own secrets are sealed, too
  await postCanary(opened)
  assert.equal(countSealed(), before)
  await assertGone(opened, 'suppressed')
  await service.post(validBody({ to: 'other@example.com' }))
  assert.ok(countSealed() > before, 'it is seen where there is some')
})

test('the recipient of a webhook leaves the file when the message has ended, or after three days', async (t) => {
  const { path, service } = await open(t)
  const { store, app } = service
  const settings = { ...app.settings, webhookUrl: 'https://app.acme.test/' }
  await store.updateApp(app.id, { settings }, operator)
  await store.setWebhookSecret({ app: app.id, sealed: 'secret', oldUntil: 0 }, operator)
  const add = () =>
    store.addWebhookMessage({
      ...{ app: app.id, event: 'email.failed', email: newId('em', 0), facts: {} },
      sealed: 'sealed-recipient',
    })
  const sealed = () => {
    const reader = new Connection(path, { readOnly: true })
    const rows = reader.sql('select sealed from webhook_message order by message_id').all()
    reader.close()
    return rows.map((row) => row.sealed)
  }
  await Promise.all([add(), add(), add()])
  const [first, second] = await store.claimWebhooks(app.id, 2)
  assert.ok(first && second)
  await store.endWebhookTry({ ...first, result: '204', receiver: 'accepts', waitMs: null })
  await store.endWebhookTry({ ...second, result: '500', receiver: 'fails', waitMs: 5000 })
  assert.deepEqual(sealed(), [null, 'sealed-recipient', 'sealed-recipient'])
  service.advance(webhookDays * 86_400_000 + scanEveryMs)
  while ((await store.maintain()).more);
  assert.deepEqual(sealed(), [null, null, null])
})
