/**
 * Repeated power cuts at random times under load: every email answered 202 is on the disk after the
 * restart. `POSTERN_POWER_CUTS` sets the number of cuts (10).
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../src/compose/store.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import { lackingDisk, makeDisk } from '../support/block-device.ts'
import { type RunningPostern, spawnServe, startServe, type Variables } from '../support/cli.ts'
import { assertAllDelivered, startLoad } from '../support/load.ts'
import { makeCluster, type PostgresServer, startCluster } from '../support/postgres.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'

const cuts = Number(process.env.POSTERN_POWER_CUTS ?? 10)
const skip = await lackingDisk()

type Running = Omit<RunningPostern, 'key'>

async function kill({ child }: Running): Promise<void> {
  const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null
  child.kill('SIGKILL')
  await ended
}

/** Puts load on Postern, cuts the power `cuts` times with a restart after each, and checks every email. */
async function survive(
  t: TestContext,
  variables: Variables,
  power: { cut: () => Promise<void>; restore: () => Promise<void> },
): Promise<void> {
  const { received, port } = await startSmtpServer(t)
  const first = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`, ...variables })
  let server: Running = first
  const load = startLoad(t, { api: () => server.api, key: first.key, clients: 8 })
  for (let i = 0; i < cuts; i++) {
    await sleep(50 + Math.random() * 400)
    // Nothing leaves a machine without power. XFS may let an fsync succeed that the cut overtakes, so the
    // processes are stopped first: an answer to it would not have been sent.
    server.child.kill('SIGSTOP')
    await power.cut()
    await kill(server)
    await power.restore()
    server = await spawnServe(t, first.env)
  }
  await load.stop()
  const store = await openStore(parseConfig(first.env, 'command'), { onFatal: assert.fail })
  atEnd(t, () => store.close())
  await assertAllDelivered(t, { store, received, acknowledged: load.acknowledged, tried: cuts })
  assert.ok(load.acknowledged.size >= cuts, 'the load was real')
}

test(`row 4: ${cuts} power cuts, SQLite: nothing acknowledged is lost`, { skip }, async (t) => {
  const disk = makeDisk(t)
  const variables = { POSTERN_DATABASE_URL: `sqlite:${join(disk.folder, 'postern.db')}` }
  await survive(t, variables, { cut: async () => disk.cut(), restore: async () => disk.restore() })
})

test(`row 4: ${cuts} power cuts, PostgreSQL: nothing acknowledged is lost`, { skip }, async (t) => {
  const disk = makeDisk(t)
  const folder = makeCluster(t, join(disk.folder, 'data'))
  let server: PostgresServer = await startCluster(t, folder)
  const { port } = server
  const cut = async () => {
    server.signal('SIGSTOP')
    disk.cut()
    await server.kill()
  }
  const restore = async () => {
    disk.restore()
    server = await startCluster(t, folder, { port: String(port) })
  }
  await survive(t, { POSTERN_DATABASE_URL: server.url }, { cut, restore })
})
