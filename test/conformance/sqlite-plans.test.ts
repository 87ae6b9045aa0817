/**
 * Plans of SQLite: work that is done often, or in the writer thread, searches an index and reads no big table
 * whole.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import type { EmailState } from '../../src/domain/delivery/states.ts'
import { type AppId, type KeyId, newId } from '../../src/domain/id.ts'
import { makeKeyedHash } from '../../src/store/crypto/key-ring.ts'
import type { Connection } from '../../src/store/sqlite/engine/connection.ts'
import { newWriter, WriteTransaction } from '../../src/store/sqlite/queue/write-transaction.ts'
import { runCall } from '../../src/store/sqlite/threads/calls.ts'
import { performRead } from '../../src/store/sqlite/threads/reads.ts'
import { openRecording } from '../support/recording-connection.ts'
import { newRing } from '../support/service.ts'

const app = newId('app', 0) as AppId

const insertApp = 'insert into app (app_id, slug, version, status, status_at, created_at, updated_at, settings)'

const targetOf = (connection: Connection) => ({ sql: (text: string) => connection.sql(text), nowMs: 0 })

test('maintenance, which runs every second, reads no table whole', async (t) => {
  const connection = await openRecording(t)
  const parts = { connection, ring: newRing(), keyedHash: makeKeyedHash(randomBytes(32)), queueMax: 1000 }
  const writer = newWriter({ ...parts, nowMs: () => 40 * 86_400_000 })
  const everySecond = () =>
    connection.transaction(() => runCall(new WriteTransaction(writer), { name: 'maintain', args: [] }))
  connection.connection.exec(`${insertApp} values ('${app}', 'a', 1, 'deleted', 0, 0, 0, '{}')`)
  everySecond()
  connection.connection.exec(`${insertApp} values ('${app}', 'a', 1, 'disabled', 0, 0, 0, '{}')`)
  connection.texts.clear()
  writer.cursors.scanBegunAt = 40 * 86_400_000 // no scan begins
  everySecond()
  // Its one row holds the depth of the queue.
  assert.deepEqual(
    connection.scans().filter((detail) => detail !== 'SCAN queue_depth'),
    [],
  )
})

test('cancelling the mail of a deleted app reads no mail of others', async (t) => {
  const connection = await openRecording(t)
  const parts = { connection, ring: newRing(), keyedHash: makeKeyedHash(randomBytes(32)), queueMax: 1000 }
  const writer = newWriter({ ...parts, nowMs: () => 0 })
  connection.connection.exec(`${insertApp} values ('${app}', 'a', 1, 'deleted', 0, 0, 0, '{}')`)
  connection.texts.clear()
  connection.transaction(() => runCall(new WriteTransaction(writer), { name: 'cancelDeletedAppMail', args: [app] }))
  assert.ok([...connection.texts].some((text) => text.includes("state = 'deferred'")))
  assert.deepEqual(connection.scans(), [])
})

test('a list of the emails of one app reads no mail of others', async (t) => {
  const connection = await openRecording(t)
  const states: (EmailState | undefined)[] = [undefined, 'queued', 'sending', 'deferred', 'delivered', 'failed']
  for (const state of states)
    for (const key of [undefined, 'key_x' as KeyId])
      performRead(targetOf(connection), {
        name: 'listEmails',
        args: [{ app, limit: 10, ...(state && { state }), ...(key && { key }) }],
      })
  // The outer statement of a step with filters reads what the step has read.
  assert.deepEqual(
    connection.scans().filter((detail) => !/^SCAN (step|\(subquery)/.test(detail)),
    [],
  )
})

test('the counts of today, and those of seven days, are found by their day', async (t) => {
  const connection = await openRecording(t)
  performRead(targetOf(connection), { name: 'readUsageToday', args: [null] })
  performRead(targetOf(connection), { name: 'readReportedUsage', args: [null] })
  assert.deepEqual(connection.scans(), [])
})

test('the counts of one app are read without those of others', async (t) => {
  const connection = await openRecording(t)
  connection.connection.exec(`with recursive numbers (n) as (select 0 union all select n + 1 from numbers where n < 2000)
    insert into usage_day (app_id, day, event, count) select 'app_' || n, 0, 'delivered', 1 from numbers`)
  for (const name of ['readUsageToday', 'readReportedUsage'] as const) {
    connection.executions = []
    performRead(targetOf(connection), { name, args: [[app]] })
    const steps = connection.executions.reduce((sum, execution) => sum + execution.steps, 0)
    assert.ok(steps < 500, `${name}: ${steps}`)
  }
})

test('the oldest refusals of an app are found without reading the newest for each of them', async (t) => {
  const connection = await openRecording(t)
  const parts = { connection, ring: newRing(), keyedHash: makeKeyedHash(randomBytes(32)), queueMax: 1000 }
  const writer = newWriter({ ...parts, nowMs: () => 0 })
  const refusal = { requestId: newId('req', 0), at: 0, app, key: newId('key', 0), code: 'x', issues: [] }
  const args = [[{ ...refusal, origin: null }]]
  connection.transaction(() => runCall(new WriteTransaction(writer), { name: 'addRefusals', args }))
  const [text] = [...connection.texts].filter((each) => each.startsWith('delete from refusal'))
  const plan = connection.connection.prepare(`explain query plan ${text}`).all()
  const details = plan.map(({ detail }) => String(detail)).join('\n')
  assert.match(details, /SEARCH old USING .*\(app_id=\? AND request_id<\?\)/)
})

test('a strike, and the look-up for a request, search suppressions and counts', async (t) => {
  const connection = await openRecording(t)
  const parts = { connection, ring: newRing(), keyedHash: makeKeyedHash(randomBytes(32)), queueMax: 1000 }
  const writer = newWriter({ ...parts, nowMs: () => 0 })
  const email = newId('em', 0)
  connection.connection.exec(`${insertApp} values ('${app}', 'acme', 1, 'active', 0, 0, 0, '{}');
    insert into history (email_id, app_id, type, state, attempts, lost_leases, accepted_at,
      expires_at, finished_at, recipient, trail)
    values ('${email}', '${app}', 'magic_link', 'delivered', 1, 0, 1, 0, 0, 'r', '[]')`)
  const reply = parseReply('550 5.1.1 no such user')
  const finding = { kind: 'bounced', about: 'recipient', permanent: true, cause: 'no_mailbox', reply }
  const args = [{ email, source: 'mail', finding, destination: 'other' }]
  connection.transaction(() => runCall(new WriteTransaction(writer), { name: 'recordReport', args }))
  const found = new WriteTransaction(writer).findSuppression(app, 'r', 'magic_link')
  assert.equal(found, 'no_mailbox')
  // `select 1 … limit 1` asks whether there is any.
  assert.deepEqual(
    connection.scans().filter((detail) => !detail.startsWith('SCAN suppression')),
    [],
  )
  const counting = [...connection.texts].filter((text) => /from (?:suppression|activity) where|into strike/.test(text))
  assert.equal(counting.length, 4, 'of suppressions twice, of the minutes of the app, of strikes')
  for (const text of counting) {
    const plan = connection.connection.prepare(`explain query plan ${text}`).all()
    const details = plan.map(({ detail }) => String(detail))
    assert.ok(
      details.every((detail) => /^(?:SEARCH (?:suppression|activity) USING|USE TEMP B-TREE)/.test(detail)),
      details.join(),
    )
  }
})
