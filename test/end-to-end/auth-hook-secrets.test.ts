/** Secrets of auth servers over time, and answers to calls that go wrong. */
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { hashDeliveryKey, newAuthHookSecret } from '../../src/domain/app/delivery-key.ts'
import { findSystem } from '../../src/domain/auth-hooks/auth-hooks.ts'
import { AppPolicyCache } from '../../src/intake/app-policy-cache.ts'
import { sealAuthHookSecret } from '../../src/store/crypto/auth-hook-secret.ts'
import { newSecretKey } from '../../src/store/crypto/key-ring.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { AuthHookSecrets } from '../../src/web/auth-hooks/auth-hook-secrets.ts'
import { type AuthHooksDeps, newAuthHooksListener } from '../../src/web/auth-hooks/auth-hooks-listener.ts'
import { authHookSettings, sign, startAuthHooks } from '../support/auth-hooks.ts'
import { newAcme, postern, posternJson, serveEnvironment, serveHere, type Variables } from '../support/cli.ts'
import { listEmails, operator } from '../support/operator.ts'
import { newRing } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const { service, connect, call, newApp, postRaw } = await startAuthHooks({ after })
const sample = (name: 'supabase' | 'kratos' | 'zitadel' | 'logto', kind: string): object =>
  findSystem(name)?.sample(kind) ?? {}
const notice = sample('kratos', 'recovery_invalid')

/** A listener of its own over the store of the service, with some parts changed. */
function newListener(change: Partial<AuthHooksDeps> = {}) {
  const events: string[] = []
  const listener = newAuthHooksListener({
    store: service.store,
    ring: service.config.ring,
    basePath: '',
    policies: new AppPolicyCache(),
    links: { baseUrl: null, seal: () => assert.fail() },
    waitForTurn: () => undefined,
    onQueued: () => {},
    onSuperseded: () => {},
    onSuppressed: () => {},
    isStopping: () => false,
    emit: ({ kind }) => void events.push(kind),
    random: () => 0.5,
    ...change,
  })
  const post = (url: string, secret: string, payload: object = notice) =>
    listener.inject({ method: 'POST', url, headers: { authorization: `Bearer ${secret}` }, payload })
  return { events, post, listener }
}

test('the secret of an auth server may be limited to networks, like every key', async () => {
  const { app } = await newApp('near')
  const secret = newAuthHookSecret()
  const key = { app: app.id, hash: hashDeliveryKey(secret), name: 'kratos', expiresAt: null, hook: 'kratos' } as const
  await service.store.createKey({ ...key, networks: ['192.0.2.0/24'] }, operator)
  const { listener } = newListener()
  const post = async (from: string) => {
    const headers = { authorization: `Bearer ${secret}`, 'x-forwarded-for': from }
    const { statusCode } = await listener.inject({ method: 'POST', url: '/kratos/near', headers, payload: notice })
    return statusCode
  }
  assert.deepEqual([await post('192.0.2.9'), await post('198.51.100.9'), await post('192.0.2.9')], [200, 401, 200])
})

test('a call that finds its secret revoked is tried again with the others', async () => {
  const { app } = await newApp('turned')
  // Both keys have the secret of one server, so that a call fits both.
  const secret = 'a-signing-key-of-zitadel'
  const add = async (name: string) => {
    const hash = hashDeliveryKey(newAuthHookSecret())
    const sealed = sealAuthHookSecret(service.config.ring, { hash }, secret)
    const key = { app: app.id, hash, name, expiresAt: null, hook: 'zitadel', sealed } as const
    const made = await service.store.createKey(key, operator)
    assert.ok(made !== null && typeof made === 'object')
    return made.id
  }
  await add('one')
  const newest = await add('two')
  const body = sample('zitadel', 'user.human.password.changed')
  assert.equal((await call('zitadel', secret, body, 'turned')).status, 200)
  await service.store.revokeKey(newest, operator)
  assert.equal((await call('zitadel', secret, body, 'turned')).status, 200)
})

test('a key that is gone each time it is asked for is answered as a wrong secret', async () => {
  const { secret } = await connect('kratos')
  const { findAppBySlug, listAuthHookSecrets, nameRecipient, now } = service.store
  const store = {
    findAppBySlug,
    listAuthHookSecrets,
    nameRecipient,
    now,
    enqueue: async () => ({ kind: 'invalid_key' }) as const,
  }
  const { events, post } = newListener({ store })
  const answers = [await post('/kratos/acme', secret), await post('/kratos/acme', newAuthHookSecret())]
  assert.deepEqual(events, ['request_answered', 'request_answered'], 'each call is counted once')
  const [gone, wrong] = answers.map(({ statusCode, body }) => `${statusCode} ${body.replace(/req_\w+/, '')}`)
  assert.match(`${gone}`, /^401 /)
  assert.equal(gone, wrong)
})

test('a secret that the ring does not open is none, and the others work', async () => {
  const { app } = await newApp('unopened')
  const hash = hashDeliveryKey(newAuthHookSecret())
  const sealed = sealAuthHookSecret(newRing('other'), { hash }, 'a-signing-key-of-zitadel')
  const key = { app: app.id, hash, name: 'other', expiresAt: null, hook: 'zitadel', sealed } as const
  const { secret } = await connect('zitadel', app)
  await service.store.createKey(key, operator)
  const body = sample('zitadel', 'user.human.password.changed')
  assert.equal((await call('zitadel', secret, body, 'unopened')).status, 200)
  assert.equal((await call('zitadel', 'a-signing-key-of-zitadel', body, 'unopened')).status, 401)
})

test('a read of secrets that failed is not remembered, and strangers share one', async () => {
  const { secret } = await connect('kratos')
  const hash = hashDeliveryKey(secret)
  let reads = 0
  const store = {
    findAppBySlug: service.store.findAppBySlug,
    listAuthHookSecrets: (...asked: Parameters<typeof service.store.listAuthHookSecrets>) =>
      reads++ === 0 ? Promise.reject(new StoreUnavailable('one failure')) : service.store.listAuthHookSecrets(...asked),
  }
  const secrets = new AuthHookSecrets(store, service.config.ring)
  const find = () => secrets.find('acme', 'kratos', (each) => each.hash === hash)
  await assert.rejects(find(), { name: 'StoreUnavailable' })
  assert.equal((await find())?.hash, hash)
  const stranger = () => secrets.find('acme', 'kratos', () => false)
  await Promise.all(Array.from({ length: 50 }, stranger))
  assert.ok(reads <= 3, `${reads}`)
})

test('a new secret works within a second, though another one is remembered', async () => {
  await connect('logto')
  const secrets = new AuthHookSecrets(service.store, service.config.ring)
  assert.equal(await secrets.find('acme', 'logto', () => false), null)
  const hash = hashDeliveryKey((await connect('logto')).secret)
  await eventually(() => secrets.find('acme', 'logto', (each) => each.hash === hash), 3000)
})

test('a name that strangers make up is looked up once', async () => {
  await connect('kratos')
  const asked: string[] = []
  const store = {
    findAppBySlug: (slug: string) => {
      asked.push(`app ${slug}`)
      return service.store.findAppBySlug(slug)
    },
    listAuthHookSecrets: (...given: Parameters<typeof service.store.listAuthHookSecrets>) => {
      asked.push('secrets')
      return service.store.listAuthHookSecrets(...given)
    },
  }
  const secrets = new AuthHookSecrets(store, service.config.ring)
  for (let n = 0; n < 50; n++) await secrets.find('nobody', 'kratos', () => true)
  assert.deepEqual(asked, ['app nobody'])
})

test('a fault of ours is a bug, and no outage of the database', async () => {
  const { secret } = await connect('kratos')
  const store = { ...service.store, findAppBySlug: () => Promise.reject(new TypeError('ours')) }
  const { events, post } = newListener({ store })
  assert.equal((await post('/kratos/acme', secret)).statusCode, 500)
  assert.ok(events.includes('bug') && !events.includes('store_unavailable'), events.join())
})

test('a listener that stops takes no more calls', async () => {
  const { secret } = await connect('kratos')
  const answer = await newListener({ isStopping: () => true }).post('/kratos/acme', secret)
  assert.equal(answer.statusCode, 503)
  assert.equal(answer.headers['retry-after'], '5')
})

test('below the path of its address, or stripped of it by a proxy, a call comes to one place', async () => {
  const { secret } = await connect('kratos')
  const { post, listener } = newListener({ basePath: '/postern/hooks' })
  assert.equal((await post('/postern/hooks/kratos/acme', secret)).statusCode, 200)
  assert.equal((await post('/kratos/acme', secret)).statusCode, 200)
  assert.equal((await post('/other/kratos/acme', secret)).statusCode, 404)
  const get = await listener.inject({ method: 'GET', url: '/postern/hooks/kratos/acme?x=y' })
  assert.deepEqual([get.statusCode, get.headers.allow], [405, 'POST'])
  for (const url of ['/hanko/acme', '/', '/postern/hooks/acme'])
    assert.equal((await listener.inject({ method: 'GET', url })).statusCode, 404, url)
  assert.equal((await post('/hanko/acme', secret)).statusCode, 404)
})

test('a body that is too large, or no UTF-8, is refused and not read', async () => {
  const { secret } = await connect('kratos')
  const refused = async (body: string | Uint8Array) => {
    const { status, text } = await postRaw('/kratos/acme', body, { authorization: `Bearer ${secret}` })
    return `${status} ${/"code":"(\w+)"/.exec(text)?.[1]}`
  }
  const padded = (bytes: number) => JSON.stringify(notice).padEnd(bytes)
  assert.equal(await refused(padded(32 * 1024)), '200 undefined')
  assert.equal(await refused(padded(32 * 1024 + 1)), '400 invalid_body')
  const zitadel = (await connect('zitadel')).secret
  const signed = (bytes: number) => {
    const text = JSON.stringify(sample('zitadel', 'user.human.password.changed')).padEnd(bytes)
    return postRaw('/zitadel/acme', text, sign('zitadel', zitadel, text, service.store.now()))
  }
  await eventually(async () => (await signed(64 * 1024)).status === 200)
  assert.equal((await signed(64 * 1024 + 1)).status, 400)
  const odd = JSON.stringify({ ...notice, extra: 'é' })
  assert.equal(await refused(Buffer.from(odd, 'latin1')), '400 invalid_body')
  assert.equal(await refused(Buffer.from(odd)), '200 undefined')
})

test('over a limit the answer says when to try again, as each system reads it', async () => {
  const limits = { ...authHookSettings.limits, keyPerMinute: 1 }
  const { app } = await newApp('limited', { limits })
  const send = async (name: 'kratos' | 'supabase', body: object) => {
    const { secret } = await connect(name, app)
    assert.equal((await call(name, secret, body, 'limited')).status, 200)
    const { status, headers, text } = await call(name, secret, body, 'limited')
    const seconds = Number(headers.get('retry-after'))
    assert.ok(seconds > 0 && seconds <= 60, `${seconds}`)
    return { status, text }
  }
  assert.equal((await send('kratos', notice)).status, 429)
  const supabase = await send('supabase', sample('supabase', 'password_changed_notification'))
  assert.equal(supabase.status, 200)
  assert.match(supabase.text, /"http_code":429,"message":"postern: key_rate_limited/)
})

test('a change of address of which one email is refused queues none', async () => {
  const body = JSON.parse(
    JSON.stringify(sample('supabase', 'email_change')).replaceAll('auth.example.com', 'auth.acme.test'),
  ) as { user: object }
  const { secret } = await connect('supabase')
  // The second email goes to the current address.
  const broken = { ...body, user: { ...body.user, email: 'no address' } }
  const count = async () => (await listEmails(service.store, { limit: 500 })).length
  const before = await count()
  const { text } = await call('supabase', secret, broken)
  const [, id = ''] = /"http_code":422,"message":"postern: invalid_body \((req_\w+)/.exec(text) ?? []
  assert.equal(service.log.filter((line) => line.includes(id)).length, 1, text)
  assert.equal(await count(), before)
  assert.equal((await call('supabase', secret, body)).text, '{}')
  assert.equal(await count(), before + 2)
})

async function startAcme(t: TestContext, more: Variables = {}) {
  const env = {
    ...(await serveEnvironment(t)),
    POSTERN_AUTH_HOOKS_LISTEN: '127.0.0.1:0',
    POSTERN_SMTP_URL: 'smtp://127.0.0.1:9',
    ...more,
  }
  await newAcme(env)
  return env
}

type Connected = { url: string }

test('hooks go on while keys of the ring are replaced, and below the path of their address', async (t) => {
  const [old, fresh] = [newSecretKey('old'), newSecretKey('new')]
  const env = await startAcme(t, {
    POSTERN_SECRET_KEYS: old,
    POSTERN_AUTH_HOOKS_URL: 'https://acme.test/postern/hooks/',
  })
  const secret = 'a-signing-key-of-zitadel'
  const connected = await posternJson<Connected>(env, ['auth-hook', 'connect', 'acme', 'zitadel'], {
    input: secret,
  })
  assert.equal(connected.url, 'https://acme.test/postern/hooks/zitadel/acme')
  for (const ring of [old, `${fresh},${old}`, fresh]) {
    const running = await serveHere(t, { ...env, POSTERN_SECRET_KEYS: ring })
    const body = JSON.stringify(sample('zitadel', 'user.human.password.changed'))
    const headers = sign('zitadel', secret, body, Date.now())
    for (const path of ['', '/postern/hooks'])
      assert.equal(
        (await fetch(`${running.urls.authHooks}${path}/zitadel/acme`, { method: 'POST', headers, body })).status,
        200,
        ring.replace(/:.*/, ''),
      )
    await running.stop()
  }
  const last = { ...env, POSTERN_SECRET_KEYS: fresh }
  assert.match((await postern(last, ['auth-hook', 'list', 'acme'])).out, /^zitadel +last used/m)
  await posternJson(last, ['auth-hook', 'connect', 'acme', 'zitadel'], { input: `${secret}-2` })
  assert.match((await postern(last, ['auth-hook', 'list', 'acme'])).out, /^zitadel +not used yet/m)
})

test('a link with no sealed part, or with two, is unknown', async () => {
  for (const query of ['', '?token=', '?token=a&token=b', '?token[]=a'])
    assert.equal((await fetch(`${service.urls.links}/acme/go${query}`)).status, 404, query)
})

test('a store that is away is 503, also to strangers, and the log says why', async () => {
  const { secret } = await connect('supabase')
  const body = sample('supabase', 'password_changed_notification')
  await eventually(async () => (await call('supabase', secret, body)).status === 200)
  await service.store.close()
  const answer = await call('supabase', secret, body)
  assert.equal(answer.status, 503)
  assert.match(answer.text, /"http_code":503,"message":"postern: queue_unavailable/)
  const seconds = Number(answer.headers.get('retry-after'))
  assert.ok(seconds >= 1 && seconds <= 5, `${seconds}`)
  const stranger = await postRaw('/logto/nobody', '{}', { authorization: `Bearer ${newAuthHookSecret()}` })
  assert.equal(stranger.status, 503)
  assert.equal(stranger.headers.get('retry-after'), '5')
  const ids = [answer.text, stranger.text].map((text) => /req_\w+/.exec(text)?.[0] ?? 'none')
  for (const id of ids)
    assert.ok(
      service.log.some((line) => line.includes('the store failed when asked') && line.includes(id)),
      id,
    )
})
