/** A backup of a big SQLite database under load, and one that is killed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { posternJson, type RunningPostern, runProcess, spawnPostern, startServe } from '../support/cli.ts'
import { startLoad } from '../support/load.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd, type Scope, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const mebibytes = 200
/** Connections to the API: several hundred requests a second. */
const clients = 4

// SQLite as Node builds it has no generate_series.
const series =
  '(with recursive counted (value) as (select ? union all select value + 1 from counted where value < ?) select value from counted)'

/** A service whose database holds 200 MiB of records. */
async function startBig(t: Scope): Promise<RunningPostern & { folder: string }> {
  const folder = temporaryFolder(t)
  const path = join(folder, 'postern.db')
  const relay = await startSmtpServer(t)
  const server = await startServe(t, {
    POSTERN_DATABASE_URL: `sqlite:${path}`,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
    POSTERN_LOG_LEVEL: 'error',
  })
  const database = new DatabaseSync(path, { timeout: 30_000 })
  const insert = database.prepare(
    `insert into history (email_id, app_id, key_id, type, state, attempts, lost_leases, accepted_at, expires_at,
       finished_at, recipient, trail)
     select 'em_' || value, 'app_0', 'key_0', 'magic_link', 'delivered', 1, 0, 0, 0, 0, value, hex(zeroblob(1500))
     from ${series}`,
  )
  for (let n = 0; n < (mebibytes * 1024) / 4; n += 2000) insert.run(n, n + 1999)
  database.close()
  return { ...server, folder }
}
test('a backup under load of a 200 MiB database ends, and holds every email that was answered 202 before it began', async (t) => {
  const { api, key, env, folder } = await startBig(t)
  const load = startLoad(t, { api: () => api, key, clients })
  await eventually(() => load.acknowledged.size > 200)
  const beganMs = performance.now()
  const file = join(folder, 'backup.db')
  const running = runProcess(env, ['backup', file])
  let acknowledged = 0 // when the backup had not begun yet
  while (!readdirSync(folder).some((name) => name.includes('.part-'))) {
    acknowledged = load.acknowledged.size
    await new Promise((resolve) => setImmediate(resolve))
  }
  const ran = await running
  const tookS = (performance.now() - beganMs) / 1000
  assert.equal(ran.code, 0, ran.err)
  const before = [...load.acknowledged].slice(0, acknowledged)
  const during = load.acknowledged.size - before.length
  await load.stop()
  t.diagnostic(
    `${(statSync(file).size / 2 ** 20).toFixed(0)} MiB in ${tookS.toFixed(1)} s, ${(during / tookS).toFixed(0)} accepted a second meanwhile`,
  )
  assert.ok(during > 0, 'requests are answered while the backup is made')
  assert.deepEqual([...load.statuses.keys()], [202])
  const backup = new DatabaseSync(file, { readOnly: true })
  atEnd(t, () => backup.close())
  const find = backup.prepare(
    'select email_id from queue where email_id = ? union all select email_id from history where email_id = ?',
  )
  assert.deepEqual(
    before.filter((id) => find.get(id, id) === undefined),
    [],
  )
})

test('a backup that is killed leaves no file of its name, and the next one works', async (t) => {
  const { env, folder } = await startBig(t)
  for (let n = 0; n < 5; n++) {
    const file = join(folder, `killed-${n}.db`)
    const child = spawnPostern(['backup', file], { env: { ...process.env, ...env } })
    const part = await eventually(() => readdirSync(folder).find((name) => name.startsWith(`killed-${n}.db.part-`)))
    await eventually(() => statSync(join(folder, part)).size > n * 30 * 2 ** 20)
    child.kill('SIGKILL')
    const [, signal] = await once(child, 'exit')
    assert.equal(signal, 'SIGKILL')
    assert.ok(!existsSync(file))
  }
  await posternJson(env, ['backup', join(folder, 'backup.db')])
})
