/** Commands ask before they act, say what came of it, and name what comes next. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openStore } from '../../src/compose/store.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { hashToken, newToken } from '../../src/domain/operator/management-token.ts'
import { startApiServer } from '../support/api-server.ts'
import {
  devListeners,
  newAcme,
  postern,
  posternJson,
  runProcess,
  serveEnvironment,
  serveHere,
  startPostern,
  type Variables,
} from '../support/cli.ts'
import { operator } from '../support/operator.ts'
import { freePort } from '../support/ports.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const env = await serveEnvironment({ after })
await newAcme(env)

test('apply changes nothing unless the answer is yes', async (t) => {
  const path = join(temporaryFolder(t), 'apps.yaml')
  writeFileSync(path, '- slug: asked\n  name: Asked\n  from: { name: Asked, address: auth@asked.test }\n')
  const exists = async () => (await postern(env, ['app', 'show', 'asked'])).code === 0
  const refused = await postern(env, ['apply', path], { answer: 'no' })
  assert.deepEqual([refused.code, refused.err, await exists()], [1, 'postern: nothing was changed\n', false])
  assert.equal((await postern(env, ['apply', path], { answer: ' yes ' })).code, 0)
  assert.ok(await exists())
})

test('apply makes the database that is not there yet; a dry run makes none', async (t) => {
  const fresh = await serveEnvironment(t)
  const path = join(temporaryFolder(t), 'apps.yaml')
  writeFileSync(path, '- slug: first\n  name: First\n  from: { name: First, address: auth@first.test }\n')
  const dry = await postern(fresh, ['apply', path, '--dry-run'])
  assert.equal(dry.code, 1)
  assert.match(dry.err, /there is no Postern database/)
  assert.equal((await postern(fresh, ['apply', path, '--yes'])).code, 0)
  assert.equal((await postern(fresh, ['app', 'show', 'first'])).code, 0)
})

test('suppressions are cleared only after a yes', async () => {
  await postern(env, ['suppression', 'add', 'ada@example.com', '--app', 'acme'])
  const clear = ['suppression', 'clear', '--app', 'acme']
  const count = async () => (await posternJson<unknown[]>(env, ['suppression', 'list'])).length
  const refused = await postern(env, clear, { answer: 'y' })
  assert.deepEqual([refused.code, refused.err, await count()], [1, 'postern: nothing was cleared\n', 1])
  assert.equal((await postern(env, clear, { answer: 'yes' })).out, '1 suppression cleared\n')
  assert.equal(await count(), 0)
})

test('disabling a person shows what the person made that still works, with the commands that end it', async () => {
  await posternJson(env, ['person', 'invite', 'Eve', '--role', 'admin'])
  const store = await openStore(parseConfig(env, 'command'), { onFatal: assert.fail })
  const actor = { ...operator, name: 'Eve' }
  const app = await store.findApp('acme')
  assert.ok(app)
  const token = { name: 'hers', role: 'admin', apps: null, expiresAt: store.now() + 1e9 } as const
  await store.createToken({ ...token, hash: hashToken(newToken()) }, actor)
  const key = { app: app.id, hash: hashDeliveryKey(newDeliveryKey()), name: 'web', expiresAt: null }
  await store.createKey(key, actor)
  await store.close()
  const commands = /token hers +postern token revoke tok_\w+\nkey web of app_\w+ +postern key revoke key_\w+\n/
  const disabled = await postern(env, ['person', 'update', 'Eve', '--disable'])
  assert.match(disabled.out, /^Eve: admin of the whole service, disabled\n\nThese still work; revoke them with:\n/)
  assert.match(disabled.out, commands)
  assert.match((await postern(env, ['person', 'made', 'Eve'])).out, commands)
  const enabled = await postern(env, ['person', 'update', 'Eve', '--enable'])
  assert.equal(enabled.out, 'Eve: admin of the whole service\n')
  const both = await postern(env, ['person', 'update', 'Eve', '--app', 'acme', '--all-apps'])
  assert.equal(both.code, 2)
  assert.match(both.err, /--app or --all-apps, not both/)
})

test('status --watch shows the status anew until it is stopped', async (t) => {
  const { child, ended, output } = startPostern(t, ['status', '--watch'], { env })
  const shown = () => output().match(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/gm)?.length ?? 0
  await eventually(() => shown() >= 2)
  child.kill('SIGINT')
  assert.deepEqual(await ended, [null, 'SIGINT'])
  assert.match(output(), /Needs attention:[\s\S]*no process/i)
  assert.equal((await postern(env, ['status', '--watch', '--json'])).code, 2)
})

test('status --watch ends when whatever reads it ends', async (t) => {
  const { child, ended, output } = startPostern(t, ['status', '--watch'], { env })
  await eventually(() => output() !== '')
  child.stdout?.destroy()
  assert.deepEqual(await ended, [1, null])
})

test('about shows the database, and the last backup once there is one', async (t) => {
  const about = async () => (await postern(env, ['about'])).out
  assert.match(
    await about(),
    /^database +SQLite 3\.\S+, [\d.]+ \w+, schema \d+\ndisk +[\d.]+ \w+ free; write-ahead log [\d.]+ \w+, reused\nlast backup +none by "postern backup"/m,
  )
  await postern(env, ['backup', join(temporaryFolder(t), 'copy.db')])
  assert.match(await about(), /^last backup +\S+ \S+Z \(\d+ (s|ms) ago\), [\d.]+ \w+$/m)
})

test('without a console nobody is invited, and the name stays free', async () => {
  const off = { ...env, POSTERN_CONSOLE_LISTEN: 'off' }
  assert.equal((await postern(off, ['person', 'invite', 'Zoe', '--role', 'reader'])).code, 1)
  assert.doesNotMatch((await postern(env, ['person', 'list'])).out, /Zoe/)
})

test('the audit names the person behind sudo', async () => {
  const ran = await runProcess({ ...env, SUDO_USER: 'ada' }, ['app', 'create', 'Sudo', '--from', 'Sudo <a@sudo.test>'])
  assert.equal(ran.code, 0, ran.err)
  assert.match((await postern(env, ['audit', '--app', 'sudo'])).out, /cli:ada +app\.create/)
})

test('webhooks: the list says what to do next, and a test what the receiver answered', async (t) => {
  const answers = [204, 410]
  const receiver = await startApiServer(t, (_asked, response) => void response.writeHead(answers.shift() ?? 500).end())
  const relay = await startSmtpServer(t)
  const own = {
    ...(await serveEnvironment(t)),
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
    POSTERN_APP_WEBHOOKS_PRIVATE: 'yes',
  }
  await newAcme(own)
  await serveHere(t, own)
  const next = async () => /Next: (.*)/.exec((await postern(own, ['app-webhook', 'list', 'acme'])).out)?.[1]
  assert.equal(await next(), 'postern app update acme --webhook-url URL')
  await postern(own, ['app', 'update', 'acme', '--webhook-url', receiver.url])
  assert.equal(await next(), 'postern app-webhook secret acme')
  await postern(own, ['app-webhook', 'secret', 'acme'])
  assert.equal(await next(), 'postern app-webhook test acme')
  const test = () => postern(own, ['app-webhook', 'test', 'acme'])
  assert.deepEqual(await test(), { code: 0, out: 'Delivered: the receiver of acme answered 204.\n', err: '' })
  assert.equal(await next(), undefined)
  const gone = await test()
  assert.deepEqual([gone.code, gone.err], [1, 'postern: the receiver of acme did not accept it: 410\n'])
  assert.match((await postern(own, ['app-webhook', 'list', 'acme'])).out, /given up \(410\)[\s\S]*sent \(204\)/)
})

test('a process that has one role alone listens for nothing else', async (t) => {
  const roles = async (POSTERN_ROLES: string) => {
    const all = {
      ...(await serveEnvironment(t)),
      POSTERN_SMTP_URL: 'smtp://127.0.0.1:1',
      POSTERN_AUTH_HOOKS_LISTEN: '127.0.0.1:0',
      POSTERN_LINKS_LISTEN: '127.0.0.1:0',
      POSTERN_LINKS_BASE_URL: 'https://links.acme.test',
      POSTERN_LOG_LEVEL: 'silent',
    }
    return Object.keys((await serveHere(t, { ...all, POSTERN_ROLES })).urls).sort()
  }
  assert.deepEqual(await roles('api'), ['api', 'ops'])
  assert.deepEqual(await roles('worker'), ['ops'])
  assert.deepEqual(await roles('links'), ['links', 'ops'])
  assert.deepEqual(await roles('auth-hooks'), ['authHooks', 'ops'])
  assert.deepEqual(await roles('console'), ['console', 'ops'])
})

test('a service that cannot listen says why, and leaves no listener behind, whichever of its ports it is', async (t) => {
  const relay = await startSmtpServer(t)
  const api = `127.0.0.1:${await freePort()}`
  const own = {
    ...(await serveEnvironment(t)),
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
    POSTERN_API_LISTEN: api,
    POSTERN_LOG_LEVEL: 'silent',
  }
  await assert.rejects(
    serveHere(t, { ...own, POSTERN_CONSOLE_LISTEN: `127.0.0.1:${relay.port}` }),
    /is in use, .* choose another port$/,
  )
  await assert.rejects(fetch(`http://${api}/v1/email`), 'the API, which had started, has stopped')
  await assert.rejects(
    serveHere(t, { ...own, POSTERN_CONSOLE_LISTEN: '192.0.2.1:0' }),
    /POSTERN_CONSOLE_LISTEN: 192\.0\.2\.1:0 is no address of this machine: choose another one/,
  )
})

test('serve says which of its settings it does not know', async (t) => {
  const { POSTERN_DATABASE_URL: _, ...incomplete } = await serveEnvironment(t)
  const { code, err } = await postern({ ...incomplete, POSTERN_API_LISTNE: '127.0.0.1:1' }, ['serve'])
  assert.equal(code, 1)
  assert.match(err, /^postern: POSTERN_API_LISTNE.*POSTERN_API_LISTEN/)
})

test('dev mode says whether mail is sent, and keeps its files out of the repository', async (t) => {
  const relay = await startSmtpServer(t)
  const run = async (more: Variables, sending: RegExp, inbox: RegExp) => {
    const folder = temporaryFolder(t)
    const dev = startPostern(t, ['dev'], { cwd: folder, env: { ...(await devListeners()), ...more } })
    await eventually(() => dev.output().includes('Stop with Ctrl-C'))
    assert.match(dev.output(), sending)
    assert.match(dev.output(), inbox)
    assert.equal(readFileSync(join(folder, '.postern', '.gitignore'), 'utf8'), '*\n')
    dev.child.kill('SIGINT')
    assert.deepEqual(await dev.ended, [0, null])
  }
  const POSTERN_SMTP_URL = `smtp://127.0.0.1:${relay.port}`
  await Promise.all([
    run({}, /nothing is sent/, /Inbox +http/),
    run({ POSTERN_SMTP_URL }, /POSTERN_SMTP_URL is set: emails are sent to their real recipients/, /Inbox +none/),
  ])
})
