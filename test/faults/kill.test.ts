/**
 * `kill -9` at random times under load, with a restart after each: every email answered 202, or 250 over
 * SMTP, is accounted for, and is received more than once only if one of its attempts ended without a
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
import { posternJson, type RunningPostern, spawnServe, startServe, type Variables } from '../support/cli.ts'
import { assertAllDelivered, startLoad } from '../support/load.ts'
import { freePort } from '../support/ports.ts'
import { postgresUrl } from '../support/postgres.ts'
import { reportCounts } from '../support/row-reporter.ts'
import { send, validBody } from '../support/service.ts'
import { startScriptedServer, startSmtpServer } from '../support/smtp.ts'
import { startMailLoad } from '../support/submission.ts'
import { atEnd, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const kills = Number(process.env.POSTERN_KILLS ?? 60)

async function survive(t: TestContext, databaseUrl: string): Promise<void> {
  const { received, port } = await startSmtpServer(t)
  const submission = await freePort()
  const server = await startServe(t, {
    POSTERN_SUBMISSION_LISTEN: `127.0.0.1:${submission}`,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`,
    POSTERN_DATABASE_URL: databaseUrl,
  })
  const current = { server: server as Omit<RunningPostern, 'key'> }
  const load = startLoad(t, { api: () => current.server.api, key: server.key, clients: 8 })
  const { secret } = await posternJson<{ secret: string }>(server.env, ['auth-hook', 'connect', 'acme', 'directus'])
  const mail = startMailLoad(t, { port: submission, secret })
  const begun = performance.now()
  for (let kill = 0; kill < kills; kill++) {
    // A new process takes a moment until it reads messages over SMTP: every fourth one gets it.
    await sleep(20 + Math.random() * (kill % 4 === 0 ? 2000 : 250))
    const ended = once(current.server.child, 'exit')
    current.server.child.kill('SIGKILL')
    await ended
    current.server = await spawnServe(t, server.env)
  }
  await Promise.all([load.stop(), mail.stop()])
  const acknowledged = load.acknowledged.union(mail.acknowledged)
  t.diagnostic(
    `${kills} kills in ${Math.round((performance.now() - begun) / 1000)} s; ${acknowledged.size} emails acknowledged, ${mail.acknowledged.size} over SMTP`,
  )
  const ended = once(current.server.child, 'exit')
  current.server.child.kill('SIGKILL')
  await ended
  const store = await deliverRest(t, server.env)
  await assertAllDelivered(t, { store, received, acknowledged, tried: kills })
  assert.ok(load.acknowledged.size >= kills && mail.acknowledged.size > 0, 'the load was real')
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
