/** The database's files are moved, deleted, replaced or mounted over under a running service. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { requireFile } from '../../src/store/sqlite/files/migrate.ts'
import { mountOver } from '../support/block-device.ts'
import { postern, type RunningPostern, spawnServe, startServe, type Variables } from '../support/cli.ts'
import { lacking } from '../support/installed.ts'
import { freePort } from '../support/ports.ts'
import { validBody } from '../support/service.ts'
import { type Received, startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const root = lacking('mount')
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
  await eventually(() => named.test(server.output())).catch(() => assert.match(server.output(), named))
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

test('row 54: deleted after a clean stop: the worker lock alone says that there was a database', async (t) => {
  const { path, server } = await startMoved(t)
  await stop(server)
  rmSync(path)
  await refusesToStart(t, server.env, /postern\.db-worker shows that there was one/)
})

test('row 54: a restore that is refused leaves nothing that refuses a start', async (t) => {
  const { path, server } = await startMoved(t)
  await stop(server)
  for (const suffix of ['', '-worker']) rmSync(path + suffix)
  writeFileSync(`${path}.backup`, 'no database')
  assert.equal((await postern(server.env, ['restore', `${path}.backup`])).code, 1)
  await spawnServe(t, server.env)
})

test('row 54: moved while an email is being sent, then put back: it is sent once', async (t) => {
  const { path, server } = await startMoved(t)
  await stop(server)
  const gate = Promise.withResolvers<void>()
  let begun = 0
  const slow = await startSmtpServer(t, {
    onData(stream, _session, callback) {
      begun += 1
      stream.resume().on('end', () => void gate.promise.then(() => callback(null, 'queued')))
    },
  })
  const env = { ...server.env, POSTERN_SMTP_URL: `smtp://127.0.0.1:${slow.port}` }
  const next = { ...(await spawnServe(t, env)), key: server.key }
  assert.equal(await post(next), 202)
  await eventually(() => begun === 1)
  renameSync(path, `${path}.away`)
  await refusesEverything(next, /moved, deleted or unmounted/)
  gate.resolve()
  await eventually(() => next.output().includes('an email was delivered'))
  renameSync(`${path}.away`, path)
  assert.equal(await post(next), 202)
  await eventually(() => begun === 2)
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
  test(`row 54: ${suffix} is deleted: the process ends at once, and the next one has everything`, async (t) => {
    const { path, server } = await startMoved(t)
    await stop(server)
    const down = { ...server.env, POSTERN_SMTP_URL: `smtp://127.0.0.1:${await freePort()}` }
    const first = { ...(await spawnServe(t, down)), key: server.key }
    for (let n = 0; n < 20; n++) assert.equal(await post(first), 202)
    const ended = once(first.child, 'exit')
    rmSync(path + suffix)
    await ended
    assert.match(first.output(), new RegExp(`postern\\.db${suffix} was moved, deleted .* so it ends: start it again`))
    const created = await postern(server.env, ['app', 'create', 'Other', '--from', 'Other <a@other.test>'])
    assert.equal(created.code, 0, created.err)
    const relay = await startSmtpServer(t)
    await spawnServe(t, { ...server.env, POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
    await eventually(() => relay.received.length === 20)
    assert.equal(JSON.parse((await postern(server.env, ['app', 'list', '--json'])).out).length, 2)
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

test('a database that another process is making is waited for; a journal that stays is a leftover', (t) => {
  const path = join(temporaryFolder(t), 'postern.db')
  writeFileSync(`${path}-journal`, 'a journal')
  assert.throws(() => requireFile(path, 'migrate'), /postern\.db-journal shows that there was one/)
  const other = spawn('sh', ['-c', 'sleep 0.3; rm "$0-journal"', path], { stdio: 'ignore' })
  t.after(() => other.kill())
  requireFile(path, 'migrate')
  assert.equal(existsSync(`${path}-journal`), false)
})
