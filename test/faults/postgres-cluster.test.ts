/** Rows 15 and 18 of the fault matrix, and many processes on one PostgreSQL. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../src/compose/store.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import type { Store } from '../../src/store/store.ts'
import { posternJson, spawnServe, startServe, type Variables } from '../support/cli.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { assertAllDelivered, startLoad } from '../support/load.ts'
import { copyCluster, makeCluster, runSql, startCluster, startPostgres } from '../support/postgres.ts'
import { send, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

async function openFor(t: TestContext, env: Variables): Promise<Store> {
  const store = await openStore(parseConfig(env, 'command'), { onFatal: assert.fail })
  atEnd(t, () => store.close())
  return store
}

/** Three API processes of one service. */
async function startApis(t: TestContext, more: Variables) {
  const first = await startServe(t, { ...more, POSTERN_ROLES: 'api' })
  return [first, await spawnServe(t, first.env), await spawnServe(t, first.env)] as const
}

const emails = Number(process.env.POSTERN_CLUSTER_EMAILS ?? 20_000)

test(`three API processes and three workers, workers killed: ${emails} emails delivered, limits exact`, async (t) => {
  const database = await startPostgres(t)
  const { received, port } = await startSmtpServer(t)
  const apis = await startApis(t, {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`,
  })
  const [first] = apis
  await posternJson(first.env, ['app', 'update', 'acme', '--daily', String(emails)])
  const workerEnv = { ...first.env, POSTERN_ROLES: 'worker' }
  const workers = await Promise.all([1, 2, 3].map(() => spawnServe(t, workerEnv)))

  const clients = 48
  const load = startLoad(t, {
    api: (client) => apis[client % apis.length]?.api ?? '',
    key: first.key,
    clients,
    each: Math.ceil((emails * 1.02) / clients), // 2 % more than the day's limit
  })
  const state = { loading: true, kills: 0 }
  const killing = (async () => {
    while (state.loading) {
      await sleep(300 + Math.random() * 700)
      const victim = Math.floor(Math.random() * workers.length)
      const ended = once(workers[victim]?.child ?? assert.fail(), 'exit')
      workers[victim]?.child.kill('SIGKILL')
      await ended
      workers[victim] = await spawnServe(t, workerEnv)
      state.kills += 1
    }
  })()
  await load.done
  state.loading = false
  await killing
  t.diagnostic(`answers: ${JSON.stringify(Object.fromEntries(load.statuses))}; ${state.kills} workers killed`)
  assert.equal(load.acknowledged.size, emails)
  assert.deepEqual([...load.statuses.keys()].sort(), [202, 429])
  const store = await openFor(t, first.env)
  await assertAllDelivered(t, { store, received, acknowledged: load.acknowledged })
  const [app] = await store.listApps()
  assert.equal((await store.readUsage(app?.id ?? assert.fail()))[0]?.counts.accepted, emails)
})

test('the recipient limit is exact across three processes', async (t) => {
  const database = await startPostgres(t)
  const apis = await startApis(t, {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SMTP_URL: 'smtp://127.0.0.1:1',
  })
  const [first] = apis
  const people = 200
  const tries = 6
  await posternJson(first.env, ['app', 'update', 'acme', '--recipient-per-hour', '2'])
  const answers = await Promise.all(
    Array.from({ length: people * tries }, (_, i) =>
      send(`${apis[i % 3]?.api}/v1/email`, JSON.stringify(validBody({ to: `p${i % people}@example.com` })), {
        authorization: `Bearer ${first.key}`,
      }),
    ),
  )
  const accepted = answers.filter((answer) => answer.status === 202).length
  assert.deepEqual([accepted, answers.length - accepted], [people * 2, people * (tries - 2)])
})

test('row 15: the primary dies under load, its synchronous standby is promoted: nothing acknowledged is lost', async (t) => {
  const folder = makeCluster(t)
  const standbyFolder = copyCluster(t, folder)
  const primary = await startCluster(t, folder, { synchronous_standby_names: '*' })
  writeFileSync(join(standbyFolder, 'standby.signal'), '')
  const standby = await startCluster(t, standbyFolder, {
    primary_conninfo: `host=127.0.0.1 port=${primary.port} user=postgres`,
  })
  const states = () => runSql<{ sync_state: string }>(primary.url, 'select sync_state from pg_stat_replication')
  await eventually(async () => (await states())[0]?.sync_state === 'sync')

  const { received, port } = await startSmtpServer(t)
  const server = await startServe(t, {
    POSTERN_DATABASE_URL: `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres`,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`,
  })
  const findings = await (await openFor(t, server.env)).examine()
  const replication = findings.find(({ check }) => check === 'replication')
  assert.deepEqual([replication?.ok, replication?.detail], [true, '1 synchronous standbys are connected'])
  const load = startLoad(t, { api: () => server.api, key: server.key, clients: 16 })
  await eventually(() => load.acknowledged.size > 2000)
  await primary.kill()
  const before = load.acknowledged.size
  await eventually(() => (load.statuses.get(503) ?? 0) > 20)
  const promotedMs = performance.now()
  await runSql(standby.url, 'select pg_promote()')
  await eventually(() => load.acknowledged.size > before + 16)
  t.diagnostic(`answering again ${Math.round(performance.now() - promotedMs)} ms after the promotion began`)
  await eventually(() => load.acknowledged.size > before + 2000)
  await load.stop()
  t.diagnostic(`answers: ${JSON.stringify(Object.fromEntries(load.statuses))}`)
  assert.deepEqual([...load.statuses.keys()].sort(), [202, 503])
  const store = await openFor(t, server.env)
  await assertAllDelivered(t, { store, received, acknowledged: load.acknowledged })
})

const skewed = (env: Variables, by: string): Variables => ({
  ...env,
  LD_PRELOAD: toolPath('faketime'),
  FAKETIME: by,
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
})

test('row 18: nodes whose clocks are a day apart: limits, expiry and leases go by the database’s', {
  skip: lacking('faketime'),
}, async (t) => {
  const database = await startPostgres(t)
  const { received, port } = await startSmtpServer(t)
  const right = await startServe(t, {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`,
    POSTERN_ROLES: 'api',
  })
  const ahead = await spawnServe(t, skewed(right.env, '+1d'))
  const worker = await spawnServe(t, { ...skewed(right.env, '-1d'), POSTERN_ROLES: 'worker' })
  const statuses: number[] = []
  for (let i = 0; i < 24; i++) {
    const { api } = i % 2 === 0 ? right : ahead
    const answer = await send(`${api}/v1/email`, JSON.stringify(validBody()), {
      authorization: `Bearer ${right.key}`,
    })
    statuses.push(answer.status)
  }
  assert.equal(statuses.filter((status) => status === 202).length, 10)
  assert.equal(statuses.filter((status) => status === 429).length, 14)
  await eventually(() => received.length === 10)
  for (const { raw } of received)
    assert.ok(Math.abs(Date.parse(/^Date: (.*)$/m.exec(raw)?.[1] ?? '') - Date.now()) < 600_000)
  assert.doesNotMatch(worker.output(), /expired|lost/)
})
