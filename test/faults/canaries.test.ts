/**
 * Row 46 on real processes: emails with marked recipients, tokens, names and keys end in every way, with
 * a relay that repeats the marks in its replies. Then each place that could hold a mark is searched.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { FeedbackProvider } from '../../src/domain/delivery/feedback.ts'
import type { HookSystemName } from '../../src/domain/hooks/hook-settings.ts'
import { findSystem } from '../../src/domain/hooks/systems.ts'
import { postern, posternJson, type RunningPostern, startServe, type Variables } from '../support/cli.ts'
import { sign } from '../support/hooks.ts'
import { runSql, startPostgres } from '../support/postgres.ts'
import { send, validBody } from '../support/service.ts'
import { startScriptedServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'
import { newSecrets, readPayload, signCall, writeKeys } from '../support/webhooks.ts'

const echoed = '<canary-recipient@example.com> https://app.acme.test/auth?token=canary-token'

async function post(server: RunningPostern, change: object, idempotencyKey = 'canary-idempotency-key') {
  const answer = await send(`${server.api}/v1/email`, JSON.stringify(validBody({ ...change })), {
    authorization: `Bearer ${server.key}`,
    'idempotency-key': idempotencyKey,
  })
  return { status: answer.status, text: JSON.stringify(answer.body) }
}

const marked = {
  to: 'canary-recipient@example.com',
  url: 'https://app.acme.test/auth?token=canary-token',
  type: 'organisation_invite',
  organisationName: 'canary-organisation',
  inviterName: 'canary-inviter',
}

const withCode = { to: marked.to, url: marked.url, type: 'magic_link', code: 'CANARY-C0DE' }
const saidCode = `${echoed} CANARY-C0DE canaryc0de`

/** A service with a relay that refuses the first email, defers the second, and repeats what it got. */
async function startMarked(
  t: TestContext,
  { databaseUrl, said, more = {} }: { databaseUrl: string; said: string; more?: Variables },
): Promise<RunningPostern & { readonly messages: readonly string[] }> {
  const relay = await startScriptedServer(t, (connection) => ({
    rcpt: [`550 5.7.1 no ${said}`, `450 4.2.0 later ${said}`][connection] ?? '250 ok',
    dot: `250 ok ${said}`,
  }))
  const server = await startServe(t, {
    POSTERN_SMTP_URL: `smtp://canary-user:canary-password@127.0.0.1:${relay.port}?connections=1`,
    POSTERN_DATABASE_URL: databaseUrl,
    POSTERN_LOG_LEVEL: 'debug',
    ...more,
  })
  await posternJson(server.env, ['app', 'update', 'acme', '--allow-codes'])
  return { ...server, messages: relay.messages }
}

/** Sends emails that end failed, deferred and delivered. */
async function endInEveryWay(server: RunningPostern, sendNumber: (n: number) => Promise<void>) {
  const states = async () => {
    const { out } = await postern(server.env, ['email', 'list', '--json'])
    return (JSON.parse(out) as { state: string }[])
      .map(({ state }) => state)
      .sort()
      .join()
  }
  // A deferred email is sent again, and may be delivered before its state is read.
  const wanted = [/^failed$/, /^(deferred|delivered),failed$/, /^(deferred|delivered),delivered,failed$/]
  for (const [n, expected] of wanted.entries()) {
    await sendNumber(n)
    await eventually(async () => expected.test(await states()))
  }
}

type Lived = {
  readonly server: RunningPostern
  readonly errors: string
  readonly secrets: readonly string[]
}

/** Emails of an app that end in every way, and requests refused for each part. */
async function live(
  t: TestContext,
  databaseUrl: string,
  { email, said }: { email: object; said: string },
): Promise<Lived> {
  const server = await startMarked(t, { databaseUrl, said })
  await endInEveryWay(server, async (n) =>
    assert.equal((await post(server, email, `canary-${n}`)).status, 202),
  )
  const refused = [
    await post(server, { ...marked, url: 'https://evil.test/?token=canary-token' }),
    await post(server, { ...marked, type: 'canary-type' }),
    await post(server, { ...marked, to: 'canary-recipient@' }),
    await post({ ...server, key: `${server.key.slice(0, -1)}_canary` }, marked),
    await post(server, { ...marked, organisationName: `canary-organisation${'!'.repeat(500)}` }),
    await post(server, { ...marked, expiresAt: '2020-01-01T00:00:00Z' }),
    await post(server, { ...withCode, code: 'CANARY C0DE' }),
  ]
  assert.deepEqual(
    refused.map(({ status }) => status),
    [403, 400, 400, 401, 400, 400, 400],
  )
  return { server, errors: refused.map(({ text }) => text).join('\n'), secrets: [server.key] }
}

const hookLink =
  'https://auth.acme.test/recovery?flow=canary-flow&token=canary-token&return_to=https%3A%2F%2Fapp.acme.test%2Fcanary-redirect'

/** The same for calls of auth servers: one sends its secret, another one signs with it. */
async function liveHooks(t: TestContext, databaseUrl: string): Promise<Lived> {
  const server = await startMarked(t, {
    databaseUrl,
    said: `${saidCode} ${hookLink}`,
    more: { POSTERN_HOOKS_LISTEN: '127.0.0.1:0', POSTERN_LINKS_BASE_URL: 'https://links.acme.test' },
  })
  await posternJson(server.env, ['app', 'update', 'acme', '--allow-url', 'https://auth.acme.test'])
  const { secret } = await posternJson<{ secret: string }>(server.env, ['hook', 'connect', 'acme', 'kratos'])
  const webhook = (await posternJson<{ secret: string }>(server.env, ['hook', 'connect', 'acme', 'supabase']))
    .secret
  const signing = 'canary-signing-key-of-zitadel'
  await posternJson(server.env, ['hook', 'connect', 'acme', 'zitadel'], { input: signing })
  const call = async (path: string, body: object, key: string) => {
    const text = JSON.stringify(body)
    const system = path.split('/', 1)[0] as HookSystemName
    const headers = sign(system, key, text, Date.now())
    const answer = await fetch(`${server.hooks}/${path}`, { method: 'POST', headers, body: text })
    return { status: answer.status, text: await answer.text() }
  }
  const sample = findSystem('zitadel')?.sample('user.human.password.code.added') as ZitadelCall
  const signed = (url: string) => ({
    ...{ contextInfo: { ...sample.contextInfo, recipientEmailAddress: marked.to } },
    ...{ templateData: { ...sample.templateData, url }, args: { ...sample.args, code: 'CANARY-C0DE' } },
  })
  const mail = { to: marked.to, url: hookLink, code: 'CANARY-C0DE', minutes: 60 }
  const sent = { ...mail, template: 'verification_code_valid' }
  const magic = findSystem('supabase')?.sample('magiclink') as SupabaseCall
  const asked = {
    user: { ...magic.user, email: marked.to },
    email_data: {
      ...{ ...magic.email_data, token: 'CANARY-C0DE', token_hash: 'canary-token' },
      redirect_to: 'https://app.acme.test/canary-redirect',
    },
  }
  const sends = [
    () => call('kratos/acme', sent, secret),
    () => call('zitadel/acme', signed(hookLink), signing),
    () => call('kratos/acme', { ...sent, url: `${hookLink}&n=2` }, secret),
  ]
  await endInEveryWay(server, async (n) => assert.equal((await sends[n]?.())?.status, 200))
  const refused = [
    await call('kratos/acme', { ...sent, url: hookLink.replace('auth.acme', 'evil') }, secret),
    await call('kratos/acme', { ...sent, template: 'canary-type' }, secret),
    await call('kratos/acme', { ...sent, to: 'canary-recipient@' }, secret),
    await call('kratos/acme', sent, `${secret.slice(0, -1)}_canary`),
    await call('zitadel/acme', signed(hookLink), `${signing}!`),
    await call('zitadel/acme', signed(hookLink.replace('auth.acme', 'evil')), signing),
    // Nothing says where its links lead.
    await call('supabase/acme', asked, webhook),
  ]
  assert.deepEqual(
    refused.map(({ status }) => status),
    [403, 400, 400, 401, 401, 403, 200],
  )
  assert.match(refused.at(-1)?.text ?? '', /"http_code":422/)
  const base64 = webhook.slice('v1,whsec_'.length)
  const encoded = [Buffer.from(signing), Buffer.from(base64, 'base64')].flatMap((bytes) =>
    (['base64url', 'hex', 'latin1'] as const).map((form) => bytes.toString(form)),
  )
  const secrets = [secret, base64, ...encoded]
  return { server, errors: refused.map(({ text }) => text).join('\n'), secrets }
}

/** The same for webhooks of mail providers, whose replies name the recipient and its link. */
async function liveWebhooks(t: TestContext, databaseUrl: string): Promise<Lived> {
  const own = { ...newSecrets(), basic: 'postern:canary-password-of-webhooks', mailgun: 'canary-signing-key' }
  const more = { POSTERN_FEEDBACK_LISTEN: '127.0.0.1:0', POSTERN_FEEDBACK_KEYS: writeKeys(own) }
  const server = await startMarked(t, { databaseUrl, said: echoed, more })
  await endInEveryWay(server, async (n) =>
    assert.equal((await post(server, marked, `canary-${n}`)).status, 202),
  )
  const reference = /^X-Entity-Ref-ID: (\S+)/im.exec(server.messages.at(-1) ?? '')?.[1] ?? ''
  const call = async (provider: FeedbackProvider, name: string, secrets = own) => {
    const payload = JSON.stringify(readPayload(provider, name, { reference, to: marked.to }))
    const body = JSON.parse(payload.replaceAll('https://help.example.com/?token=4711', marked.url))
    const { headers, text } = signCall(provider, secrets, { body, atMs: Date.now() })
    const answer = await fetch(`${server.feedback}/feedback/${provider}`, {
      method: 'POST',
      headers,
      body: text,
    })
    return { status: answer.status, text: await answer.text() }
  }
  assert.match((await call('mailgun', 'failed-permanent')).text, /"recorded":1/)
  assert.match((await call('generic', 'delayed')).text, /"recorded":1/)
  const answers = [
    await call('postmark', 'bounce'),
    await call('sendgrid', 'bounce'),
    await call('brevo', 'deferred'),
    await call('resend', 'hard-bounce'),
    await call('postmark', 'bounce', { ...own, basic: 'postern:canary-password' }),
    await call('resend', 'hard-bounce', newSecrets(2)),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 401, 401],
  )
  const errors = answers.map(({ text }) => text).join('\n')
  return { server, errors, secrets: [server.key, own.resend, own.sendgridPublic] }
}

type SupabaseCall = { user: object; email_data: object }
type ZitadelCall = { contextInfo: object; templateData: object; args: object }

const marks =
  /_canary|CANARY.?C0DE|canaryc0de|canary-(recipient|token|organisation|inviter|idempotency|\d|password|type|flow|redirect|signing)/

function filesUnder(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  return files.map((entry) => join(entry.parentPath, entry.name))
}

function assertUnmarked(place: string, text: string, secrets: readonly string[]): void {
  const [mark] = marks.exec(text) ?? []
  assert.equal(mark, undefined, `${mark} in ${place}`)
  for (const secret of secrets) assert.ok(!text.includes(secret), `a key or secret in ${place}`)
}

async function lookEverywhere({ server, errors, secrets }: Lived, folder: string): Promise<void> {
  const metrics = await fetch(`${server.ops}/metrics`)
  const proc = `/proc/${server.child.pid}`
  const places = {
    'the log': server.output(),
    'the errors': errors,
    'the metrics': await metrics.text(),
    'the command line': readFileSync(`${proc}/cmdline`, 'latin1'),
    'the process title': readFileSync(`${proc}/comm`, 'latin1'),
  }
  assert.match(places['the log'], /delivered/)
  assert.match(places['the metrics'], /postern_/)
  for (const [place, text] of Object.entries(places)) assertUnmarked(place, text, secrets)
  const files = filesUnder(folder).map((path) => ({ path, text: readFileSync(path, 'latin1') }))
  assert.ok(
    files.some(({ text }) => text.includes('refused_by_relay')),
    'the files read are those of the database',
  )
  for (const { path, text } of files) assertUnmarked(path, text, secrets)
}

const lives: Readonly<Record<string, (t: TestContext, databaseUrl: string) => Promise<Lived>>> = {
  'an invitation': (t, url) => live(t, url, { email: marked, said: echoed }),
  'a code': (t, url) => live(t, url, { email: withCode, said: saidCode }),
  'a call of an auth server': liveHooks,
  'a webhook of a mail provider': liveWebhooks,
}

for (const [name, liveOn] of Object.entries(lives)) {
  test(`row 46: no mark of ${name} in log, errors, metrics, process title, files or backup, SQLite`, async (t) => {
    const path = join(temporaryFolder(t), 'postern.db')
    const lived = await liveOn(t, `sqlite:${path}`)
    const backup = await postern(lived.server.env, ['backup', join(dirname(path), 'backup.db')])
    assert.equal(backup.code, 0, backup.err)
    await lookEverywhere(lived, dirname(path))
  })

  test(`row 46: no mark of ${name} in log, errors, metrics, process title or files, PostgreSQL`, async (t) => {
    const cluster = await startPostgres(t)
    const lived = await liveOn(t, cluster.url)
    await runSql(cluster.url, 'checkpoint')
    await lookEverywhere(lived, cluster.folder)
  })
}
