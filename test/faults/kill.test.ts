/**
 * `kill -9` at random times under load, with a restart after each: every email answered 202 is
 * accounted for, and is received more than once only if one of its attempts ended without a
 * record. `POSTERN_KILLS` sets the number of kills (60).
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startService } from '../../src/compose/service.ts'
import { openStore } from '../../src/compose/store.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import type { EmailId } from '../../src/domain/id.ts'
import { moveClock, newClockOffset } from '../../src/store/shared/clock.ts'
import type { Store } from '../../src/store/store.ts'
import { type RunningPostern, spawnServe, startServe, type Variables } from '../support/cli.ts'
import { assertAllDelivered, startLoad } from '../support/load.ts'
import { postgresUrl } from '../support/postgres.ts'
import { reportCounts } from '../support/row-reporter.ts'
import { send, validBody } from '../support/service.ts'
import { startScriptedServer, startSmtpServer } from '../support/smtp.ts'
import { atEnd, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const kills = Number(process.env.POSTERN_KILLS ?? 60)

async function survive(t: TestContext, databaseUrl: string): Promise<void> {
  const { received, port } = await startSmtpServer(t)
  const server = await startServe(t, {
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`,
    POSTERN_DATABASE_URL: databaseUrl,
  })
  const current = { server: server as Omit<RunningPostern, 'key'> }
  const load = startLoad(t, { api: () => current.server.api, key: server.key, clients: 8 })
  const begun = performance.now()
  for (let kill = 0; kill < kills; kill++) {
    await sleep(20 + Math.random() * 250)
    const ended = once(current.server.child, 'exit')
    current.server.child.kill('SIGKILL')
    await ended
    current.server = await spawnServe(t, server.env)
  }
  await load.stop()
  const { acknowledged } = load
  t.diagnostic(
    `${kills} kills in ${Math.round((performance.now() - begun) / 1000)} s; ${acknowledged.size} emails acknowledged`,
  )
  const ended = once(current.server.child, 'exit')
  current.server.child.kill('SIGKILL')
  await ended
  const store = await deliverRest(t, server.env)
  await assertAllDelivered(t, { store, received, acknowledged, tried: kills })
  assert.ok(acknowledged.size >= kills, 'the load was real')
}

/**
 * Delivers what is left, in this process: an email that was claimed at many kills waits for minutes between
 * two attempts, so the clock is moved while only such mail is left.
 */
async function deliverRest(t: TestContext, env: Variables): Promise<Store> {
  const clock = newClockOffset()
  const config = parseConfig({ ...env, POSTERN_LOG_LEVEL: 'error' }, 'serve')
  const { store, stop } = await startService(config, { onFatal: assert.fail, version: 'test', clock })
  atEnd(t, () => stop())
  await eventually(async () => {
    const { depth, states } = await store.measureQueue()
    if (depth > 0 && states.deferred === depth) moveClock(clock, 30_000)
    return depth === 0
  }, 120_000)
  return store
}

const databases = {
  SQLite: async (t: TestContext) => `sqlite:${join(temporaryFolder(t), 'postern.db')}`,
  PostgreSQL: postgresUrl,
}

for (const [engine, databaseUrl] of Object.entries(databases)) {
  test(`row 1: ${kills} kills under load, ${engine}: nothing acknowledged is lost, duplicates only after ambiguous attempts`, async (t) => {
    await survive(t, await databaseUrl(t))
  })
}

test('row 28: killed after the 250, before it is recorded: at most one duplicate, under the same Message-ID', async (t) => {
  const current: { child?: RunningPostern['child'] } = {}
  const relay = await startScriptedServer(t, (connection) => ({
    // The relay has the message. The service is killed before it gets a reply.
    dot: (socket) => (connection === 0 ? current.child?.kill('SIGKILL') : socket.write('250 2.0.0 taken\r\n')),
  }))
  const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  current.child = server.child
  const ended = once(server.child, 'exit')
  const answer = await send(`${server.api}/v1/email`, JSON.stringify(validBody()), {
    authorization: `Bearer ${server.key}`,
  })
  assert.equal(answer.status, 202)
  await ended
  await spawnServe(t, server.env)
  const store = await openStore(parseConfig(server.env, 'command'), { onFatal: assert.fail })
  atEnd(t, () => store.close())
  await eventually(async () => (await store.readQueueGauge()).depth === 0, 120_000)
  const ids = relay.messages.map((message) => /^Message-ID: (\S+)/im.exec(message)?.[1])
  assert.equal(ids.length, 2)
  assert.equal(ids[0], ids[1])
  const record = await store.findEmail((answer.headers.get('email-id') ?? '') as EmailId)
  assert.deepEqual([record?.state, record?.trail[0]?.outcome], ['delivered', 'lost'])
  reportCounts(t, { tried: 1, lost: 0, duplicated: 1 })
})
