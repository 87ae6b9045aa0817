/** The command line as users run it: processes, exit codes, tables for people, JSON for scripts. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openStore } from '../../src/compose/store.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import { newSecretKey } from '../../src/store/crypto/key-ring.ts'
import {
  onlyHere,
  postern,
  posternJson,
  serveAcme,
  serveEnvironment,
  spawnPostern,
  spawnServe,
  startServe,
  viaApi,
} from '../support/cli.ts'
import { freePort } from '../support/ports.ts'
import { send, validBody } from '../support/service.ts'
import { startScriptedServer, startSmtpServer } from '../support/smtp.ts'
import { atEnd, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

type Row = Record<string, unknown> & { id: string }
const env = await serveEnvironment({ after })
const create = (...flags: string[]) => postern(env, ['app', 'create', ...flags])
const from = ['--from', 'Acme <auth@acme.test>']

test('help names every command, and is a success', onlyHere, async () => {
  const help = await postern(env, ['--help'])
  assert.equal(help.code, 0)
  for (const command of ['dev', 'serve', 'migrate', 'doctor', 'secret', 'app', 'key', 'email', 'queue', 'usage']) {
    assert.match(help.out, new RegExp(`^  ${command}\\b`, 'm'), command)
  }
  const inner = await postern(env, ['app', 'create', '--help'])
  assert.equal(inner.code, 0)
  assert.match(inner.out, /--allow-url <url>/)
})

test('wrong use is exit code 2, with a way out', onlyHere, async () => {
  for (const args of [
    ['nonsense'],
    ['app'],
    ['app', 'show'],
    ['app', 'create', 'X'],
    ['email', 'list', '--state', 'lost'],
    ['key', 'create', 'acme', '--expires', 'soon'],
    ['app', 'list', '--nonsense'],
  ]) {
    const ran = await postern(env, args)
    assert.equal(ran.code, 2, args.join(' '))
    assert.match(ran.err + ran.out, /postern|Usage/)
  }
})

test('a group without its command shows what there is', onlyHere, async () => {
  const ran = await postern(env, ['email'])
  assert.equal(ran.code, 2)
  assert.match(ran.err, /^Usage: postern email[\s\S]*retry \[options\] \[email\]/)
})

test('an app’s life: create, show, list, update, disable, enable, delete', async () => {
  const app = await posternJson<Row>(env, [
    'app',
    'create',
    'Blue Team',
    ...from,
    '--allow-url',
    'https://a.test/*',
    '--app-scheme',
    'blue',
    '--daily',
    '7',
  ])
  assert.match(app.id, /^app_/)
  assert.deepEqual(
    [app.slug, app.status, app.allowedUrls, app.appSchemes],
    ['blue-team', 'active', ['https://a.test/*'], ['blue']],
  )
  assert.equal((app.limits as Row).daily, 7)
  assert.match(String(app.createdAt), /^\d{4}-.*Z$/)
  const updated = await posternJson<Row>(env, [
    'app',
    'update',
    'blue-team',
    '--allow-url',
    'https://b.test',
    '--remove-allow-url',
    'https://a.test/*',
    '--locale',
    'en',
    '--allow-localhost',
    '--name',
    'Blue',
  ])
  assert.deepEqual([updated.allowedUrls, updated.allowLocalhost, updated.name], [['https://b.test'], true, 'Blue'])
  assert.equal((await posternJson<Row>(env, ['app', 'update', app.id, '--no-allow-localhost'])).allowLocalhost, false)
  assert.equal((await posternJson<Row>(env, ['app', 'disable', 'blue-team'])).status, 'disabled')
  assert.equal((await posternJson<Row>(env, ['app', 'enable', app.id])).status, 'active')
  assert.equal((await posternJson<Row[]>(env, ['app', 'list'])).length, 1)
  assert.match((await postern(env, ['app', 'list'])).out, /blue-team +active/)
  const shown = await postern(env, ['app', 'show', 'blue-team'])
  assert.match(shown.out, /^slug +blue-team$/m)
  assert.equal((await posternJson<Row>(env, ['app', 'delete', 'blue-team', '--yes'])).deleted, true)
  const gone = await postern(env, ['app', 'show', 'blue-team'])
  assert.equal(gone.code, 1)
  assert.match(gone.err, /There is no app "blue-team"\. "postern app list" shows the apps/)
})

test('unsafe settings are refused when they are set, each with its reason', async () => {
  const badSlug = await postern(env, ['app', 'create', 'Slug', '--slug', '-x', '--from', 'A <a@b.test>'])
  assert.match(badSlug.err, /give a slug of a-z, 0-9 and inner hyphens with --slug/)
  const ran = await create(
    'Bad',
    ...from,
    '--allow-url',
    'https://*.vercel.app',
    '--allow-url',
    'http://x.test',
    '--app-scheme',
    'javascript',
    '--logo-url',
    'http://x.test/l.png',
    '--accent-colour',
    'red',
    '--daily',
    '0',
    '--locale',
    'xx',
  )
  assert.equal(ran.code, 1)
  for (const reason of [
    /anyone can register names under vercel\.app/,
    /use https/,
    /standard or dangerous/,
    /https URL/,
    /#rrggbb/,
    /limits\.daily/,
    /Choose one of .*en/,
  ])
    assert.match(ran.err, reason)
  assert.equal((await create('Dup', ...from, '--slug', 'dup')).code, 0)
  const taken = await create('Dup', ...from, '--slug', 'dup')
  assert.equal(taken.code, 1)
  assert.match(taken.err, /taken/)
  assert.match(
    (await postern(env, ['app', 'update', 'dup', '--remove-allow-url', 'https://x.test'])).err,
    /is not in the list/,
  )
})

test('hosted links: modes, destinations and the fallback, checked when they are set', async () => {
  const flags = [
    '--app-scheme',
    'acme',
    '--hosted-links',
    'app-schemes',
    '--link-destination',
    'magic_link=acme://auth/magic',
    '--fallback-url',
    'https://acme.test/get',
  ]
  const app = await posternJson<Row>(env, ['app', 'create', 'Hosted', ...from, ...flags])
  assert.deepEqual(
    [app.hostedLinks, app.linkDestinations, app.fallbackUrl],
    ['app-schemes', { magic_link: 'acme://auth/magic' }, 'https://acme.test/get'],
  )
  assert.match((await postern(env, ['app', 'show', 'hosted'])).out, /magic_link +acme:\/\/auth\/magic/)
  const refused = await postern(env, [
    'app',
    'update',
    'hosted',
    '--link-destination',
    'magic_link=https://evil.test/x',
  ])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /linkDestinations\.magic_link.*no allowed entry/)
  assert.equal((await postern(env, ['app', 'update', 'hosted', '--link-destination', 'acme://x'])).code, 2)
  assert.equal((await postern(env, ['app', 'update', 'hosted', '--hosted-links', 'perhaps'])).code, 2)
  const bare = await posternJson<Row>(env, [
    'app',
    'update',
    'hosted',
    '--remove-link-destination',
    'magic_link',
    '--hosted-links',
    'off',
  ])
  assert.deepEqual([bare.hostedLinks, bare.linkDestinations], ['off', {}])
})

test('a key is shown once; revoking it shows in the list', async () => {
  await create('Keys', ...from)
  const made = await posternJson<Row & { key: string }>(env, [
    'key',
    'create',
    'keys',
    '--name',
    'ci',
    '--expires',
    '2099-01-31',
  ])
  assert.match(made.key, /^pst_/)
  assert.equal(made.expiresAt, '2099-01-31T00:00:00.000Z')
  assert.equal((await postern(env, ['key', 'create', 'keys', '--expires', '2001-01-01'])).code, 1)
  const list = await postern(env, ['key', 'list', 'keys'])
  assert.ok(!list.out.includes(made.key))
  assert.match(list.out, /active until 2099-01-31/)
  await postern(env, ['key', 'create', 'keys', '--name', 'endless'])
  assert.match((await postern(env, ['key', 'list', 'keys'])).out, /endless +active {2,}\d{4}-/)
  assert.notEqual((await posternJson<Row>(env, ['key', 'revoke', made.id])).revokedAt, null)
  assert.match((await postern(env, ['key', 'list', 'keys'])).out, /revoked/)
  const wrong = await postern(env, ['key', 'revoke', 'key_nothing'])
  assert.equal(wrong.code, 1)
})

test('serve refuses an incomplete configuration and names every fault', onlyHere, async () => {
  const ran = await postern({}, ['serve'])
  assert.equal(ran.code, 1)
  for (const name of ['POSTERN_DATABASE_URL', 'POSTERN_SECRET_KEYS', 'POSTERN_SMTP_URL'])
    assert.match(ran.err, new RegExp(`${name} is missing`))
})

test('the configuration may stand in a file', onlyHere, async (t) => {
  const file = join(temporaryFolder(t), 'postern.env')
  writeFileSync(
    file,
    Object.entries(env)
      .map(([name, value]) => `${name}=${value}`)
      .join('\n'),
    { mode: 0o600 },
  )
  const ran = await postern({}, ['--env-file', file, 'app', 'list', '--json'])
  assert.equal(ran.code, 0, ran.err)
})

test('an operator’s night: an email that was not delivered, found, retried, another cancelled', async (t) => {
  const mailbox = { busy: true }
  const relay = await startScriptedServer(t, () => ({
    rcpt: (socket) => void socket.write(mailbox.busy ? '451 4.3.0 mailbox busy\r\n' : '250 2.1.5 ok\r\n'),
  }))
  const server = await serveAcme(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}?connections=1` })
  const post = async (to: string) => {
    const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' }
    const answer = await send(`${server.api}/v1/email`, JSON.stringify(validBody({ to })), headers)
    return answer.headers.get('email-id') ?? ''
  }
  const [one, two] = [await post('one@example.com'), await post('two@example.com')]
  const find = (id: string) => posternJson<Row>(server.env, ['email', 'show', id])
  // The service retries meanwhile, so each of these may run during an attempt and is then repeated.
  await eventually(async () => (await find(one)).lastReply === '451 4.3.0 mailbox busy')
  const list = ['email', 'list', '--to', 'ONE@example.com', '--app', 'acme', '--state', 'deferred']
  await eventually(async () => (await posternJson<Row[]>(server.env, list)).map((email) => email.id).includes(one))
  await eventually(async () => {
    const queue = await posternJson<Row & { states: Row }>(server.env, ['queue'])
    return queue.depth === 2 && queue.states.deferred === 2
  })
  await eventually(async () => /^acme +0 +0 +2 /m.test((await postern(server.env, ['queue'])).out))
  await eventually(async () => (await postern(server.env, ['email', 'cancel', two])).code === 0)
  assert.equal((await find(two)).state, 'cancelled')
  await eventually(async () => (await postern(server.env, ['email', 'retry', one])).code === 0)
  mailbox.busy = false
  await eventually(async () => {
    await postern(server.env, ['email', 'retry', one])
    return (await find(one)).state === 'delivered'
  })
  const finished = await postern(server.env, ['email', 'retry', one])
  assert.equal(finished.code, 1)
  assert.match(finished.err, /is finished, and its content is deleted/)
  const [usage] = await posternJson<Row[]>(server.env, ['usage', 'acme'])
  assert.deepEqual([usage?.accepted, usage?.delivered, usage?.cancelled], [2, 1, 1])
  assert.match((await postern(server.env, ['email', 'show', one])).out, /451 4\.3\.0 mailbox busy/)
})

test('what the command line changes holds for the next request of a running service', async (t) => {
  const relay = await startSmtpServer(t)
  const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const post = async (url: string) =>
    (
      await send(`${server.api}/v1/email`, JSON.stringify(validBody({ url })), {
        authorization: `Bearer ${server.key}`,
      })
    ).status
  assert.equal(await post('https://new.acme.test/?token=x'), 403)
  await posternJson(server.env, ['app', 'update', 'acme', '--allow-url', 'https://new.acme.test'])
  assert.equal(await post('https://new.acme.test/?token=x'), 202)
  const [key] = await posternJson<Row[]>(server.env, ['key', 'list', 'acme'])
  await posternJson(server.env, ['key', 'revoke', key?.id ?? ''])
  assert.equal(await post('https://new.acme.test/?token=x'), 401)
})

test('a ring without the key that sealed the database is refused in words', {
  skip: viaApi && 'skipped: the ring is that of the service',
}, async () => {
  const ran = await postern({ ...env, POSTERN_SECRET_KEYS: newSecretKey('other') }, ['app', 'list'])
  assert.equal(ran.code, 1)
  assert.match(ran.err, /lacks the key "k1".*must hold the key/)
})

test('the doctor finds what is well and what is not', onlyHere, async (t) => {
  const relay = await startSmtpServer(t)
  const own = await serveEnvironment(t)
  const well = await postern({ ...own, POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` }, ['doctor'])
  assert.equal(well.code, 0, well.out)
  assert.match(well.out, /^ok .*relay 127\.0\.0\.1/m)
  const ill = await postern({ ...own, POSTERN_SMTP_URL: 'smtp://127.0.0.1:1' }, ['doctor'])
  assert.equal(ill.code, 1)
  assert.match(ill.out, /^FAIL .*relay 127\.0\.0\.1:1: .*ECONNREFUSED/m)
  const up = { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`, POSTERN_BOUNCE_LISTEN: '127.0.0.1:4024' }
  await postern(own, ['migrate'])
  const deaf = await postern({ ...own, ...up }, ['doctor'])
  assert.equal(deaf.code, 1)
  assert.match(deaf.out, /^FAIL .*bounces: the bounce listener is on 127\.0\.0\.1:4024, but no email/m)
  const elsewhere = await postern({ ...own, ...up, POSTERN_ROLES: 'api,worker' }, ['doctor'])
  assert.equal(elsewhere.code, 0, elsewhere.out)
  assert.match(elsewhere.out, /^ok .*bounces: .*no bounce listener in this process/m)
  const bare = await postern({}, ['doctor', '--json'], { cwd: temporaryFolder(t) })
  assert.equal(bare.code, 1)
  assert.equal((JSON.parse(bare.out) as { ok: boolean }).ok, false)
})

test('a secret of one’s own: fresh each time, and what the ring takes', onlyHere, async () => {
  const [one, two] = [await postern({}, ['secret', 'new']), await postern({}, ['secret', 'new', '--id', 'mine'])]
  assert.notEqual(one.out, two.out)
  assert.match(two.out, /^mine:/)
  assert.equal(
    parseConfig({ ...env, POSTERN_SECRET_KEYS: `${one.out.trim()},${two.out.trim()}` }, 'command').ring.length,
    2,
  )
})

test('dev mode keeps its key and its data private, and starts again with both', onlyHere, async (t) => {
  const folder = temporaryFolder(t)
  const devEnv = {
    POSTERN_LINKS_LISTEN: `127.0.0.1:${await freePort()}`, // the base URL names the port
    POSTERN_API_LISTEN: '127.0.0.1:0',
    POSTERN_OPS_LISTEN: '127.0.0.1:0',
    POSTERN_CONSOLE_LISTEN: '127.0.0.1:0',
    POSTERN_AUTH_HOOKS_LISTEN: '127.0.0.1:0',
  }
  const run = async () => {
    const child = spawnPostern(['dev'], {
      cwd: folder,
      env: { PATH: process.env.PATH, ...devEnv },
    })
    atEnd(t, () => child.kill('SIGKILL'))
    let out = ''
    child.stdout.on('data', (chunk) => {
      out += chunk
    })
    const curl = await eventually(() => /^curl .*$/m.exec(out)?.[0])
    const { execFileSync } = await import('node:child_process')
    const answer = execFileSync('sh', ['-c', curl], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    assert.equal(answer, '{"ok":true}\n')
    const inbox = /Console +(\S+)/.exec(out)?.[1]
    const latest = await eventually(async () => {
      const response = await fetch(`${inbox}/api/inbox/latest?to=you@example.com`)
      return response.status === 200 ? ((await response.json()) as { subject: string }) : null
    })
    assert.equal(latest.subject, 'Sign in to Demo')
    const [, api = '', key = ''] = /^curl (\S+) .*Bearer (pst_\w+)/.exec(curl) ?? []
    const body = validBody({ url: 'https://app.example.com/auth?token=abc', code: '246813' })
    const { headers } = await send(api, JSON.stringify(body), { authorization: `Bearer ${key}` })
    assert.equal(headers.get('postern-ignored'), null, 'the demo app allows codes')
    const exit = once(child, 'exit')
    child.kill('SIGINT')
    assert.deepEqual(await exit, [0, null])
    return key
  }
  const first = await run()
  assert.equal(await run(), first)
  const keys = await posternJson<{ id: string }[]>(devEnv, ['key', 'list', 'demo'], { cwd: folder })
  await postern(devEnv, ['key', 'revoke', keys[0]?.id ?? ''], { cwd: folder })
  assert.notEqual(await run(), first, 'a key that no longer works is replaced')
  for (const file of ['demo-key', 'secret-keys'])
    assert.equal(statSync(join(folder, '.postern', file)).mode & 0o777, 0o600)
  chmodSync(join(folder, '.postern', 'secret-keys'), 0o644)
  assert.match((await postern(devEnv, ['app', 'list'], { cwd: folder })).err, /chmod 600/)
  assert.ok(existsSync(join(folder, '.postern', 'postern.db')))
})

test('two processes start on a fresh database at once', onlyHere, async (t) => {
  const own = await serveEnvironment(t)
  const runs = await Promise.all([1, 2, 3].map(() => postern(own, ['migrate'])))
  assert.deepEqual(
    runs.map((ran) => [ran.code, ran.err]),
    runs.map(() => [0, '']),
  )
  assert.deepEqual(await posternJson(own, ['migrate']), { migrated: true })
  const store = await openStore(parseConfig(own, 'command'), { onFatal: assert.fail })
  await store.close()
})

test('a port that is taken is said so', onlyHere, async (t) => {
  const relay = await startSmtpServer(t)
  const own = { ...(await serveEnvironment(t)), POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` }
  await assert.rejects(
    spawnServe(t, { ...own, POSTERN_API_LISTEN: `127.0.0.1:${relay.port}` }),
    /POSTERN_API_LISTEN: 127\.0\.0\.1:\d+ is in use, .* choose another port\n$/,
  )
})
