/** Mail of auth servers, from their calls to the inbox. */
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { findPostingSystem as findSystem, postingSystems as systems } from '../../src/domain/auth-hooks/auth-hooks.ts'
import { type AuthHookName, authHookNames, sign, startAuthHooks } from '../support/auth-hooks.ts'
import { postern, posternJson, serveAcme } from '../support/cli.ts'
import { press } from '../support/hosted-links.ts'
import { ask, newManagementToken } from '../support/management.ts'
import { listEmails, operator } from '../support/operator.ts'
import { refusalsOf, testSettings, validBody } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

type Connected = { url: string; secret: string; steps: object[]; key: { id: string } }

/** A service of its own, with the command line on its database. */
const startCommands = (t: TestContext) =>
  serveAcme(t, {
    POSTERN_AUTH_HOOKS_LISTEN: '127.0.0.1:0',
    POSTERN_AUTH_HOOKS_URL: 'https://hooks.acme.test',
    POSTERN_SMTP_URL: 'smtp://127.0.0.1:9',
  })

const { service, connect, postRaw, call, newApp } = await startAuthHooks({ after })
const secrets = {
  supabase: await connect('supabase'),
  kratos: await connect('kratos'),
  zitadel: await connect('zitadel'),
  logto: await connect('logto'),
}

type Email = {
  id: string
  seq: number
  type: string
  to: string
  url: string
  code: string | null
  text: string
  subject: string
}

const inbox = async (): Promise<Email[]> => {
  const rows = (await (await fetch(`${service.urls.inbox}/api/inbox`)).json()) as Email[]
  return Promise.all(
    rows.map(async ({ id }) => (await (await fetch(`${service.urls.inbox}/api/inbox/${id}`)).json()) as Email),
  )
}
const count = async () => (await listEmails(service.store, { limit: 500 })).length

/** Gives every text of a sample another value, so that no message repeats another. */
const unlike = (sample: object, name: string): object =>
  JSON.parse(
    JSON.stringify(sample)
      .replaceAll(/[\w.+-]+@example\.com/g, (address) => `${name}-${address}`)
      .replaceAll('auth.example.com', 'auth.acme.test')
      .replaceAll('id.example.com', 'auth.acme.test')
      .replaceAll('app.example.com', 'app.acme.test'),
  ) as object

for (const system of systems) {
  const server = system.name as AuthHookName
  const { secret } = secrets[server]
  for (const [kind, about] of Object.entries(system.kinds))
    test(`${system.title}: ${kind} becomes ${about === 'notice' ? 'nothing' : about.type}`, async () => {
      const name = `${system.name}-${kind.replaceAll(/\W|_/g, '').toLowerCase()}`.slice(0, 40)
      const before = await count()
      const answer = await call(server, secret, unlike(system.sample(kind), name))
      assert.equal(answer.status, 200, answer.text)
      assert.equal(answer.text, '{}')
      if (about === 'notice') return assert.equal(await count(), before)
      const email = await eventually(async () => (await inbox()).find(({ to }) => to.startsWith(name)))
      assert.equal(email.type, about.type)
      assert.equal([...new URL(email.url).searchParams.keys()].join(), 'token', email.url)
    })
}

test('who does not prove it is refused by one answer, whatever is wrong, and nothing is charged', async () => {
  const other = await newApp('other')
  const foreign = Object.fromEntries(
    await Promise.all(authHookNames.map(async (name) => [name, (await connect(name, other.app)).secret] as const)),
  )
  const before = JSON.stringify(await service.store.readUsage(service.app.id))
  for (const system of systems) {
    const kind = Object.keys(system.kinds)[0] ?? ''
    const body = JSON.stringify(unlike(system.sample(kind), 'stranger'))
    const server = system.name as AuthHookName
    const { secret } = secrets[server]
    const path = `/${system.name}/acme`
    const now = service.store.now()
    const strangers = [
      await postRaw(path, body, {}),
      await postRaw(path, body, sign(server, foreign[system.name] ?? '', body, now)),
      await postRaw('/logto/nobody', body, sign(server, secret, body, now)),
      await postRaw(path, body, { authorization: `Bearer ${service.key}` }),
      await postRaw(`/${system.name}/other`, body, sign(server, secret, body, now)),
      await postRaw(`/${system.name === 'logto' ? 'kratos' : 'logto'}/acme`, body, sign(server, secret, body, now)),
    ]
    if (system.auth.kind === 'signed') {
      const signed = sign(server, secret, body, now)
      strangers.push(
        await postRaw(path, `${body} `, signed),
        await postRaw(path, body, sign(server, secret, body, now - 310_000)),
        await postRaw(path, body, sign(server, secret, body, now + 310_000)),
      )
    }
    for (const { status, text } of strangers) {
      assert.equal(status, 401, system.name)
      assert.equal(text.replace(/req_\w+/, 'ID'), strangers[0]?.text.replace(/req_\w+/, 'ID'))
    }
  }
  assert.equal(JSON.stringify(await service.store.readUsage(service.app.id)), before)
  // A secret works at its own door alone.
  const answer = await service.post(validBody({ to: 'door@example.com' }), {
    authorization: `Bearer ${secrets.logto.secret}`,
  })
  assert.equal(answer.status, 401)
})

test('strangers with large bodies wait for each other, and keep nobody else waiting', async () => {
  let waiting = 15
  const calls = Array.from({ length: waiting }, async () => {
    const { status } = await postRaw('/supabase/acme', ' '.repeat(128 * 1024), {})
    waiting -= 1
    return status
  })
  await Promise.race(calls)
  assert.equal((await postRaw('/supabase/acme', '{}', {})).status, 401)
  assert.ok(waiting > 5, String(waiting))
  assert.deepEqual(new Set(await Promise.all(calls)), new Set([401]))
})

test('a body that is too large is said to be so, to anybody, and counted', async () => {
  for (const { name, bodyBytesMax } of systems) {
    const answer = await postRaw(`/${name}/acme`, new Uint8Array(bodyBytesMax + 1), {})
    assert.match(answer.text, /invalid_body/, name)
  }
  const metrics = await (await fetch(`${service.urls.ops}/metrics`)).text()
  assert.match(metrics, /postern_requests_total\{source="kratos",status="400",code="invalid_body"\} [1-9]/)
  assert.match(metrics, /postern_requests_total\{source="kratos",status="401",code="invalid_key"\} [1-9]/)
})

test('two operators who connect at once make one successor; the secret in use keeps its grace', async () => {
  const { app } = await newApp('rivals')
  const connectAs = (n: number) =>
    ask(service, `POST /v1/apps/rivals/auth-hooks/kratos`, { token: tokens[n % 2] ?? '', body: {} })
  const tokens = [await newManagementToken(service, 'operator'), await newManagementToken(service, 'operator')]
  const first = await connectAs(0)
  assert.equal(first.status, 201)
  const both = await Promise.all([connectAs(0), connectAs(1)])
  const statuses = both.map(({ status }) => status).toSorted()
  // One after the other, both succeed in turn; at the same time, one is asked to try again.
  assert.ok(['201,201', '201,409'].includes(statuses.join()), statuses.join())
  const working = (await service.store.listKeys(app.id)).filter(({ hook }) => hook === 'kratos')
  assert.equal(working.filter(({ expiresAt }) => expiresAt === null).length, 1)
  await connectAs(0)
  const sample = unlike(findSystem('kratos')?.sample('login_code_valid') ?? {}, 'rival')
  assert.equal((await call('kratos', first.body.secret, sample, 'rivals')).status, 200, 'three secrets on')
})

test('a second secret works within a second, and a revoked one ends with the next call', async () => {
  const body = () => unlike(findSystem('logto')?.sample('SignIn') ?? {}, `turn${turn++}`)
  let turn = 0
  const second = await connect('logto')
  assert.equal(
    (
      await eventually(async () => {
        const answer = await call('logto', second.secret, body())
        return answer.status === 200 ? answer : null
      })
    ).status,
    200,
  )
  assert.equal((await call('logto', secrets.logto.secret, body())).status, 200, 'the first goes on')
  await service.store.revokeKey(second.id, operator)
  assert.equal((await call('logto', second.secret, body())).status, 401)
  assert.equal((await call('logto', secrets.logto.secret, body())).status, 200)
})

test('an app that is disabled takes no calls', async () => {
  const { app } = await newApp('asleep')
  const { secret } = await connect('kratos', app)
  const body = unlike(findSystem('kratos')?.sample('login_code_valid') ?? {}, 'asleep')
  assert.equal((await call('kratos', secret, body, 'asleep')).status, 200)
  await service.store.updateApp(app.id, { status: 'disabled' }, operator)
  assert.equal((await call('kratos', secret, body, 'asleep')).status, 401)
})

test('a repeat of a message is one email, also at the same time and with another id and time', async () => {
  for (const name of ['supabase', 'kratos', 'zitadel'] as const) {
    const system = findSystem(name)
    const kind = Object.entries(system?.kinds ?? {}).find(([, about]) => about !== 'notice')?.[0] ?? ''
    const body = unlike(system?.sample(kind) ?? {}, `repeat-${name}`)
    const before = await count()
    const answers = await Promise.all(Array.from({ length: 6 }, () => call(name, secrets[name].secret, body)))
    assert.deepEqual(new Set(answers.map(({ status, text }) => `${status} ${text}`)), new Set(['200 {}']))
    assert.equal(await count(), before + 1, name)
  }
})

test('a refusal is answered as the system reads it, and its record says what to do', async () => {
  const bare = await newApp('bare', { ...testSettings, authHooks: {} })
  const refusals = async () =>
    (await refusalsOf(service.store, bare.app.id)).map(({ code, issues }) => `${code} ${issues}`)
  const send = async (name: AuthHookName, body: object) => {
    const { secret } = await connect(name, bare.app)
    return eventually(async () => {
      const answer = await call(name, secret, body, 'bare')
      return answer.status === 401 ? null : answer
    })
  }
  const sample = (name: string, kind: string) => unlike(findSystem(name)?.sample(kind) ?? {}, 'bare')
  const logto = await send('logto', sample('logto', 'SignIn'))
  assert.equal(logto.status, 400)
  assert.match(logto.text, /^\{"message":"postern: invalid_body \(req_\w+\)"\}$/)
  const supabase = await send('supabase', sample('supabase', 'signup'))
  assert.equal(supabase.status, 200)
  assert.match(supabase.text, /"http_code":422,"message":"postern: invalid_body \(req_/)
  const unknown = await send('kratos', { ...sample('kratos', 'login_code_valid'), template: 'stub' })
  assert.equal(unknown.status, 400)
  assert.doesNotMatch(logto.text + supabase.text + unknown.text, /bare-|@/)
  await eventually(async () => (await refusals()).length >= 3)
  const all = (await refusals()).join('\n')
  assert.match(all, /invalid_body .*allowCodes codes_not_allowed.*authHooks\.logto\.pages page_missing/)
  assert.match(all, /invalid_body .*authHooks\.supabase\.pages page_missing/)
  assert.match(all, /unsupported_email .*template unknown_kind/)
})

test('the link of an auth server opens with all its parameters, by its button alone', async () => {
  const email = (await inbox()).find(({ to }) => to.startsWith('supabase-signup'))
  assert.ok(email)
  assert.match(email.url, /^https:\/\/links\.acme\.test\/acme\/go\?token=[\w-]+$/)
  const url = email.url.replace('https://links.acme.test', service.urls.links ?? '')
  const page = await fetch(url, { redirect: 'manual' })
  assert.equal(page.status, 200)
  assert.match(await page.text(), /https:\/\/auth\.acme\.test/)
  const pressed = await press(url)
  const location = new URL(pressed.headers.get('location') ?? '')
  assert.equal(pressed.status, 303)
  assert.deepEqual([...location.searchParams.keys()], ['token', 'type', 'redirect_to'])
  assert.equal((await fetch(url.replace(/token=.{9}/, 'token=AAAAAAAAA'))).status, 404)
  // The allow-list decides at each view.
  const settings = { ...service.app.settings, allowedUrls: ['https://app.acme.test'] }
  await service.store.updateApp(service.app.id, { settings }, operator)
  assert.equal((await fetch(url)).status, 404)
  await service.store.updateApp(service.app.id, { settings: service.app.settings }, operator)
  assert.equal((await fetch(url)).status, 200)
})

test('an app cannot send such a link itself, and one to another host is refused', async () => {
  const url = 'https://auth.acme.test/auth/v1/verify?token=a&type=signup'
  assert.equal((await service.post(validBody({ to: 'direct@example.com', url }))).status, 400)
  const body = unlike(findSystem('zitadel')?.sample('user.human.email.code.added') ?? {}, 'evil')
  const elsewhere = JSON.parse(JSON.stringify(body).replaceAll('auth.acme.test', 'evil.test')) as object
  const answer = await call('zitadel', secrets.zitadel.secret, elsewhere)
  assert.equal(answer.status, 403)
  await eventually(async () =>
    (await refusalsOf(service.store, service.app.id)).some(({ origin }) => origin === 'https://evil.test'),
  )
})

test('a change of address asks its owner to agree, and the new one to confirm', async () => {
  const body = unlike(findSystem('supabase')?.sample('email_change') ?? {}, 'change')
  const answer = await call('supabase', secrets.supabase.secret, body)
  assert.equal(answer.text, '{}')
  const both = await eventually(async () => {
    const found = (await inbox()).filter(({ to }) => to.startsWith('change-'))
    return found.length === 2 ? found : null
  })
  assert.deepEqual(both.map(({ subject }) => subject).toSorted(), [
    'Confirm the change of your email address for Acme',
    'Confirm your email address for Acme',
  ])
  const agree = both.find(({ subject }) => subject.startsWith('Confirm the change'))
  assert.match(agree?.text ?? '', /do not approve it, and change your password/)
  const page = await fetch((agree?.url ?? '').replace('https://links.acme.test', service.urls.links ?? ''))
  assert.match(await page.text(), /<h1>Confirm the change of your address<\/h1>/)
})

test('calls are counted by their system, and their log lines name it and no person', async () => {
  const metrics = await (await fetch(`${service.urls.ops}/metrics`)).text()
  const value = (series: string) =>
    Number(
      metrics
        .split('\n')
        .find((line) => line.startsWith(series))
        ?.split(' ')
        .at(-1),
    )
  assert.ok(value('postern_requests_total{source="logto",status="202",code="accepted"}') > 5)
  assert.ok(value('postern_requests_total{source="supabase",status="200",code="notice_not_sent"}') > 5)
  const line = service.log.find((each) => each.includes('"source":"kratos"'))
  assert.match(line ?? '', /"message":"\w+_valid"/)
  for (const each of service.log) assert.doesNotMatch(each, /@example\.com|psh_|whsec_/)
})

test('connected on the command line: the secret is shown once, works, and its successor ends it', async (t) => {
  const { env, authHooks } = await startCommands(t)
  const made = await posternJson<Connected>(env, ['auth-hook', 'connect', 'acme', 'logto'])
  assert.match(made.secret, /^psh_\w{49}$/)
  assert.equal(made.url, 'https://hooks.acme.test/logto/acme')
  assert.match(JSON.stringify(made.steps), new RegExp(made.secret))
  const sample = findSystem('logto')?.sample('SignIn') ?? {}
  const send = (secret: string, name: string) =>
    fetch(`${authHooks}/logto/acme`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(unlike(sample, name)),
    })
  assert.equal((await send(made.secret, 'first')).status, 400, 'the app allows no codes')
  const pages = [
    '--allow-codes',
    '--auth-hook-page',
    'logto.default=https://app.acme.test/code',
    '--auth-hook-life',
    'logto.SignIn=120',
  ]
  const app = await posternJson<{ authHooks: object }>(env, ['app', 'update', 'acme', ...pages])
  assert.deepEqual(app.authHooks, {
    logto: { pages: { default: 'https://app.acme.test/code' }, lifeSeconds: { SignIn: 120 } },
  })
  assert.equal((await send(made.secret, 'second')).status, 200)
  const next = await posternJson<Connected>(env, ['auth-hook', 'connect', 'acme', 'logto', '--grace', '0'])
  assert.equal(
    (
      await eventually(async () => {
        const answer = await send(next.secret, 'third')
        return answer.status === 200 ? answer : null
      })
    ).status,
    200,
  )
  await eventually(async () => (await send(made.secret, 'fourth')).status === 401)
  const list = await postern(env, ['auth-hook', 'list', 'acme'])
  assert.match(list.out, /logto +last used/)
  assert.doesNotMatch(list.out, /psh_/)
  const audit = (await postern(env, ['audit', '--json'])).out
  assert.match(audit, /key\.create[\s\S]*"hook": "logto"|"hook": "logto"[\s\S]*key\.create/)
  assert.doesNotMatch(audit, /psh_/)
  const replaced = await postern(env, ['key', 'replace', next.key.id])
  assert.match(replaced.err, /postern auth-hook connect/)
  const removed = await posternJson<{ authHooks?: object }>(env, [
    'app',
    'update',
    'acme',
    '--auth-hook-page',
    'logto.default=',
    '--auth-hook-life',
    'logto.SignIn=',
  ])
  assert.deepEqual(removed.authHooks ?? {}, {})
})

test('a check says what becomes of each kind and of a payload, and repeats nothing of it', async (t) => {
  const { env } = await startCommands(t)
  const bare = await postern(env, ['auth-hook', 'check', 'acme', 'zitadel'])
  assert.equal(bare.code, 1)
  assert.match(bare.out, /FAIL +user\.human\.email\.code\.added: invalid_hosted_link_config\n.*POSTERN_LINKS_BASE_URL/)
  assert.match(bare.out, /-- +user\.human\.password\.changed: a notice/)
  const hosted = { ...env, POSTERN_LINKS_BASE_URL: 'https://links.acme.test' }
  await posternJson(env, ['app', 'update', 'acme', '--allow-codes'])
  const good = await postern(hosted, ['auth-hook', 'check', 'acme', 'zitadel'])
  assert.equal(good.code, 0, good.out)
  assert.match(good.out, /ok +user\.human\.email\.code\.added: email_verification, hosted link and code/)
  const payload = JSON.stringify(findSystem('zitadel')?.sample('user.human.email.code.added'))
  const own = await postern(hosted, ['auth-hook', 'check', 'acme', 'zitadel', '-'], { input: payload })
  assert.match(own.out, /FAIL +user\.human\.email\.code\.added: url_not_allowed/)
  assert.doesNotMatch(own.out, /@|token|code=|246813/)
  const zitadel = await postern(env, ['auth-hook', 'connect', 'acme', 'zitadel'], {
    input: 'a-signing-key-of-Zitadel-0123456789',
  })
  assert.equal(zitadel.code, 0, zitadel.err)
  assert.doesNotMatch(zitadel.out, /a-signing-key/)
})
