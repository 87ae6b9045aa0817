/** The command line as somebody meets it who was woken at night, or who begins. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import {
  devListeners,
  onlyHere,
  postern,
  posternJson,
  serveAcme,
  serveEnvironment,
  startPostern,
  viaApi,
} from '../support/cli.ts'
import { freePort } from '../support/ports.ts'
import { send, validBody } from '../support/service.ts'
import { startScriptedServer, startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

type Row = Record<string, unknown> & { id: string }
const env = await serveEnvironment({ after })
const from = ['--from', 'Acme <auth@acme.test>']

test('the version is printed, and named by the doctor', onlyHere, async () => {
  const { version } = await import('../../package.json', { with: { type: 'json' } }).then((json) => json.default)
  assert.equal((await postern({}, ['--version'])).out, `postern ${version}\n`)
  assert.match((await postern({}, ['doctor'])).out, new RegExp(`^ok .*postern ${version}, Node v`))
})

test('help marks what is required, shows defaults, examples and the global options', onlyHere, async () => {
  const { out } = await postern({}, ['app', 'create', '--help'])
  assert.match(out, /^Required:\n +--from <sender>/m)
  assert.match(out, /^Limits:\n +--key-per-minute <n> .*default: 600/m)
  assert.match(out, /Example:\n +postern app create "Acme"/)
  assert.match(out, /--json .*\n +--env-file/)
  assert.doesNotMatch(out, /default: \[\]/)
})

test('a mistyped command is refused, with the one that was meant', onlyHere, async () => {
  const { code, err } = await postern({}, ['emial'])
  assert.equal(code, 2)
  assert.equal(err, 'postern: unknown command "emial". Did you mean "email"?\n')
})

test('after each command the next one is named', async () => {
  const created = await postern(env, ['app', 'create', 'Next', ...from])
  assert.match(created.out, /^Next: postern app update next --allow-url .*\n {6}postern key create next$/m)
  const local = await postern(env, ['app', 'create', 'Local', ...from, '--allow-localhost'])
  assert.match(local.out, /^Next: postern key create local$/m, 'it has links already')
  const key = await postern(env, ['key', 'create', 'next'])
  assert.match(key.out, /^pst_\w+\n/)
  assert.match(key.out, /POSTERN_DELIVERY_KEY[\s\S]*POSTERN_BASE_URL[\s\S]*postern send-test YOUR@ADDRESS --app next/)
})

test('deleting an app asks; without a terminal it needs --yes, and nothing is lost', async () => {
  await postern(env, ['app', 'create', 'Precious', ...from])
  const refused = await postern(env, ['app', 'delete', 'precious'])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /nothing was deleted.*--yes/)
  assert.equal((await postern(env, ['app', 'show', 'precious'])).code, 0)
  assert.equal((await postern(env, ['app', 'delete', 'precious', '--yes'])).code, 0)
})

test('on a terminal, an app is deleted once its slug is typed, and nothing else will do', {
  skip: process.env.POSTERN_TEST_COMMAND !== undefined && 'skipped: no terminal for another program',
}, async () => {
  await postern(env, ['app', 'create', 'Typed', ...from])
  const wrong = await postern(env, ['app', 'delete', 'typed'], { answer: 'yes' })
  assert.deepEqual([wrong.code, wrong.err], [1, 'postern: nothing was deleted\n'])
  assert.equal((await postern(env, ['app', 'show', 'typed'])).code, 0)
  assert.equal((await postern(env, ['app', 'delete', 'typed'], { answer: ' typed' })).code, 0)
  assert.equal((await postern(env, ['app', 'show', 'typed'])).code, 1)
})

test('an update without a setting is wrong usage', async () => {
  await postern(env, ['app', 'create', 'Idle', ...from])
  const { code, err } = await postern(env, ['app', 'update', 'idle'])
  assert.equal(code, 2)
  assert.match(err, /at least one setting/)
})

test('every optional setting can be removed again', async () => {
  const flags = {
    replyTo: ['--reply-to', 'help@acme.test'],
    supportContact: ['--support', 'help@acme.test'],
    envelopeFrom: ['--envelope-from', 'bounces@acme.test'],
    fallbackUrl: ['--fallback-url', 'https://acme.test/get'],
    newEmailUrl: ['--new-email-url', 'https://acme.test/sign-in'],
    logoUrl: ['--logo-url', 'https://acme.test/l.png'],
    accentColour: ['--accent-colour', '#123456'],
    addressLine: ['--address-line', 'Acme, 1 Road'],
  }
  const all = Object.values(flags)
  const set = await posternJson<Row & { branding: Row }>(env, ['app', 'create', 'Full', ...from, ...all.flat()])
  for (const name of Object.keys(flags)) assert.ok(name in set || name in set.branding, name)
  const empty = all.flatMap(([flag = '']) => [flag, ''])
  const bare = await posternJson<Row & { branding: Row }>(env, ['app', 'update', 'full', ...empty])
  for (const name of Object.keys(flags)) assert.ok(!(name in bare) && !(name in bare.branding), name)
})

test('two changes at the same time both take effect', async () => {
  await postern(env, ['app', 'create', 'Both', ...from])
  const urls = ['https://a.test', 'https://b.test', 'https://c.test', 'https://d.test']
  const runs = await Promise.all(urls.map((url) => postern(env, ['app', 'update', 'both', '--allow-url', url])))
  assert.deepEqual(
    runs.map(({ code }) => code),
    [0, 0, 0, 0],
  )
  const { allowedUrls } = await posternJson<Row & { allowedUrls: string[] }>(env, ['app', 'show', 'both'])
  assert.deepEqual(allowedUrls.toSorted(), urls)
})

test('a percent sign in the SMTP password is part of the password', onlyHere, async () => {
  const port = await freePort()
  const ran = await postern({ ...env, POSTERN_SMTP_URL: `smtp://user:50%off@127.0.0.1:${port}` }, ['doctor'])
  assert.match(ran.out, /^ok .*configuration: complete/m)
  assert.match(ran.out, /FAIL .*ECONNREFUSED.*Nothing is sent through this relay/)
  assert.doesNotMatch(ran.out + ran.err, /damaged|50%off/)
})

test('a command on the default database says so', onlyHere, async (t) => {
  const ran = await postern({}, ['app', 'list'], { cwd: temporaryFolder(t) })
  assert.match(ran.err, /POSTERN_SECRET_KEYS is missing, and this folder \(.+\) has no/)
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'data'))
  const own = { POSTERN_SECRET_KEYS: env.POSTERN_SECRET_KEYS ?? '' }
  const fallback = await postern(own, ['app', 'list'], { cwd: folder })
  assert.match(fallback.err, /POSTERN_DATABASE_URL is not set; using the dev database/)
  mkdirSync(join(folder, '.postern'))
  assert.equal((await postern(own, ['migrate'], { cwd: folder })).code, 0)
  const missing = await postern(own, ['app', 'show', 'acme'], { cwd: folder })
  assert.match(
    missing.err,
    /There is no app "acme"\..* This is the dev database; to use a service’s database, add "--env-file FILE"/,
  )
  assert.doesNotMatch((await postern(env, ['app', 'show', 'acme-2'])).err, /dev database/)
})

test('an empty list says what is missing, and where refusals are listed', async () => {
  const { out } = await postern(env, ['email', 'list', '--to', 'ana@example.com'])
  assert.match(out, /^no emails accepted for ana@example\.com in the last 30 days; .*postern refusal list APP/)
  const request = await postern(env, ['email', 'show', 'req_x'])
  assert.match(request.err, /"req_x" is a request, not an email: if it was refused, its refusal says why/)
  const refusal = await postern(env, ['refusal', 'show', 'req_x'])
  assert.match(refusal.err, /There is no refusal "req_x"\. .* appear within 5 seconds;/)
  const queue = await postern(env, ['queue'])
  // Through the API, the service that answers is a process.
  const stops = viaApi ? '' : 'No process of this service has reported lately: .*\\n\\n'
  assert.match(queue.out, new RegExp(`^${stops}the queue is empty\\n$`))
})

test('an email that was not sent is explained in one sentence', async (t) => {
  const relay = await startScriptedServer(t, { rcpt: '550 5.1.1 <ada@example.com> unknown' })
  const server = await serveAcme(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const headers = { authorization: `Bearer ${server.key}` }
  const answer = await send(`${server.api}/v1/email`, JSON.stringify(validBody()), headers)
  const id = answer.headers.get('email-id') ?? ''
  const shown = await eventually(async () => {
    const ran = await postern(server.env, ['email', 'show', id])
    return ran.out.startsWith('Not sent') ? ran.out : null
  })
  const sentence = `Not sent: the relay 127.0.0.1:${relay.port} refused it: the mailbox does not exist (550 5.1.1 <address> unknown).`
  // A moment later it also says that the recipient is suppressed.
  assert.ok(shown.startsWith(sentence), shown)
  assert.match(shown, /^accepted +\S+ \S+Z \(\d+ s ago\)$/m)
  const json = await posternJson<Row & { trail: Row[] }>(server.env, ['email', 'show', id])
  assert.ok(String(json.explanation).startsWith(sentence))
  assert.deepEqual([json.trail[0]?.code, json.trail[0]?.enhanced], [550, '5.1.1'])
})

test('a test email goes through the running service, without a key', async (t) => {
  const relay = await startSmtpServer(t)
  const server = await serveAcme(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const ran = await postern(server.env, ['send-test', 'you@example.com', '--app', 'acme'])
  assert.equal(ran.code, 0, ran.err)
  assert.match(ran.out, /^em_\w+: The relay 127\.0\.0\.1:\d+ accepted it \d/)
  assert.deepEqual(relay.received[0]?.to, ['you@example.com'])
  assert.equal((await posternJson<Row[]>(server.env, ['key', 'list', 'acme'])).length, 1)
  const [email] = await posternJson<Row[]>(server.env, ['email', 'list'])
  assert.equal(email?.key, null)
  const audit = await posternJson<Row[]>(server.env, ['audit'])
  assert.deepEqual(
    audit.map(({ action }) => action).filter((action) => !`${action}`.endsWith('.create')),
    ['app.test_email'],
  )
  const wrong = await postern(server.env, ['send-test', 'nobody', '--app', 'acme'])
  assert.equal(wrong.code, 1)
  assert.match(wrong.err, /invalid values:\n {2}to: Give one address/)
})

test('a test email that was not tried is a failure', async (t) => {
  const server = await serveAcme(t, { POSTERN_SMTP_URL: 'smtp://127.0.0.1:1' })
  const sendTest = (wait: string) =>
    postern(server.env, ['send-test', 'you@example.com', '--app', 'acme', '--wait', wait])
  const ran = await sendTest('1')
  assert.equal(ran.code, 1)
  assert.match(ran.out, /"postern doctor" says whether a process is sending/)
  assert.match(ran.err, /was not tried within 1 s/)
  for (const wait of ['0', '601', '1.5', 'soon']) assert.equal((await sendTest(wait)).code, 2, wait)
})

test('a test email that the relay refuses is a failure', async (t) => {
  const relay = await startScriptedServer(t, { rcpt: '550 5.1.1 no such mailbox' })
  const server = await serveAcme(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const ran = await postern(server.env, ['send-test', 'you@example.com', '--app', 'acme'])
  assert.equal(ran.code, 1)
  assert.match(ran.out, /Not sent: .* refused it: the mailbox does not exist/)
  assert.match(ran.err, /the test email was not delivered/)
})

test('a test email that is deferred is a failure, and will be tried again', async (t) => {
  const relay = await startScriptedServer(t, { rcpt: '451 4.7.1 greylisted' })
  const server = await serveAcme(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const ran = await postern(server.env, ['send-test', 'you@example.com', '--app', 'acme', '--wait', '1'])
  assert.equal(ran.code, 1)
  assert.match(ran.out, /451 4\.7\.1 greylisted/)
  assert.match(ran.err, /not delivered within 1 s, and will be tried again/)
})

test('a key is replaced without a pause, and all deferred mail is tried at once', async (t) => {
  const relay = await startScriptedServer(t, { rcpt: '451 4.7.1 greylisted' })
  const server = await serveAcme(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const post = (key: string, to: string) =>
    send(`${server.api}/v1/email`, JSON.stringify(validBody({ to })), { authorization: `Bearer ${key}` })
  assert.equal((await post(server.key, 'one@example.com')).status, 202)
  const [old] = await posternJson<Row[]>(server.env, ['key', 'list', 'acme'])
  const replaced = await posternJson<{ key: string }>(server.env, ['key', 'replace', `${old?.id}`, '--grace', '1h'])
  assert.equal((await post(server.key, 'two@example.com')).status, 202)
  assert.equal((await post(replaced.key, 'three@example.com')).status, 202)
  const again = await posternJson<{ key: string; id: string }>(server.env, [
    'key',
    'replace',
    `${old?.id}`,
    '--grace',
    '0',
  ])
  assert.equal((await post(server.key, 'four@example.com')).status, 401)
  assert.equal((await post(again.key, 'four@example.com')).status, 202)
  const ended = await postern(server.env, ['key', 'replace', `${old?.id}`])
  assert.equal(ended.code, 1)
  assert.match(ended.err, /is revoked or has expired; make another one for its app/)
  const wrong = await postern(server.env, ['key', 'replace', `${old?.id}`, '--grace', 'soon'])
  assert.equal(wrong.code, 2)
  assert.match(wrong.err, /--grace must be 0, or a number with m, h or d/)

  const deferred = () => posternJson<Row[]>(server.env, ['email', 'list', '--state', 'deferred'])
  await eventually(async () => (await deferred()).length === 4)
  assert.equal((await postern(server.env, ['email', 'retry'])).code, 2)
  // The worker itself may be trying one of them again.
  const retryAll = () => postern(server.env, ['email', 'retry', '--all', '--app', 'acme'])
  await eventually(
    async () => (await retryAll()).out === '4 deferred emails are due now; mail that is queued needs no retry\n',
  )
  await eventually(async () => (await deferred()).filter(({ attempts }) => Number(attempts) >= 2).length === 4)
})

test('an app without links cannot send a test email, and the answer says what to do', async () => {
  await postern(env, ['app', 'create', 'Linkless', ...from])
  const ran = await postern(env, ['send-test', 'you@example.com', '--app', 'linkless'])
  assert.equal(ran.code, 1)
  assert.match(ran.err, /postern app update linkless --allow-url/)
})

test('dev mode that cannot make its key ends by itself, with the reason', onlyHere, async (t) => {
  const cwd = temporaryFolder(t)
  mkdirSync(join(cwd, '.postern', 'demo-key'), { recursive: true })
  const dev = startPostern(t, ['dev'], { cwd, env: await devListeners() })
  assert.deepEqual(await dev.ended, [1, null])
  assert.match(dev.output(), /EISDIR/)
})

test('a command that hangs ends at the first SIGTERM', onlyHere, async (t) => {
  const silent = await startScriptedServer(t, { greeting: () => {} })
  const hanging = { ...env, POSTERN_SMTP_URL: `smtp://127.0.0.1:${silent.port}` }
  const doctor = startPostern(t, ['doctor'], { env: hanging })
  await eventually(() => silent.connections() > 0)
  doctor.child.kill('SIGTERM')
  const [code, signal] = await doctor.ended
  assert.ok(signal === 'SIGTERM' || code === 128 + 15, 'by the signal; in a container, as a shell reports it')
})

test('the doctor fails for a misspelt setting', async (t) => {
  const env = { ...(await serveEnvironment(t)), POSTERN_API_LISTNE: '127.0.0.1:1' }
  const ran = await postern(env, ['doctor'])
  assert.equal(ran.code, 1)
  assert.match(ran.out, /^FAIL {2}configuration: POSTERN_API_LISTNE is not a setting.*POSTERN_API_LISTEN\?$/m)
})

test('the doctor knows dev mode', onlyHere, async (t) => {
  const cwd = temporaryFolder(t)
  const dev = startPostern(t, ['dev'], { cwd, env: await devListeners() })
  const curl = await eventually(() => /^curl .*$/m.exec(dev.output())?.[0])
  const url = /curl (\S+)/.exec(curl)?.[1] ?? ''
  const key = /Bearer (pst_\w+)/.exec(curl)?.[1]
  const refused = await send(url, JSON.stringify(validBody()), { authorization: `Bearer ${key}` })
  assert.equal(refused.status, 403)
  await eventually(() => /\d\d:\d\d:\d\d {2}403 {2}url_not_allowed; url host_differs {2}req_\w+/.test(dev.output()))
  const body = validBody({ url: 'https://app.example.com/?token=canary-token', to: 'canary@example.com' })
  await send(url, JSON.stringify(body), { authorization: `Bearer ${key}` })
  await eventually(() => /202 {2}magic_link {2}http:\/\/127\.0\.0\.1:\d+\/inbox\/em_\w+/.test(dev.output()))
  assert.doesNotMatch(dev.output(), /canary/)
  const doctor = await postern({}, ['doctor'], { cwd })
  assert.equal(doctor.code, 0, doctor.out)
  assert.match(doctor.out, /configuration: dev mode, .*captured for the inbox/)
  dev.child.kill('SIGINT')
  assert.deepEqual(await dev.ended, [0, null])
  assert.match(dev.output(), /stopped; the inbox is now empty, everything else is kept in \/.*\/\.postern \(delete/)
})

test('dev mode without the API or the worker says so, and prints no command that cannot work', onlyHere, async (t) => {
  const ports = Object.fromEntries(['OPS', 'CONSOLE'].map((name) => [`POSTERN_${name}_LISTEN`, '127.0.0.1:0']))
  const ready = async (roles: string) => {
    const dev = startPostern(t, ['dev'], {
      cwd: temporaryFolder(t),
      env: { ...ports, POSTERN_API_LISTEN: '127.0.0.1:0', POSTERN_ROLES: roles },
    })
    await eventually(() => dev.output().includes('Stop with Ctrl-C'))
    dev.child.kill('SIGINT')
    await dev.ended
    return dev.output()
  }
  const worker = await ready('worker')
  assert.doesNotMatch(worker, /undefined|curl/)
  assert.match(worker, /API +none: POSTERN_ROLES leaves api out/)
  assert.match(await ready('api'), /emails stay in the queue/)
})

test('a service that is stopped while it starts ends in order', onlyHere, async (t) => {
  const relay = await startSmtpServer(t)
  const port = await freePort()
  const serve = startPostern(t, ['serve'], {
    env: {
      ...(await serveEnvironment(t)),
      POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
      POSTERN_OPS_LISTEN: `127.0.0.1:${port}`,
      POSTERN_LINKS_BASE_URL: 'https://links.acme.test',
      POSTERN_LINKS_LISTEN: '127.0.0.1:0',
      POSTERN_ROLES: 'api,worker,links,console,auth-hooks,reports',
      POSTERN_AUTH_HOOKS_LISTEN: '127.0.0.1:0',
      POSTERN_REPORTS_LISTEN: '127.0.0.1:0',
      POSTERN_REPORTS_KEYS: 'basic:postmark:0123456789abcdef',
      POSTERN_BOUNCE_ADDRESS: 'bounces@bounce.acme.test',
      POSTERN_BOUNCE_LISTEN: '127.0.0.1:0',
    },
  })
  // The ops listener is the first part that starts.
  await eventually(() =>
    fetch(`http://127.0.0.1:${port}/livez`).then(
      () => true,
      () => false,
    ),
  )
  serve.child.kill('SIGTERM')
  assert.deepEqual(await serve.ended, [0, null], serve.output())
  const [, listeners = ''] = /is ready: (.*)/.exec(serve.output()) ?? []
  assert.deepEqual(
    listeners.split(', ').map((part) => part.replace(/ (\w+:\/\/)\S+$/, ' $1')),
    [
      ...['API http://', 'links http://', 'auth hooks http://', 'reports http://', 'bounces smtp://'],
      ...['console and management http://', 'ops http://'],
    ],
  )
  assert.match(serve.output(), /Next: run "postern console login"/, 'there is no app yet')
})

test('languages are listed and looked up, and previews and test emails are in the one that is asked for', async (t) => {
  const listed = await posternJson<{ tag: string; direction: string }[]>(env, ['languages'])
  assert.deepEqual(listed.find(({ tag }) => tag === 'ar')?.direction, 'rtl')
  assert.equal((await postern(env, ['languages', 'ca, es;q=0.9'])).out, 'es\n')
  const none = await postern(env, ['languages', 'tlh'])
  assert.deepEqual(
    [none.code, none.err],
    [1, 'postern: Postern has none of these languages: the email is in the app’s language\n'],
  )
  const relay = await startSmtpServer(t)
  const server = await serveAcme(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const preview = await postern(server.env, ['preview', 'acme', '--locale', 'de-AT'])
  assert.match(preview.out, /^Language: de\nSubject: Anmeldung bei /)
  assert.match((await postern(server.env, ['preview', 'acme', '--locale', 'tlh'])).out, /^Language: en\n/)
  const sent = await postern(server.env, ['send-test', 'you@example.com', '--app', 'acme', '--locale', 'sv'])
  assert.equal(sent.code, 0, sent.err)
  assert.match(relay.received[0]?.raw ?? '', /^Content-Language: sv\r$/m)
})

test('codes are allowed and ignored again, and previews and test emails have them where it is asked', async (t) => {
  const relay = await startSmtpServer(t)
  const server = await serveAcme(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const run = async (...words: string[]) => (await postern(server.env, words)).out
  const [beside, first] = [/Or enter this code.*:\n246813/, /Enter this code to sign in to .*:\n246813\n\nOpen /]
  assert.doesNotMatch(await run('preview', 'acme'), /246813/)
  assert.match(await run('app', 'update', 'acme', '--allow-codes'), /codes +shown/)
  assert.match(await run('preview', 'acme'), beside)
  assert.doesNotMatch(await run('preview', 'acme', '--code', 'none'), /246813/)
  assert.match(await run('preview', 'acme', '--code', 'first'), first)
  assert.doesNotMatch(await run('preview', 'acme', '--code', 'first', '--type', 'organisation_invite'), /246813/)
  for (const [place, wanted] of [
    ['beside', beside],
    ['first', first],
  ] as const) {
    await run('send-test', 'you@example.com', '--app', 'acme', '--code', place)
    assert.match((relay.received.pop()?.raw ?? '').replaceAll('\r', ''), wanted)
  }
  assert.match(await run('app', 'update', 'acme', '--no-allow-codes'), /codes +ignored/)
})
