/** `recipient.forget`: nothing in the database names an address any more but what the answer says. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { composeRunner } from '../../../src/compose/management.ts'
import type { EmailId } from '../../../src/domain/id.ts'
import type { EmailAddress } from '../../../src/domain/request/email-address.ts'
import type { CallInput, OperationName } from '../../../src/management/operations.ts'
import { engine } from '../../support/database.ts'
import { dumpTables } from '../../support/dump.ts'
import { listEmails, operator } from '../../support/operator.ts'
import { refusalsOf, relayTo, startTestService, type TestService, validBody } from '../../support/service.ts'
import { startScriptedServer } from '../../support/smtp.ts'
import type { Scope } from '../../support/temporary.ts'
import { eventually } from '../../support/wait.ts'

const runnerOf = ({ config, store }: TestService) => composeRunner(config, { store, version: 'test', user: 'test' })

async function call<Name extends OperationName>(service: TestService, name: Name, input: CallInput<Name>) {
  const result = await runnerOf(service).call(name, input)
  assert.ok(result.ok, JSON.stringify(result))
  return result.value
}

const ada = 'ada@example.com' as EmailAddress
const bob = 'bob@example.com' as EmailAddress

async function post(service: TestService, change: Record<string, unknown>): Promise<EmailId> {
  const answer = await service.post(validBody(change))
  assert.equal(answer.status, 202, JSON.stringify(answer.body))
  return answer.headers.get('email-id') as EmailId
}

/** The tables in which the name of a recipient stands. */
async function tablesNaming(service: TestService, to: EmailAddress): Promise<string[]> {
  const name = service.store.nameRecipient(to)
  const tables = await dumpTables(service.config.database)
  return [...tables].flatMap(([table, rows]) => (rows.includes(name) ? [table] : [])).toSorted()
}

/** A service with mail to both addresses: delivered, deferred, refused and suppressed. */
async function newKnown(scope: Scope): Promise<TestService> {
  const replies = { rcpt: '250 ok' }
  const relay = await startScriptedServer(scope, () => replies)
  const service = await startTestService(scope, { relays: [relayTo(relay.port)] })
  const { app, store } = service
  for (const to of [ada, bob]) {
    await post(service, { to })
    assert.equal((await service.post(validBody({ to, url: 'https://other.test/' }))).status, 400)
    const until = store.now() + 1e9
    const suppression = { app: null, recipient: store.nameRecipient(to), destination: 'other', until } as const
    await store.setSuppression(suppression, operator)
    await call(service, 'email.find', { body: { to } })
  }
  await eventually(async () => (await listEmails(store, { limit: 9 })).every(({ finishedAt }) => finishedAt !== null))
  await eventually(async () => (await refusalsOf(store, app.id)).length === 2)
  return service
}

test('an address is forgotten: its records, its refused requests, and its suppressions if asked', async (t) => {
  const service = await newKnown(t)
  const before = await tablesNaming(service, ada)
  assert.deepEqual(before, ['audit', 'history', 'refusal', 'suppression'])
  const first = await call(service, 'recipient.forget', { body: { to: ada } })
  assert.deepEqual(
    { ...first, kept: first.kept.length },
    { cancelled: 0, left: 0, records: 1, refusals: 1, suppressions: 0, next: null, kept: 4 },
  )
  assert.deepEqual(await tablesNaming(service, ada), ['audit', 'suppression'])
  const second = await call(service, 'recipient.forget', { body: { to: ada, suppressions: true } })
  assert.deepEqual([second.records, second.refusals, second.suppressions, second.kept.length], [0, 0, 1, 3])
  const { items } = await service.store.listAudit({ actions: ['recipient.forget'], limit: 9 })
  assert.deepEqual(
    items.map(({ after }) => [Object.keys(after ?? {})[0], after?.suppressions]),
    [
      ['done', true],
      ['begun', true],
      ['done', false],
      ['begun', false],
    ],
  )
  assert.deepEqual(await tablesNaming(service, ada), ['audit'])
  assert.deepEqual(await tablesNaming(service, bob), before, 'another address keeps all')
})

test('queued emails are cancelled; one that a worker is sending is counted, and forgotten by the next request', async (t) => {
  const held: Socket[] = []
  const relay = await startScriptedServer(t, (connection) =>
    connection === 0 ? { data: (socket) => void held.push(socket) } : { rcpt: '450 4.2.0 later' },
  )
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const isDeferred = async (id: EmailId) => (await service.store.findEmail(id))?.state === 'deferred'
  await post(service, { to: ada })
  await eventually(() => held.length === 1)
  const [own, other] = [await post(service, { to: ada }), await post(service, { to: bob })]
  await eventually(async () => (await isDeferred(own)) && (await isDeferred(other)))
  const first = await call(service, 'recipient.forget', { body: { to: ada } })
  assert.deepEqual([first.cancelled, first.left, first.records], [1, 1, 1])
  held[0]?.write('354 go on\r\n')
  await eventually(() => relay.messages.length === 1)
  await eventually(async () =>
    (await listEmails(service.store, { limit: 9 })).every(({ state }) => state !== 'sending'),
  )
  const second = await call(service, 'recipient.forget', { body: { to: ada } })
  assert.deepEqual([second.cancelled, second.left, second.records], [0, 0, 1])
  assert.deepEqual(await tablesNaming(service, ada), ['audit'])
  assert.equal(await isDeferred(other), true)
})

test('what takes too long for one request goes on where it stopped', {
  skip: engine === 'postgres' && 'skipped: deadlines of connections to PostgreSQL use the clock that the test moves',
}, async (t) => {
  const relay = await startScriptedServer(t, { rcpt: '450 4.2.0 later' })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const ids = [await post(service, { to: ada }), await post(service, { to: ada })]
  const isDeferred = async (id: EmailId) => (await service.store.findEmail(id))?.state === 'deferred'
  await eventually(async () => (await isDeferred(ids[0] as EmailId)) && (await isDeferred(ids[1] as EmailId)))
  const counts = { cancelled: 0, records: 0 }
  let [requests, next] = [0, null as string | null]
  do {
    // Each look at the clock finds it four seconds later, so the time of a request is over after a few steps.
    let asked = 0
    const now = performance.now.bind(performance)
    const clock = t.mock.method(performance, 'now', () => now() + asked++ * 4000)
    const answer = await call(service, 'recipient.forget', { body: { to: ada, ...(next !== null && { after: next }) } })
    clock.mock.restore()
    counts.cancelled += answer.cancelled
    counts.records += answer.records
    next = answer.next
    requests += 1
    if (next === null) continue
    const other = await runnerOf(service).call('recipient.forget', { body: { to: bob, after: next } })
    assert.ok(!other.ok && other.error.code === 'cursor_mismatch', 'a place is that of one address')
  } while (next !== null)
  assert.ok(requests > 1)
  assert.deepEqual(counts, { cancelled: 2, records: 2 })
  assert.deepEqual(await tablesNaming(service, ada), ['audit'])
})
