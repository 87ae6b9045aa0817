/**
 * A full, failing or slow disk and a process that dies in the middle of a write: faults made by strace
 * and a small file system for the SQLite store. PostgreSQL handles its own disk faults. Only the full
 * disk is tested with both.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { openStore } from '../../src/compose/store.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import { fillDisk, lackingDisk, makeDisk } from '../support/block-device.ts'
import { postern, type RunningPostern, spawnServe, startServe, type Variables } from '../support/cli.ts'
import { lacking } from '../support/installed.ts'
import { type Account, assertAllDelivered, type Load, startLoad } from '../support/load.ts'
import { makeCluster, startCluster } from '../support/postgres.ts'
import { validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const strace = lacking('strace')
let serial = 0

type Running = Pick<RunningPostern, 'api' | 'child' | 'env' | 'output'>

async function post(server: Running, key: string): Promise<Response> {
  return fetch(`${server.api}/v1/email`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(validBody({ to: `disk${serial++}@example.com` })),
  })
}

const ready = async ({ ops }: Pick<RunningPostern, 'ops'>): Promise<number> => (await fetch(`${ops}/readyz`)).status

const ended = ({ child }: Running) =>
  child.exitCode === null && child.signalCode === null ? once(child, 'exit') : Promise.resolve([child.exitCode])

/** Process id under strace, for signals: strace itself takes none. */
const traced = ({ child }: Running): number =>
  Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')[0])

/** Final check, with the service running: every acknowledged email is delivered. */
async function assertNothingLost(t: TestContext, env: Variables, account: Omit<Account, 'store'>): Promise<void> {
  const store = await openStore(parseConfig(env, 'command'), { onFatal: assert.fail })
  atEnd(t, () => store.close())
  await assertAllDelivered(t, { ...account, store })
}

const sqliteIn = (folder: string): Variables => ({
  POSTERN_DATABASE_URL: `sqlite:${join(folder, 'postern.db')}`,
})

/** Fills the disk, expects 503 for every request, frees the space, and expects 202 again. */
async function survivesFullDisk(t: TestContext, folder: string, variables: Variables): Promise<void> {
  const { received, port } = await startSmtpServer(t)
  const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`, ...variables })
  const load = startLoad(t, { api: () => server.api, key: server.key, clients: 4 })
  await eventually(() => load.acknowledged.size > 50)
  fillDisk(join(folder, 'balloon'))
  await eventually(() => (load.statuses.get(503) ?? 0) > 50, 120_000)
  const refused = await eventually(async () => {
    const answer = await post(server, server.key)
    return answer.status === 503 ? answer : null
  })
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  assert.deepEqual(
    [...load.statuses.keys()].filter((status) => status !== 202 && status !== 503),
    [],
  )
  await eventually(async () => (await ready(server)) === 503)
  // On PostgreSQL, a small write may still find room where an email does not.
  const cause = /^Needs attention:\n {2}! (The database cannot be written|Requests are answered 503 by the process)/
  await eventually(async () => cause.test((await postern(server.env, ['status'])).out))
  rmSync(join(folder, 'balloon'))
  await eventually(async () => (await ready(server)) === 200)
  const before = load.acknowledged.size
  await eventually(() => load.acknowledged.size > before + 50, 120_000)
  await load.stop()
  await assertNothingLost(t, server.env, { received, acknowledged: load.acknowledged })
}

const disk = await lackingDisk()

test('row 7: a full disk, SQLite: 503 with Retry-After, and it recovers by itself', {
  skip: disk,
}, async (t) => {
  const { folder } = makeDisk(t)
  await survivesFullDisk(t, folder, sqliteIn(folder))
})

test('row 7: a full disk, PostgreSQL: 503 with Retry-After, and it recovers by itself', {
  skip: disk,
}, async (t) => {
  const { folder } = makeDisk(t)
  // A small WAL, so that PostgreSQL soon needs new segments.
  const cluster = makeCluster(t, join(folder, 'data'))
  const server = await startCluster(t, cluster, { max_wal_size: '64MB', min_wal_size: '32MB' })
  await survivesFullDisk(t, folder, { POSTERN_DATABASE_URL: server.url })
})

test('row 7: the largest size of a file: 503, and it recovers by itself', {
  skip: lacking('prlimit'),
}, async (t) => {
  const { received, port } = await startSmtpServer(t)
  const variables = { POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`, ...sqliteIn(temporaryFolder(t)) }
  const server = await startServe(t, variables)
  const load = startLoad(t, { api: () => server.api, key: server.key, clients: 4 })
  await eventually(() => load.acknowledged.size > 50)
  const limit = (bytes: string) => execFileSync('prlimit', [`--pid=${server.child.pid}`, `--fsize=${bytes}:`])
  limit('65536')
  await eventually(() => (load.statuses.get(503) ?? 0) > 20)
  assert.equal(await ready(server), 503)
  limit('unlimited')
  const before = load.acknowledged.size
  await eventually(() => load.acknowledged.size > before + 50)
  await load.stop()
  await eventually(async () => (await ready(server)) === 200)
  await assertNothingLost(t, server.env, { received, acknowledged: load.acknowledged })
})

/**
 * One database for several `postern serve` in turn, each under strace with a fault in its system calls.
 * `assertNothingLost` checks the emails of all of them at the end.
 */
async function startFaults(t: TestContext) {
  const { received, port } = await startSmtpServer(t)
  const variables = { POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`, ...sqliteIn(temporaryFolder(t)) }
  const { key, env, ...sound } = await startServe(t, variables)
  const acknowledged: Load['acknowledged'] = new Set()
  sound.child.kill('SIGTERM')
  await ended({ ...sound, env })
  return {
    /** Starts with a fault and puts load on it. */
    async start(fault: string) {
      const trace = ['-e', 'trace=fsync,fdatasync,pwrite64', '-e', `inject=${fault}`]
      const server = await spawnServe(t, env, {
        under: ['strace', '-f', '--quiet=all', '-o', '/dev/null', ...trace],
      })
      const service = traced(server)
      atEnd(t, () => existsSync(`/proc/${service}`) && process.kill(service, 'SIGKILL'))
      const load = startLoad(t, { api: () => server.api, key, clients: 8 })
      const stop = async () => {
        await load.stop()
        for (const id of load.acknowledged) acknowledged.add(id)
      }
      return { server, load, stop }
    },
    async assertNothingLost(tried: number) {
      await spawnServe(t, env)
      await assertNothingLost(t, env, { received, acknowledged, tried })
    },
  }
}

test('row 8: an fsync that fails: no 202 for it, the process ends, nothing is lost', {
  skip: strace,
}, async (t) => {
  const faults = await startFaults(t)
  for (const when of [5, 20, 60]) {
    const { server, stop } = await faults.start(`fsync,fdatasync:error=EIO:when=${when}+`)
    const [code] = await ended(server)
    assert.equal(code, 1)
    assert.match(server.output(), /I\/O error/)
    await stop()
  }
  await faults.assertNothingLost(3)
})

test('row 9: an fsync that takes 3 s: health answers, requests are 503 in time, nothing is lost', {
  skip: strace,
}, async (t) => {
  const faults = await startFaults(t)
  const { server, load, stop } = await faults.start('fsync,fdatasync:delay_exit=3000000:when=30..34')
  await eventually(() => (load.statuses.get(503) ?? 0) > 0)
  assert.equal((await fetch(`${server.ops}/livez`)).status, 200)
  const before = load.acknowledged.size
  await eventually(() => load.acknowledged.size > before + 20, 60_000)
  await stop()
  process.kill(traced(server), 'SIGKILL')
  await ended(server)
  await faults.assertNothingLost(5)
})

const steps = Number(process.env.POSTERN_WRITE_KILLS ?? 20)

test(`rows 1, 2 and 3: killed at the Nth write to the database, ${steps} times: nothing is lost`, {
  skip: strace,
}, async (t) => {
  const faults = await startFaults(t)
  for (let i = 0; i < steps; i++) {
    // If it dies before it is ready, it was killed while it recovered from the previous kill.
    const running = await faults.start(`pwrite64:signal=KILL:when=${4 + i * 5}`).catch(() => null)
    if (running === null) continue
    await ended(running.server)
    await running.stop()
  }
  await faults.assertNothingLost(steps)
})

test('row 11: another process holds the write lock: 503 within the deadline, and then on', async (t) => {
  const variables = sqliteIn(temporaryFolder(t))
  const { received, port } = await startSmtpServer(t)
  const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`, ...variables })
  const path = variables.POSTERN_DATABASE_URL?.replace('sqlite:', '') ?? ''
  const other = new DatabaseSync(path, { timeout: 5_000 })
  atEnd(t, () => other.close())
  other.exec('begin immediate')
  const refused = await post(server, server.key)
  assert.equal(refused.status, 503)
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  other.exec('rollback')
  await eventually(async () => (await post(server, server.key)).status === 202)
  await eventually(() => received.length > 0)
})
