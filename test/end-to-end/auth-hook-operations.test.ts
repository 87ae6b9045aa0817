/** The operations on auth hooks, and the commands for them and for their settings. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { findSystem } from '../../src/domain/auth-hooks/auth-hooks.ts'
import { keysMax } from '../../src/domain/bounds.ts'
import { newSecretKey } from '../../src/store/crypto/key-ring.ts'
import { authHookSettings, sign } from '../support/auth-hooks.ts'
import { newAcme, onlyHere, postern, posternJson, serveEnvironment } from '../support/cli.ts'
import { adminTokens, ask } from '../support/management.ts'
import { operator } from '../support/operator.ts'
import { newSender, startTestService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const service = await startTestService(
  { after },
  { authHooks: true, linksBaseUrl: 'https://links.acme.test', settings: authHookSettings },
)
const admin = await adminTokens(service)
const env = await serveEnvironment({ after })
await newAcme(env)
const signingKey = 'a-signing-key-of-zitadel'
let serial = 0
const newApp = async (settings = authHookSettings) => {
  const slug = `app${serial++}`
  return { slug, ...(await newSender(service, slug, settings)) }
}
const connect = (slug: string, system: string, body: object = {}) =>
  ask(service, `POST /v1/apps/${slug}/auth-hooks/${system}`, { token: admin(), body })
const check = (slug: string, system: string, body: object = {}) =>
  ask(service, `POST /v1/apps/${slug}/auth-hooks/${system}/check`, { token: admin(), body })

/** The status of a notice that Supabase signs. */
async function callSupabase(slug: string, secret: string): Promise<number> {
  const body = JSON.stringify(findSystem('supabase')?.sample('password_changed_notification'))
  const headers = sign('supabase', secret, body, service.store.now())
  const answer = await fetch(`${service.urls.authHooks}/supabase/${slug}`, { method: 'POST', headers, body })
  await answer.text()
  return answer.status
}

test('a secret that was replaced works for its own grace, whatever replaces its successor', async () => {
  const { slug } = await newApp()
  const made = []
  for (const body of [{}, {}, { graceSeconds: 60 }]) {
    const answer = await connect(slug, 'supabase', body)
    await eventually(async () => (await callSupabase(slug, answer.body.secret)) === 200)
    made.push(answer.body)
  }
  const ends = made.map(({ oldExpiresAt }) => (Date.parse(oldExpiresAt) - service.store.now()) / 60_000)
  assert.deepEqual(ends.map(Math.round), [Number.NaN, 24 * 60, 1])
  const statuses = []
  for (const { secret } of made) statuses.push(await callSupabase(slug, secret))
  assert.deepEqual(statuses, [200, 200, 200])
  service.advance(60_000 + 1000)
  const { body } = await ask(service, `GET /v1/apps/${slug}/auth-hooks`, { token: admin() })
  const [supabase] = body.items
  assert.deepEqual(
    supabase.secrets.map(({ id }: { id: string }) => id),
    [made[0].key.id, made[2].key.id],
  )
})

test('after its secret was revoked, an auth server is connected as for the first time', async () => {
  const { slug } = await newApp()
  const first = await connect(slug, 'kratos')
  await service.store.revokeKey(first.body.key.id, operator)
  const { status, body } = await connect(slug, 'kratos')
  assert.deepEqual([status, body.oldExpiresAt, body.key.hook], [201, null, 'kratos'])
})

test('an app with as many keys as it may have gets no secret', async () => {
  const { slug, app } = await newApp()
  const add = (n: number) =>
    service.store.createKey(
      { app: app.id, hash: hashDeliveryKey(newDeliveryKey()), name: `k${n}`, expiresAt: null },
      operator,
    )
  for (let n = 1; n < keysMax; n += 50)
    await Promise.all(Array.from({ length: Math.min(50, keysMax - n) }, (_, more) => add(n + more)))
  const { status, body } = await connect(slug, 'kratos')
  assert.deepEqual([status, body.error.code], [409, 'too_many_keys'])
})

test('a secret is taken from the auth servers that make one, and from no other', async () => {
  const { slug } = await newApp()
  const refused = async (system: string, secret?: string) => {
    const { body, status, text } = await connect(slug, system, secret === undefined ? {} : { secret })
    assert.equal(status, 400, text)
    if (secret !== undefined) assert.ok(!text.includes(secret))
    return body.error.issues.map(({ field, code }: Record<string, string>) => `${field} ${code}`).join()
  }
  assert.equal(await refused('logto', 'anything-of-my-own'), 'secret not_taken')
  assert.equal(await refused('zitadel'), 'secret required')
  assert.equal(await refused('zitadel', 'too-short'), 'secret malformed_secret')
  assert.equal(await refused('supabase', 'whsec_1234'), 'secret malformed_secret')
  assert.equal((await connect(slug, 'zitadel', { secret: signingKey })).body.secret, signingKey)
  assert.equal((await connect(slug, 'hanko')).status, 404)
})

test('a list says for each auth server where it posts and which of its secrets work', async () => {
  const { slug, app } = await newApp()
  const own = { app: app.id, hash: hashDeliveryKey(newDeliveryKey()), name: 'own', expiresAt: null }
  await service.store.createKey(own, operator)
  const { key } = (await connect(slug, 'logto')).body
  const { body } = await ask(service, `GET /v1/apps/${slug}/auth-hooks`, { token: admin() })
  type Item = { system: string; sends: string; url: string; secrets: { id: string }[] }
  const [posting, mailing] = [body.items.slice(0, 4), body.items.slice(4)] as [Item[], Item[]]
  for (const { sends, url } of mailing) assert.deepEqual([sends, url], ['smtp', 'smtp://YOUR-SMTP-ADDRESS'])
  assert.deepEqual(
    posting.map(({ system, url, secrets }: Item) => [system, url, secrets.map(({ id }) => id).join()]),
    ['supabase', 'kratos', 'zitadel', 'logto'].map((system) => [
      system,
      `https://YOUR-AUTH-HOOKS-ADDRESS/${system}/${slug}`,
      system === 'logto' ? key.id : '',
    ]),
  )
  assert.deepEqual([body.listens, body.takesMail], [true, false])
})

test('a check tells type, purpose, link, code and end of each message, and what is wrong', async () => {
  const { slug } = await newApp()
  const { items } = (await check(slug, 'supabase')).body
  const row = (item: Record<string, unknown>) =>
    ['message', 'result', 'type', 'purpose', 'hosted', 'code'].map((name) => item[name]).join(' ')
  assert.deepEqual(items.slice(0, 8).map(row), [
    'signup sent email_verification  true true',
    'magiclink sent magic_link  true true',
    'recovery sent password_reset  true true',
    'invite sent organisation_invite  true false',
    'email_change sent email_verification  true true',
    'email_change sent email_verification address_change true true',
    'reauthentication sent email_verification identity false true',
    'password_changed_notification not_sent   false false',
  ])
  const life = Date.parse(items[0].expiresAt) - service.store.now()
  assert.ok(life > 3_590_000 && life <= 3_600_000, `${life}`)
  const bare = await newApp({ ...authHookSettings, authHooks: {} })
  const logto = (await check(bare.slug, 'logto')).body.items[0]
  assert.deepEqual(
    [logto.refusal.code, ...logto.issues.map(({ field }: { field: string }) => field)],
    ['invalid_body', 'authHooks.logto.pages'],
  )
  const payload = { to: 'secret@example.com', type: 'SURPRISE-4711', payload: { code: '123987' } }
  const odd = await check(slug, 'logto', { payload })
  assert.deepEqual(odd.body.items.map(row), [' refused   false false'])
  assert.doesNotMatch(odd.text, /secret@|4711|123987/)
  assert.equal(odd.body.items[0].refusal.code, 'unsupported_email')
})

const update = (...args: string[]) => postern(env, ['app', 'update', 'acme', ...args])
const settingsOf = async () => (await posternJson<{ authHooks?: object }>(env, ['app', 'show', 'acme'])).authHooks ?? {}

test('options change one setting of authHooks each, keep the others, and an empty one removes', async () => {
  const page = 'https://app.acme.test/code'
  const set = [
    ...[
      '--auth-hook-organisation',
      'zitadel=A = B',
      '--auth-hook-verify-url',
      page,
      '--auth-hook-life',
      'logto.default=900',
    ],
    ...['--auth-hook-page', `zitadel.user.human.email.code.added=${page}`],
  ]
  assert.equal((await update(...set)).code, 0)
  assert.equal((await update('--auth-hook-life', 'logto.SignIn=120')).code, 0)
  const authHooks = {
    supabase: { verifyUrl: page },
    zitadel: { pages: { 'user.human.email.code.added': page }, organisationName: 'A = B' },
    logto: { lifeSeconds: { default: 900, SignIn: 120 } },
  }
  assert.deepEqual(await settingsOf(), authHooks)
  assert.equal((await update('--auth-hook-life', 'logto.SignIn=', '--auth-hook-verify-url', '')).code, 0)
  const { supabase: _, ...rest } = authHooks
  assert.deepEqual(await settingsOf(), { ...rest, logto: { lifeSeconds: { default: 900 } } })
  for (const [wrong, why] of [
    [['--auth-hook-page', 'zitadel=x'], /--auth-hook-page must look like/],
    [['--auth-hook-life', 'logto.default=soon'], /--auth-hook-life is a whole number of seconds/],
    [['--auth-hook-life', 'kratos.default=600'], /Ory Kratos has no such setting/],
    [['--auth-hook-life', 'hanko.default=600'], /hanko/],
  ] as const) {
    const ran = await update(...wrong)
    assert.notEqual(ran.code, 0, wrong.join(' '))
    assert.match(ran.err, why)
  }
  assert.deepEqual(await settingsOf(), { ...rest, logto: { lifeSeconds: { default: 900 } } })
})

test('a secret that the auth server made is read from standard input, without the end of its line', async () => {
  const given = `v1,whsec_${'A'.repeat(44)}`
  const { secret } = await posternJson<{ secret: string }>(
    env,
    ['auth-hook', 'connect', 'acme', 'supabase', '--given'],
    {
      input: `${given}\n`,
    },
  )
  assert.equal(secret, given)
  const logto = await postern(env, ['auth-hook', 'connect', 'acme', 'logto', '--given'], { input: 'mine' })
  assert.match(logto.err, /Logto sends the secret that Postern makes/)
  const again = await postern(env, ['auth-hook', 'connect', 'acme', 'supabase', '--grace', '1h'])
  assert.match(again.out, /secret +v1,whsec_\S+ {2}\(shown only now\)\nold secret +works until /)
  const list = await postern(env, ['auth-hook', 'list', 'acme'])
  assert.match(list.out, /^supabase +not used yet/m)
  assert.match(list.out, /^kratos +not connected/m)
  assert.match(list.out, /set POSTERN_AUTH_HOOKS_URL/)
  const unknown = await postern(env, ['auth-hook', 'connect', 'acme', 'hanko'])
  assert.deepEqual([unknown.code, /does not know "hanko"/.test(unknown.err)], [2, true])
})

test('a payload is read from a file, and one that is none is refused', onlyHere, async () => {
  const folder = temporaryFolder({ after })
  const file = join(folder, 'payload')
  const checkFile = () => postern(env, ['auth-hook', 'check', 'acme', 'kratos', file])
  assert.match((await checkFile()).err, /cannot read/)
  writeFileSync(file, '{')
  assert.match((await checkFile()).err, /not valid JSON/)
  writeFileSync(file, JSON.stringify({ note: 'ö'.repeat(40_000) })) // 80,000 bytes
  assert.match((await checkFile()).err, /the payload has more than 64,512 bytes/)
  writeFileSync(file, JSON.stringify(findSystem('kratos')?.sample('recovery_invalid')))
  const notice = await checkFile()
  assert.deepEqual([notice.code, notice.out.trim()], [0, '--    recovery_invalid: a notice, answered and not sent'])
  writeFileSync(file, JSON.stringify(findSystem('kratos')?.sample('recovery_valid')))
  const refused = await checkFile()
  assert.deepEqual([refused.code, /1 of 1 would be refused/.test(refused.err)], [1, true])
})

test('the status names apps whose mail from auth servers is refused, and the doctor does too', async () => {
  const { slug } = await newApp({ ...authHookSettings, hostedLinks: 'off' })
  await connect(slug, 'kratos')
  const { attention } = (await ask(service, 'GET /v1/status', { token: admin() })).body
  type Condition = { kind: string; apps: string[]; message: string }
  const [found, ...more] = attention.filter(({ kind }: Condition) => kind === 'auth_hook_refused')
  assert.deepEqual([found.apps, more], [[slug], []])
  assert.match(found.message, /Emails of Ory Kratos .* are refused/)
  const { findings } = (await ask(service, 'POST /v1/checks', { token: admin() })).body
  const faults = findings.filter(
    ({ check: name, ok }: { check: string; ok: boolean }) => name === 'auth servers' && !ok,
  )
  assert.deepEqual(
    faults.map(({ detail }: { detail: string }) => detail),
    [found.message],
  )
})

test('the doctor says whose secret the key ring cannot open, and no secret', onlyHere, async () => {
  await posternJson(env, ['auth-hook', 'connect', 'acme', 'zitadel'], { input: signingKey })
  const served = {
    ...env,
    POSTERN_SMTP_URL: 'smtp://127.0.0.1:9',
    POSTERN_LINKS_BASE_URL: 'https://links.acme.test',
  }
  assert.match((await postern(served, ['doctor'])).out, /^ok +auth servers: connected to 1 app; /m)
  // "migrate" seals no secrets anew: "serve" does, when it starts.
  const other = newSecretKey('other')
  await postern({ ...served, POSTERN_SECRET_KEYS: `${other},${env.POSTERN_SECRET_KEYS}` }, ['migrate'])
  const { out } = await postern({ ...served, POSTERN_SECRET_KEYS: other }, ['doctor'])
  assert.match(out, /^FAIL +auth servers: Calls of Zitadel for acme are refused: .* the secret key_\w+\./m)
  assert.ok(!out.includes(signingKey))
})
