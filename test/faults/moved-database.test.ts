/** The database's files are moved, deleted, replaced or mounted over under a running service. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { mountOver } from '../support/block-device.ts'
import { postern, type RunningPostern, spawnServe, startServe, type Variables } from '../support/cli.ts'
import { lacking } from '../support/installed.ts'
import { validBody } from '../support/service.ts'
import { type Received, startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const root = lacking({ mount: '/usr/bin/mount' }, { root: true })
let serial = 0

type Server = Omit<RunningPostern, 'key'> & { readonly key: string }

async function post({ api, key }: Pick<Server, 'api' | 'key'>): Promise<number> {
  const answer = await fetch(`${api}/v1/email`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(validBody({ to: `moved${serial++}@example.com` })),
  })
  await answer.arrayBuffer()
  return answer.status
}

const ready = async ({ ops }: Pick<Server, 'ops'>): Promise<number> => (await fetch(`${ops}/readyz`)).status

/** A running service whose mail waits: its relay answers nothing. */
async function startMoved(t: TestContext): Promise<{
  folder: string
  path: string
  server: Server
  received: readonly Received[]
}> {
  const folder = join(temporaryFolder(t), 'data')
  mkdirSync(folder)
  const path = join(folder, 'postern.db')
  const { port, received } = await startSmtpServer(t)
  const variables = { POSTERN_DATABASE_URL: `sqlite:${path}`, POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}` }
  const server = await startServe(t, variables)
  assert.equal(await post(server), 202)
  await eventually(() => received.length === 1)
  return { folder, path, server, received }
}

async function refusesEverything(server: Server, named: RegExp): Promise<void> {
  assert.deepEqual([await post(server), await post(server)], [503, 503])
  assert.equal(await ready(server), 503)
  await eventually(() => named.test(server.output()))
  assert.equal((await fetch(`${server.ops}/livez`)).status, 200)
}

async function stop({ child }: Server, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

/** A start is refused, and so is the doctor, which say what to do. */
async function refusesToStart(t: TestContext, env: Variables, named: RegExp): Promise<void> {
  await assert.rejects(spawnServe(t, env), named)
  const doctor = await postern(env, ['doctor'])
  assert.match(doctor.out, new RegExp(`FAIL {2}database: .*${named.source}`))
  const status = await postern(env, ['status'])
  assert.match(status.err, named)
}

test('row 54: moved away: no 202, not ready, the error names it; put back, it goes on', async (t) => {
  const { path, server, received } = await startMoved(t)
  renameSync(path, `${path}.away`)
  await refusesEverything(server, /postern\.db was moved, deleted or unmounted/)
  renameSync(`${path}.away`, path)
  assert.equal(await post(server), 202)
  assert.equal(await ready(server), 200)
  await eventually(() => received.length === 2)
})

for (const signal of ['SIGTERM', 'SIGKILL'] as const)
  test(`row 54: deleted, then stopped by ${signal}: the next start is refused until it is put back`, async (t) => {
    const { path, server } = await startMoved(t)
    renameSync(path, `${path}.away`)
    await refusesEverything(server, /moved, deleted or unmounted/)
    await stop(server, signal)
    await refusesToStart(t, server.env, /there is no database at .*shows that there was one/)
    writeFileSync(path, '') // SQLite would delete the WAL of an empty database
    await refusesToStart(t, server.env, /shows that there was one/)
    renameSync(`${path}.away`, path)
    await spawnServe(t, server.env)
  })

test('row 54: replaced by another database', async (t) => {
  const { path, server } = await startMoved(t)
  copyFileSync(path, `${path}.copy`)
  renameSync(`${path}.copy`, path)
  await refusesEverything(server, /postern\.db was replaced/)
})

test('row 54: replaced by a backup: a start with the WAL of the old database is refused', async (t) => {
  const { path, server } = await startMoved(t)
  assert.equal((await postern(server.env, ['backup', `${path}.backup`])).code, 0)
  assert.equal(await post(server), 202)
  renameSync(`${path}.backup`, path)
  await refusesEverything(server, /postern\.db was replaced/)
  await stop(server)
  await refusesToStart(t, server.env, /is a backup that was copied here/)
  for (const suffix of ['-wal', '-shm']) rmSync(path + suffix)
  await spawnServe(t, server.env)
})

test('row 54: the folder is mounted over, then unmounted', { skip: root }, async (t) => {
  const { folder, server } = await startMoved(t)
  const unmount = mountOver(folder)
  await refusesEverything(server, /moved, deleted or unmounted/).finally(unmount)
  assert.equal(await post(server), 202)
})

for (const suffix of ['-wal', '-shm'])
  test(`row 54: ${suffix} is deleted: refused at once; nothing is lost by a clean stop`, async (t) => {
    const { path, server, received } = await startMoved(t)
    rmSync(path + suffix)
    await refusesEverything(server, new RegExp(`postern\\.db${suffix} was moved, deleted`))
    await stop(server)
    const next = await spawnServe(t, server.env)
    assert.equal(await post({ ...next, key: server.key }), 202)
    await eventually(() => received.length === 2)
  })

test('row 54: by a symbolic link, whose target is moved', async (t) => {
  const { path, server } = await startMoved(t)
  await stop(server)
  const link = join(temporaryFolder(t), 'link.db')
  symlinkSync(path, link)
  const env = { ...server.env, POSTERN_DATABASE_URL: `sqlite:${link}` }
  const next = { ...(await spawnServe(t, env)), key: server.key }
  renameSync(path, `${path}.away`)
  await refusesEverything(next, /link\.db was moved, deleted or unmounted/)
  await stop(next, 'SIGKILL')
  await refusesToStart(t, env, /symbolic link that leads nowhere/)
})

test('row 54: the worker lock is deleted while a process sends: a second one does not send its mail again', async (t) => {
  const { path, server } = await startMoved(t)
  await stop(server)
  const gate = Promise.withResolvers<void>()
  const begun: string[] = []
  const slow = await startSmtpServer(t, {
    onData(stream, { envelope }, callback) {
      begun.push(envelope.rcptTo[0]?.address ?? '')
      stream.resume().on('end', () => void gate.promise.then(() => callback(null, 'queued')))
    },
  })
  const env = { ...server.env, POSTERN_SMTP_URL: `smtp://127.0.0.1:${slow.port}` }
  const first = { ...(await spawnServe(t, env)), key: server.key }
  assert.equal(await post(first), 202)
  await eventually(() => begun.length === 1)
  rmSync(`${path}-worker`)
  const second = { ...(await spawnServe(t, env)), key: server.key }
  assert.equal(await post(second), 202)
  await eventually(() => begun.length === 2)
  gate.resolve()
  const show = async () => (await postern(env, ['email', 'list', '--state', 'delivered', '--json'])).out
  await eventually(async () => JSON.parse(await show()).length === 3)
  assert.equal(new Set(begun).size, begun.length)
  assert.doesNotMatch(`${first.output()}${second.output()}`, /held emails|not confirmed/)
})
