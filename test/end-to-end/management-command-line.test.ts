/**
 * The commands that came with the management API: tokens, status, audit, apply, preview; and every operation
 * as a command.
 */
import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { newToken } from '../../src/domain/operator/management-token.ts'
import { type OperationName, operationNames } from '../../src/management/operations.ts'
import {
  newAcme,
  postern,
  posternJson,
  runProcess,
  serveEnvironment,
  serveHere,
  type Variables,
  viaApi,
} from '../support/cli.ts'
import { send, startTestService, validBody } from '../support/service.ts'
import { startScriptedServer, startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

type Row = Record<string, unknown> & { id: string }
const env = await serveEnvironment({ after })
/** For the status test; by the API, a service of it ends with the file. */
const watched = await serveEnvironment({ after })
await postern(env, ['migrate'])
const from = ['--from', 'Acme <auth@acme.test>']

test('a token is printed alone, so that it can go to a file; the list shows it without its text', async () => {
  const ran = await postern(env, ['token', 'create', 'laptop', '--role', 'admin'])
  assert.match(ran.out, /^psa_[0-9A-Za-z]{49}\n$/)
  assert.match(ran.err, /tok_\w+: admin of the whole service, until \S+ \S+Z\. The token is shown only this once/)
  const again = await postern(env, ['token', 'create', 'laptop', '--role', 'reader'])
  assert.equal(again.code, 1)
  assert.match(again.err, /There is already a working token named "laptop": revoke it first/)
  const list = await postern(env, ['token', 'list'])
  assert.match(list.out, /laptop +admin +all +active until/)
  assert.ok(!list.out.includes(ran.out.trim()))
  const [token] = (await posternJson<Row[]>(env, ['token', 'list'])).filter(({ name }) => name === 'laptop')
  assert.match((await postern(env, ['token', 'revoke', `${token?.id}`])).out, /^revoked tok_\w+ \(laptop\)/)
  const absent = await postern(env, ['token', 'revoke', 'tok_x'])
  assert.match(absent.err, /There is no token "tok_x".*"postern token list" shows the tokens/)
})

test('a key is renamed and its end moved; a name that is taken is refused', async () => {
  await postern(env, ['app', 'create', 'Keys', ...from])
  const one = await posternJson<Row>(env, ['key', 'create', 'keys', '--name', 'web'])
  const two = await posternJson<Row>(env, ['key', 'create', 'keys', '--name', 'api'])
  const taken = await postern(env, ['key', 'update', two.id, '--name', 'web'])
  assert.equal(taken.code, 1)
  assert.match(taken.err, /already has a working key named "web"/)
  const changed = await posternJson<Row>(env, ['key', 'update', one.id, '--name', 'www', '--expires', '2099-01-31'])
  assert.deepEqual([changed.name, changed.expiresAt], ['www', '2099-01-31T00:00:00.000Z'])
  assert.equal((await posternJson<Row>(env, ['key', 'update', one.id, '--expires', ''])).expiresAt, null)
  assert.match((await postern(env, ['key', 'show', one.id])).out, /^name +www$[\s\S]*^last used +never$/m)
  assert.equal((await postern(env, ['key', 'update', one.id])).code, 2)
})

test('a key is limited to networks, and opened again', async () => {
  await postern(env, ['app', 'create', 'Near', ...from])
  const create = ['key', 'create', 'near', '--network', '192.0.2.0/24', '--network', '2001:DB8::/32']
  const { id } = await posternJson<Row>(env, create)
  assert.match((await postern(env, ['key', 'show', id])).out, /^networks +192\.0\.2\.0\/24, 2001:db8::\/32$/m)
  assert.match((await postern(env, ['key', 'update', id, '--network', '192.0.2.7'])).out, /^networks +192\.0\.2\.7$/m)
  const wrong = await postern(env, ['key', 'update', id, '--network', '10.1.2.3/8'])
  assert.equal(wrong.code, 1)
  assert.match(wrong.err, /inside a network of \/8: write 10\.0\.0\.0\/8, or the address alone/)
  assert.match((await postern(env, ['key', 'update', id, '--network', ''])).out, /^networks +all$/m)
})

test('a key that leaked is found by the key itself, from the standard input, also when it is revoked', async () => {
  await postern(env, ['app', 'create', 'Leaky', ...from])
  const one = await posternJson<Row & { key: string }>(env, ['key', 'create', 'leaky', '--name', 'web'])
  await postern(env, ['key', 'create', 'leaky', '--name', 'api'])
  const find = (input: string) => postern(env, ['key', 'find'], { input })
  assert.match((await find(`${one.key}\n`)).out, new RegExp(`^id +${one.id}\n[^]*^name +web$`, 'm'))
  await postern(env, ['key', 'revoke', one.id])
  assert.match((await find(one.key)).out, /^status +revoked /m)
  for (const other of [newDeliveryKey(), newToken(), one.id, '', 'x'.repeat(10_000)]) {
    const ran = await find(other)
    assert.deepEqual([ran.code, ran.out], [1, ''])
    assert.match(ran.err, /No app that you can see has this delivery key/)
  }
})

test('key find reads the standard input of its process, and no more of it than a key has', {
  skip: viaApi && 'skipped: no matter of the API',
}, async () => {
  await postern(env, ['app', 'create', 'Piped', ...from])
  const { key } = await posternJson<{ key: string }>(env, ['key', 'create', 'piped', '--name', 'piped'])
  const find = (input: string) => runProcess(env, ['key', 'find'], { input })
  assert.match((await find(`${key}\n`)).out, /^name +piped$/m)
  for (const input of ['', `${key}x`, 'x'.repeat(1_000_000)]) {
    const ran = await find(input)
    assert.deepEqual([ran.code, ran.out], [1, ''])
  }
})

test('the audit says who changed what', async () => {
  await postern(env, ['app', 'create', 'Audited', ...from])
  await postern(env, ['app', 'update', 'audited', '--daily', '5', '--name', 'Renamed'])
  const { out } = await postern(env, ['audit', '--app', 'audited'])
  assert.match(out, /app\.update +audited +audited +name: "Audited" → "Renamed",\n +limits\.daily: 10000 → 5/)
  assert.match(out, /(cli:\w+|test \d+) +app\.create +audited +audited +name: Audited/)
  const filtered = await posternJson<Row[]>(env, ['audit', '--app', 'audited', '--action', 'app.create'])
  assert.equal(filtered.length, 1)
})

const file = (t: { after(end: () => unknown): void }, text: string): string => {
  const path = join(temporaryFolder(t), 'apps.yaml')
  writeFileSync(path, text)
  return path
}

test('apply: a plan first, then the changes; a second time nothing', async (t) => {
  const path = file(
    t,
    `- slug: applied
  name: Applied
  from: { name: Applied, address: auth@acme.test }
  allowedUrls: [https://app.acme.test/, https://APP.acme.test]
  appSchemes: [Acme]
- slug: applied-too
  name: Too
  from: { name: Too, address: auth@acme.test }
  status: disabled
`,
  )
  const plan = await postern(env, ['apply', path, '--dry-run'])
  assert.equal(plan.out, 'create applied\ncreate applied-too\n')
  const asked = await postern(env, ['apply', path])
  assert.equal(asked.code, 1)
  assert.match(asked.err, /nothing was changed: .*--yes[\s\S]*create applied/)
  assert.equal((await postern(env, ['app', 'show', 'applied'])).code, 1)
  assert.match((await postern(env, ['apply', path, '--yes'])).out, /create applied\n[\s\S]*2 done/)
  assert.equal((await posternJson<Row>(env, ['app', 'show', 'applied-too'])).status, 'disabled')
  const applied = await posternJson<Row>(env, ['app', 'show', 'applied'])
  assert.deepEqual([applied.allowedUrls, applied.appSchemes], [['https://app.acme.test'], ['acme']])
  assert.equal((await postern(env, ['apply', path, '--yes'])).out, 'nothing to change\n')
  await postern(env, ['app', 'update', 'applied', '--daily', '7'])
  const back = await postern(env, ['apply', path, '--yes'])
  assert.match(back.out, /change applied\n {2}limits: .*"daily":7.* → .*"daily":10000/)
  const shown = await posternJson<Row[]>(env, ['app', 'list'])
  const same = file(t, JSON.stringify(shown))
  assert.equal((await postern(env, ['apply', same])).out, 'nothing to change\n')
})

test('apply: one fault, and nothing is changed', async (t) => {
  const path = file(t, '- { slug: good, name: G, from: { name: G, address: a@b.test } }\n- { slug: bad, name: B }\n')
  const ran = await postern(env, ['apply', path, '--yes'])
  assert.equal(ran.code, 1)
  assert.match(ran.err, /nothing was changed:\nbad: .*\n {2}from: This field is missing/)
  assert.equal((await postern(env, ['app', 'show', 'good'])).code, 1)
  for (const [text, reason] of [
    ['{', /cannot read/],
    ['{}', /must hold an app, or a list of apps/],
    ['- name: x', /app 1 has no slug/],
    ['- slug: a\n- slug: a', /the slug "a" appears twice/],
  ] as const) {
    const wrong = await postern(env, ['apply', file(t, text)])
    assert.equal(wrong.code, 2, text)
    assert.match(wrong.err, reason)
  }
})

test('status is a failure while something needs somebody, and says what', async (t) => {
  await postern(watched, ['migrate'])
  await postern(watched, ['app', 'create', 'Quiet', ...from])
  if (!viaApi) {
    const stopped = await postern(watched, ['status'])
    assert.equal(stopped.code, 1)
    assert.match(
      stopped.out,
      /^Needs attention:\n {2}! No process of this service has reported lately.*\n {4}postern serve\n/,
    )
  }
  const relay = await startSmtpServer(t)
  await serveHere(t, { ...watched, POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  // The process describes itself in the moment after its start, and may be late on a busy machine.
  const shows = async (pattern: RegExp) => {
    let ran = await postern(watched, ['status'])
    const isShown = async () => {
      ran = await postern(watched, ['status'])
      return pattern.test(ran.out)
    }
    await eventually(isShown, 60_000).catch(() => assert.match(ran.out, pattern))
    return ran.code
  }
  assert.equal(await shows(/^All well\.\n/), 0)
  const expires = new Date(Date.now() + 9e7).toISOString()
  await postern(watched, ['key', 'create', 'quiet', '--name', 'soon', '--expires', expires])
  assert.equal(
    await shows(/^Needs attention:\n {2}- The key soon of quiet expires in 2\d h: .*\n {4}postern key list/),
    1,
  )
})

test('--url that cannot be used is refused in words, and no token goes anywhere readable', async (t) => {
  const token = join(temporaryFolder(t), 'token')
  writeFileSync(token, newToken(), { mode: 0o600 })
  const run = (...args: string[]) => postern({}, ['app', 'list', ...args])
  assert.match((await run('--url', 'http://127.0.0.1:1')).err, /--url needs --token-file/)
  assert.match((await run('--url', 'http://example.com', '--token-file', token)).err, /--url must be https/)
  assert.match((await run('--url', 'example', '--token-file', token)).err, /must be the address/)
  const dead = await run('--url', 'http://127.0.0.1:1', '--token-file', token)
  assert.equal(dead.code, 1)
  assert.match(dead.err, /does not answer \(.*\): is POSTERN_URL right/)
  const service = await startTestService(t, { roles: new Set(['api']) })
  // fetch resolves these, and would call another operation.
  for (const words of [
    ['usage', '..'],
    ['email', 'retry', '.'],
    ['app', 'show', ''],
  ]) {
    const ran = await postern(env, [...words, '--url', 'http://127.0.0.1:1', '--token-file', token])
    assert.deepEqual([ran.code, /is no name and no id/.test(ran.err)], [2, true], words.join(' '))
  }
  const api = await run('--url', service.urls.api ?? '', '--token-file', token)
  assert.match(api.err, /is the public API; set --url to the POSTERN_CONSOLE_LISTEN address/)
  for (const [text, mode, reason] of [
    ['', 0o600, /is empty/],
    [newDeliveryKey(), 0o600, /holds a delivery key/],
    [`Authorization: Bearer ${newToken()}`, 0o600, /must contain only a management token/],
    [newToken(), 0o644, /others may read .*chmod 600/],
  ] as const) {
    const path = join(temporaryFolder(t), 'wrong')
    writeFileSync(path, text)
    chmodSync(path, mode) // whatever the umask is
    const wrong = await run('--url', 'http://127.0.0.1:1', '--token-file', path)
    assert.match(wrong.err, reason)
    assert.ok(text === '' || !wrong.err.includes(text.slice(-20)), 'no secret is printed')
  }
  const local = await postern({ POSTERN_URL: 'http://127.0.0.1:1' }, ['backup', 'x'])
  assert.match(local.err, /works on this machine only/)
})

test('every operation is a command, on the database and by the API', {
  skip: viaApi && 'skipped: it runs both ways itself',
}, async (t) => {
  const relay = await startScriptedServer(t, { rcpt: '451 4.7.1 later' })
  const env = {
    ...(await serveEnvironment(t)),
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
    POSTERN_TRANSPORTS_PRIVATE: 'yes',
  }
  const key = await newAcme(env)
  const { events, urls } = await serveHere(t, env)
  const seen = new Set<string>()
  events.subscribe((event) => {
    if (event.kind === 'operation_answered') seen.add(event.operation)
  })
  const server = { env, key, api: urls.api ?? '' }
  const { token } = await posternJson<{ token: string }>(server.env, ['token', 'create', 'all', '--role', 'admin'])
  const tokenFile = join(temporaryFolder(t), 'token')
  writeFileSync(tokenFile, token, { mode: 0o600 })
  const remote: Variables = { POSTERN_URL: urls.console ?? '', POSTERN_TOKEN_FILE: tokenFile }
  for (const [way, variables] of Object.entries({ local: server.env, remote })) {
    for (const [operation, args] of Object.entries(await commandsFor(server, way))) {
      const input = operation === 'transport.put' ? 'smtp://127.0.0.1:1' : server.key
      const run = () => postern(variables, args, { input })
      const ran = meetsAttempts.has(operation as OperationName) ? await untilDone(run) : await run()
      const isExpected = ran.code === 0 || (ran.code === 1 && mayFail.has(operation as OperationName))
      assert.ok(isExpected, `${way} ${args.join(' ')}: ${ran.code} ${ran.err}`)
    }
  }
  const expected = operationNames.filter((name) => !forPeople.some((own) => own === name))
  assert.deepEqual([...seen].sort(), expected.sort())
})

/** For people who are signed in to the console: neither a token nor a user of the server has an account. */
const forPeople = ['account.change', 'account.remove_passkey', 'account.end_session'] as const

/**
 * Mail waits, and the relay defers it; no command makes a passkey or a session; a key is no report; and no
 * test key sends anything.
 */
const mayFail = new Set<OperationName>([
  ...(['status.show', 'app.test_email', 'checks.run'] as const),
  ...(['person.remove_passkey', 'session.end', 'report.read', 'auth_hook.check', 'transport.check'] as const),
  ...(['webhook.test', 'webhook.show', 'webhook.send', 'inbox.wait'] as const),
])

/** The worker tries deferred mail again every few seconds; while it does, these are refused. */
const meetsAttempts = new Set<OperationName>(['email.retry', 'email.cancel'])

const untilDone = (run: () => ReturnType<typeof postern>) =>
  eventually(async () => {
    const ran = await run()
    return ran.code === 0 ? ran : null
  })

/** A command for each operation, with things of its own. */
async function commandsFor(
  server: { readonly env: Variables; readonly key: string; readonly api: string },
  way: string,
): Promise<Record<Exclude<OperationName, (typeof forPeople)[number]>, string[]>> {
  const headers = { authorization: `Bearer ${server.key}` }
  const post = async (to: string) => {
    const answer = await send(`${server.api}/v1/email`, JSON.stringify(validBody({ to })), headers)
    return answer.headers.get('email-id') ?? ''
  }
  const [one, two] = [await post(`one-${way}@example.com`), await post(`two-${way}@example.com`)]
  const isDeferred = async (id: string) =>
    (await posternJson<Row>(server.env, ['email', 'show', id])).state === 'deferred'
  await eventually(async () => (await isDeferred(one)) && (await isDeferred(two)))
  await send(`${server.api}/v1/email`, JSON.stringify({}), headers)
  const refused = await eventually(async () => {
    const [newest] = await posternJson<{ requestId: string }[]>(server.env, ['refusal', 'list', 'acme'])
    return newest?.requestId
  })
  const newKey = async (name: string) =>
    (await posternJson<Row>(server.env, ['key', 'create', 'acme', '--name', `${name} ${way}`])).id
  const [changed, replaced, revoked] = [await newKey('a'), await newKey('b'), await newKey('c')]
  const token = await posternJson<Row>(server.env, ['token', 'create', `x ${way}`, '--role', 'reader'])
  const suppress = ['suppression', 'add', `dead-${way}@example.com`, '--app', 'acme', '--days', '2']
  const suppressed = await posternJson<Row>(server.env, suppress)
  const newSigningKey = () =>
    posternJson<{ selector: string }>(server.env, ['domain', 'add-key', 'acme', '--algorithm', 'ed25519'])
  const [signing, unused] = [await newSigningKey(), await newSigningKey()]
  await posternJson(server.env, ['app', 'create', `Old ${way}`, ...from])
  await postern(server.env, ['transport', 'add', `old-${way}`], { input: 'smtp://127.0.0.1:1' })
  await posternJson(server.env, ['person', 'invite', `Ada ${way}`, '--role', 'reader'])
  return {
    'email.retry': ['email', 'retry', one],
    'email.cancel': ['email', 'cancel', two],
    whoami: ['whoami'],
    'app.list': ['app', 'list'],
    'app.names': ['audit'],
    'app.put': ['app', 'create', `New ${way}`, ...from],
    'app.show': ['app', 'show', 'acme'],
    'app.change': ['app', 'update', 'acme', '--support', `${way}@acme.test`],
    'app.delete': ['app', 'delete', `old-${way}`, '--yes'],
    'app.check_link': ['check-link', 'acme', 'https://app.acme.test/?token=x'],
    'app.preview': ['preview', 'acme', '--type', 'password_reset'],
    'app.test_email': ['send-test', `test-${way}@example.com`, '--app', 'acme', '--wait', '1'],
    'app.usage': ['usage', 'acme'],
    'usage.list': ['usage'],
    'key.list': ['key', 'list', 'acme'],
    'inbox.list': ['inbox', 'list', 'acme'],
    'inbox.wait': ['inbox', 'wait', 'acme', '--timeout', '1'],
    'key.create': ['key', 'create', 'acme', '--name', `d ${way}`],
    'key.find': ['key', 'find'],
    'key.show': ['key', 'show', changed],
    'key.change': ['key', 'update', changed, '--name', `e ${way}`],
    'key.replace': ['key', 'replace', replaced],
    'key.revoke': ['key', 'revoke', revoked],
    'email.list': ['email', 'list', '--since', '3d'],
    'email.find': ['email', 'list', '--to', `one-${way}@example.com`],
    'email.retry_all': ['email', 'retry', '--all'],
    'email.show': ['email', 'show', one],
    'refusal.list': ['refusal', 'list', 'acme'],
    'refusal.show': ['refusal', 'show', refused],
    'activity.show': ['activity', '--since', '2h'],
    'recipient.forget': ['forget', `forgotten-${way}@example.com`, '--yes'],
    'report.show': ['report', 'status'],
    'report.read': ['report', 'read', '--dry-run'],
    'suppression.list': ['suppression', 'list'],
    'suppression.find': ['suppression', 'find', `one-${way}@example.com`],
    'suppression.add': ['suppression', 'add', `gone-${way}@example.com`, '--app', 'acme'],
    'suppression.remove': ['suppression', 'remove', suppressed.id],
    'suppression.clear': ['suppression', 'clear', '--destination', 'proton', '--yes'],
    'domain.show': ['domain', 'show', 'acme'],
    'domain.check': ['domain', 'check', 'acme'],
    'domain.prove': ['domain', 'prove', 'acme', 'acme.test'],
    'domain.add_key': ['domain', 'add-key', 'acme'],
    'domain.activate_key': ['domain', 'activate-key', 'acme', signing.selector, '--unchecked'],
    'domain.remove_key': ['domain', 'remove-key', 'acme', unused.selector],
    'auth_hook.list': ['auth-hook', 'list', 'acme'],
    'webhook.list': ['app-webhook', 'list', 'acme'],
    'webhook.secret': ['app-webhook', 'secret', 'acme'],
    'webhook.test': ['app-webhook', 'test', 'acme'],
    'webhook.show': ['app-webhook', 'show', 'acme', 'wh_x'],
    'webhook.send': ['app-webhook', 'send', 'acme', 'wh_x'],
    'auth_hook.connect': ['auth-hook', 'connect', 'acme', 'kratos'],
    'auth_hook.check': ['auth-hook', 'check', 'acme', 'kratos'],
    'transport.list': ['transport', 'list'],
    'transport.put': ['transport', 'add', `new-${way}`],
    'transport.check': ['transport', 'check', `old-${way}`],
    'transport.delete': ['transport', 'remove', `old-${way}`],
    'service.show': ['about'],
    'status.show': ['status'],
    'queue.show': ['queue'],
    'checks.run': ['doctor'],
    'audit.list': ['audit'],
    'list.export': ['export', 'audit'],
    'token.list': ['token', 'list'],
    'token.create': ['token', 'create', `y ${way}`, '--role', 'reader', '--app', 'acme'],
    'token.revoke': ['token', 'revoke', token.id],
    'person.list': ['person', 'list'],
    'person.invite': ['person', 'invite', `Bob ${way}`, '--role', 'reader', '--app', 'acme'],
    'person.change': ['person', 'update', `Ada ${way}`, '--role', 'operator', '--all-apps'],
    'person.link': ['person', 'link', `Ada ${way}`],
    'person.end_link': ['person', 'end-link', `Ada ${way}`],
    'person.made': ['person', 'made', `Ada ${way}`],
    'person.remove_passkey': ['person', 'remove-passkey', `Ada ${way}`, 'none'],
    'session.list': ['session', 'list'],
    'session.end': ['session', 'end', 'ses_x'],
  }
}

test('a person is invited, changed and disabled; console login lets the user of the command in', {
  skip: viaApi && 'skipped: a person signs in by the command on this machine',
}, async () => {
  const invited = await postern(env, ['person', 'invite', 'Ada', '--role', 'operator'])
  assert.match(invited.out, /^http:\/\/postern\.localhost:\d+\/sign-in#psl_[0-9A-Za-z]{49}\n$/)
  assert.match(invited.err, /Ada: operator of the whole service\. The link signs the person in once, until \S+ \S+Z/)
  assert.match(
    (await postern(env, ['person', 'invite', 'Ada', '--role', 'reader'])).err,
    /There is already a person named "Ada"/,
  )
  assert.match((await postern(env, ['person', 'invite', 'cli:Ada', '--role', 'reader'])).err, /must not begin with/)
  const changed = await postern(env, ['person', 'update', 'Ada', '--role', 'reader', '--disable'])
  assert.equal(changed.out, 'Ada: reader of the whole service, disabled\n')
  const again = await postern(env, ['person', 'update', 'Ada', '--role', 'operator'])
  assert.equal(again.out, 'Ada: operator of the whole service, disabled\n', 'a new role enables nobody')
  const made = await postern(env, ['person', 'made', 'Ada'])
  assert.equal(made.out, 'Ada created nothing that still works\n')
  assert.match((await postern(env, ['person', 'link', 'Ada'])).err, /Ada is disabled: enable the person first/)
  assert.equal((await postern(env, ['person', 'update', 'Ada'])).code, 2)
  const list = await postern(env, ['person', 'list'])
  assert.match(list.out, /Ada +operator +all +one-time +disabled .*never/)
  assert.ok(!list.out.includes('psl_'))
  for (let n = 0; n < 2; n++) assert.match((await postern(env, ['console', 'login'])).out, /\/sign-in#psl_\w{49}\n$/)
  assert.match((await postern(env, ['console', 'login', '--as', 'Ada'])).err, /Ada is disabled/)
  assert.match(
    (await postern(env, ['console', 'login', '--as', 'Ada', '--role', 'admin'])).err,
    /Ada exists: change role and apps/,
  )
  const remote = await postern({ ...env, POSTERN_URL: 'http://127.0.0.1:1' }, ['console', 'login'])
  assert.match(remote.err, /run it on the server/)
  assert.match((await postern(env, ['person', 'link', 'Nobody'])).err, /no person "Nobody".*"postern person list"/)
  assert.equal((await postern(env, ['session', 'list'])).out, 'nobody is signed in\n')
  const off = await postern({ ...env, POSTERN_CONSOLE_LISTEN: 'off' }, ['console', 'login'])
  assert.match(off.err, /POSTERN_CONSOLE_LISTEN is off/)
})
