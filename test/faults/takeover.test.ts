/**
 * Dead and stopped workers: their mail is taken back at once, and what they might still send is not
 * handed over.
 */
import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { lostLeaseWaitMs, suspectAfter } from '../../src/domain/delivery/states.ts'
import type { EmailId } from '../../src/domain/id.ts'
import { leaseMs } from '../../src/store/store.ts'
import { posternJson, type RunningPostern, spawnServe, startServe } from '../support/cli.ts'
import { databaseAt } from '../support/database.ts'
import { lacking } from '../support/installed.ts'
import { makeMachine } from '../support/network.ts'
import { listEmails } from '../support/operator.ts'
import { cutSessions, makeCluster, postgresUrl, runSql, startCluster, startPostgres } from '../support/postgres.ts'
import { reportCounts } from '../support/row-reporter.ts'
import { newRing, relayTo, send, startTestService, validBody } from '../support/service.ts'
import { startScriptedServer } from '../support/smtp.ts'
import { killWorkers, poisonService } from '../support/takeover.ts'
import { startProxy } from '../support/tcp-proxy.ts'
import { type Scope, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const sqliteUrl = (scope: Scope): string => `sqlite:${join(temporaryFolder(scope), 'postern.db')}`

/** Long enough that a worker does not try to open its session many times a second. */
const outageMs = 9000

const fleets = {
  SQLite: { databaseUrl: async (t: TestContext) => sqliteUrl(t), workers: 1 },
  PostgreSQL: { databaseUrl: postgresUrl, workers: 3 },
}

for (const [engine, { databaseUrl, workers }] of Object.entries(fleets)) {
  test(`row 50: what killed workers held is sent at once, ${engine}, ${workers} at a time`, async (t) => {
    const options = { databaseUrl: await databaseUrl(t), workers, emails: 1000, kills: 10 }
    const { waitsMs, held, store } = await killWorkers(t, options)
    t.diagnostic(`${held} held; waits: ${waitsMs.map(Math.round).join(', ')} ms`)
    assert.ok(held >= options.kills)
    assert.ok(Math.max(...waitsMs) < leaseMs / 3, 'long before a lease lapses')
    await eventually(async () => (await store.readQueueGauge()).depth === 0)
    const failed = await listEmails(store, { state: 'failed', limit: 10 })
    assert.deepEqual(failed, [])
    reportCounts(t, { tried: options.kills, lost: 0, duplicated: 0 })
  })
}

for (const [engine, { databaseUrl }] of Object.entries(fleets)) {
  test(`row 31: an email that kills its worker each time, ${engine}: the others flow, the log names it`, async (t) => {
    const { delaysMs, deaths, poison, log } = await poisonService(t, {
      databaseUrl: await databaseUrl(t),
      forMs: 10_000,
    })
    t.diagnostic(`${deaths} deaths; ${delaysMs.length} other emails`)
    assert.deepEqual([poison.attempts, poison.lostLeases], [0, deaths])
    assert.ok(deaths > suspectAfter)
    for (const [index, { at, outcome }] of poison.trail.entries()) {
      assert.equal(outcome, 'lost')
      const sinceMs = at - (poison.trail[index - 1]?.at ?? 0)
      assert.ok(sinceMs >= lostLeaseWaitMs(index), `${sinceMs} ms after lost lease ${index}`)
    }
    assert.ok(log.split('\n').some((line) => line.includes('"error"') && line.includes(poison.id)))
    assert.ok(delaysMs.length > 10)
    reportCounts(t, { tried: deaths, lost: 0, duplicated: 0 })
  })
}

test('row 51: a second process with the worker role waits, says so, and takes over when the first is killed', async (t) => {
  const relay = await startScriptedServer(t, {})
  const first = await startServe(t, {
    POSTERN_DATABASE_URL: sqliteUrl(t),
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
  })
  const isDelivered = (id: EmailId) => relay.messages.some((message) => message.includes(id))
  await deliverOne(first, first.key, isDelivered)
  const second = await spawnServe(t, first.env)
  await eventually(() => /another process sends the mail/.test(second.output()))
  await deliverOne(second, first.key, isDelivered) // its API works; the first one sends
  first.child.kill('SIGKILL')
  await eventually(() => /took over sending/.test(second.output()))
  // The first one may have died before it recorded its last delivery: that email then arrives twice.
  await deliverOne(second, first.key, isDelivered)
})

async function deliverOne(
  { api }: Pick<RunningPostern, 'api'>,
  key: string,
  isDelivered: (id: EmailId) => boolean | Promise<boolean>,
): Promise<EmailId> {
  const answer = await send(`${api}/v1/email`, JSON.stringify(validBody()), {
    authorization: `Bearer ${key}`,
  })
  assert.equal(answer.status, 202)
  const id = (answer.headers.get('email-id') ?? '') as EmailId
  await eventually(() => isDelivered(id))
  return id
}

/** A relay that holds its first connection at DATA, and a worker on PostgreSQL that waits there. */
async function startWaitingAtData(t: TestContext) {
  const database = await startPostgres(t)
  const held: Socket[] = []
  const relay = await startScriptedServer(t, (connection) =>
    connection === 0 ? { data: (socket) => void held.push(socket) } : {},
  )
  const api = await startServe(t, {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
    POSTERN_ROLES: 'api',
  })
  const env = { ...api.env, POSTERN_ROLES: 'worker' }
  const waiting = await spawnServe(t, env)
  const id = await deliverOne(api, api.key, () => held.length === 1)
  const goOn = () => held[0]?.write('354 go on\r\n')
  return { database, relay, env, waiting, id, goOn }
}

test('row 30: a worker paused beyond its lease sends nothing, and its outcome is refused', async (t) => {
  const { relay, env, waiting, id, goOn } = await startWaitingAtData(t)
  waiting.child.kill('SIGSTOP') // its session lives on
  await spawnServe(t, env)
  await eventually(() => relay.messages.length === 1, 1.5 * leaseMs)
  goOn()
  waiting.child.kill('SIGCONT')
  await eventually(() => /lease lost/.test(waiting.output()))
  assert.equal(relay.messages.length, 1)
  // With `data` as a function, `transcript` would record the paused worker's message as commands.
  assert.ok(!relay.transcript.some((line) => line.startsWith('Message-ID:')))
  // The other worker records its outcome a moment after the relay has the message.
  const shown = await eventually(async () => {
    const email = await posternJson<{ state: string; attempts: number }>(env, ['email', 'show', id])
    return email.state === 'sending' ? null : email
  })
  assert.deepEqual([shown.state, shown.attempts], ['delivered', 1])
})

test('row 30: the session of a worker is cut while a message is under way: it is not handed over', async (t) => {
  const { database, relay, goOn } = await startWaitingAtData(t)
  const [cut] = await runSql<{ session_id: string }>(
    database.url,
    "select session_id from postern.queue where state = 'sending'",
  )
  await cutSessions(database.url, 1)
  // It has noticed once it has another session.
  const others = `select from pg_locks where locktype = 'advisory' and objsubid = 2
    and objid::bigint <> ${cut?.session_id}`
  await eventually(async () => (await runSql(database.url, others)).length === 1)
  goOn()
  // Its lease is void, so it gives the email back, and sends it on another connection with a new lease.
  await eventually(() => relay.messages.length === 1)
  assert.equal(relay.connections(), 2)
})

test('row 30: a worker that was stopped until its mail was taken over sends nothing when it goes on', async (t) => {
  const { database, relay, env, waiting, goOn } = await startWaitingAtData(t)
  const other = await spawnServe(t, env)
  waiting.child.kill('SIGSTOP')
  await runSql(
    database.url,
    `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objsubid = 2
      and objid::bigint = (select session_id from postern.queue where state = 'sending')`,
  )
  await eventually(() => relay.messages.length === 1)
  goOn()
  waiting.child.kill('SIGCONT')
  await eventually(() => /lease lost/.test(waiting.output()))
  assert.equal(relay.messages.length, 1)
  assert.doesNotMatch(other.output(), /"error"/)
})

test('after an outage of the server, mail that its worker still holds is sent by no other worker', async (t) => {
  const server = await startPostgres(t)
  const proxy = await startProxy(t, server.port)
  const held: Socket[] = []
  const relay = await startScriptedServer(t, { dot: (socket) => void held.push(socket) })
  const database = databaseAt(server.url.replace(/:\d+\//, `:${proxy.port}/`))
  const options = { database, ring: newRing(), relays: [relayTo(relay.port)] }
  const first = await startTestService(t, { ...options, roles: new Set(['api', 'worker']) })
  await startTestService(t, { ...options, roles: new Set(['worker']), slug: 'other' })
  const workers = "select from pg_locks where locktype = 'advisory' and objsubid = 2 and granted"
  const areConnected = async () => (await runSql(server.url, workers)).length === 2
  await eventually(areConnected)
  assert.equal((await first.post()).status, 202)
  await eventually(() => held.length === 1)
  proxy.cut()
  await sleep(outageMs)
  proxy.restore()
  await eventually(areConnected)
  assert.equal(relay.messages.length, 1)
  held[0]?.write('250 2.0.0 taken\r\n')
  await eventually(async () => (await first.store.readQueueGauge()).depth === 0)
  assert.equal(relay.messages.length, 1)
})

test('row 52: the machine of a worker vanishes without a word, PostgreSQL: others send what it held', {
  skip: lacking('ip', 'tc'),
}, async (t) => {
  const machine = makeMachine(t)
  machine.deafen() // its worker holds the email while it dials the relay
  const folder = makeCluster(t)
  appendFileSync(join(folder, 'pg_hba.conf'), `host all all ${machine.hostAddress}/30 trust\n`)
  const database = await startCluster(t, folder, { listen_addresses: `127.0.0.1,${machine.hostAddress}` })
  const relay = await startScriptedServer(t, {})
  const api = await startServe(t, {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
    POSTERN_ROLES: 'api',
  })
  const env = { ...api.env, POSTERN_ROLES: 'worker' }
  const there = `postgres://postgres@${machine.hostAddress}:${database.port}/postgres?sslmode=disable`
  await spawnServe(t, { ...env, POSTERN_DATABASE_URL: there }, { under: machine.under })
  const leased = 'select from postern.queue where session_id > 0'
  await deliverOne(api, api.key, async () => (await runSql(database.url, leased)).length === 1)
  await spawnServe(t, env)
  machine.vanish()
  const vanishedMs = performance.now()
  await eventually(() => relay.messages.length === 1, leaseMs / 2)
  t.diagnostic(`sent ${Math.round(performance.now() - vanishedMs)} ms after the machine had vanished`)
})
