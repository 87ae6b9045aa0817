/**
 * Row 46 on real processes: emails with marked recipients, tokens, names and keys end in every way, with
 * a relay that repeats the marks in its replies. Then each place that could hold a mark is searched.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findSystem } from '../../src/domain/auth-hooks/auth-hooks.ts'
import { type AuthHookName, sign } from '../support/auth-hooks.ts'
import { postern, posternJson, type RunningPostern, startServe, type Variables } from '../support/cli.ts'
import { attachSdk } from '../support/collector.ts'
import { runSql, startPostgres } from '../support/postgres.ts'
import { type Caller, newSecrets, readPayload, signCall, writeKeys } from '../support/provider-calls.ts'
import { newReader, type Reader } from '../support/reader.ts'
import { send, validBody } from '../support/service.ts'
import { startScriptedServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const echoed = 'https://app.acme.test/auth?token=canary-token'

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

/** Each is in the address of its email. */
const endings = ['expired', 'failed', 'deferred', 'delivered'] as const
type Ending = (typeof endings)[number] | 'cancelled'

const recipientOf = (ending: Ending) => `canary-recipient+${ending}@example.com`

type Marked = {
  readonly server: RunningPostern
  /** The messages that reached the relay. */
  readonly messages: readonly string[]
  readonly spans: readonly string[]
  readonly reader: Reader
  readonly streams: (() => string)[]
}

/** A service with a relay that answers as the recipient says, and repeats what it got. */
async function startMarked(
  t: TestContext,
  { databaseUrl, said, more = {} }: { databaseUrl: string; said: string; more?: Variables },
): Promise<Marked> {
  const answer = (replies: Partial<Record<Ending, string>>) => (socket: Socket) => {
    const [, to = '', ending] =
      /<(.*\+(\w+)@.*)>/.exec(relay.transcript.findLast((line) => line.startsWith('RCPT')) ?? '') ?? []
    socket.write(`${replies[ending as Ending] ?? '250 ok'} <${to}> ${said}\r\n`)
  }
  const later = '450 4.2.0 later'
  const relay = await startScriptedServer(t, {
    rcpt: answer({ failed: '550 5.1.1 no', deferred: later, expired: later }),
    dot: answer({ cancelled: '535 5.7.8 not you' }), // a fault of the relay: after three, mail waits
  })
  const { env, bodies } = await attachSdk(t)
  const server = await startServe(t, {
    POSTERN_SMTP_URL: `smtp://canary-user:canary-password@127.0.0.1:${relay.port}?connections=1`,
    POSTERN_DATABASE_URL: databaseUrl,
    POSTERN_LOG_LEVEL: 'debug',
    ...env,
    ...more,
  })
  await posternJson(server.env, ['app', 'update', 'acme', '--allow-codes'])
  const reader = await newReader(t, server)
  const streams = [await reader.watch('service')]
  return { server, messages: relay.messages, spans: bodies, reader, streams }
}

type Listed = { id: string; state: string; lastReply: string | null }

/** Sends an email for each ending; `send` answers whether it was taken. */
async function endInEveryWay(
  { server, reader, streams }: Marked,
  wanted: readonly (typeof endings)[number][],
  send: (to: string, ending: Ending) => Promise<{ status: number }>,
) {
  const { env } = server
  const find = async (fits: (email: Listed) => boolean) =>
    (await posternJson<Listed[]>(env, ['email', 'list'])).find(fits)
  const takes = async (ending: Ending) => {
    const { status } = await send(recipientOf(ending), ending)
    assert.ok(status === 200 || status === 202, `${ending}: ${status}`)
  }
  for (const ending of wanted) await takes(ending)
  const deferred = await eventually(() => find(({ state }) => state === 'deferred'))
  streams.push(await reader.watch(`email:${deferred.id}`))
  for (const ending of wanted) await eventually(() => find(({ state }) => state === ending))
  await takes('cancelled')
  const { id } = await eventually(() => find(({ lastReply }) => lastReply?.startsWith('535') ?? false))
  await eventually(() => server.output().includes('the relay is unavailable'))
  await eventually(async () => (await postern(env, ['email', 'cancel', id])).code === 0)
}

type Lived = Marked & {
  readonly errors: string
  readonly secrets: readonly string[]
  /** The requests that the service keeps a record of. */
  readonly refusals: number
  /** The outcomes of attempts in spans: calls of auth servers have none. */
  readonly traced: readonly string[]
}

/** Emails of an app that end in every way, and requests refused for each part. */
async function live(
  t: TestContext,
  databaseUrl: string,
  { email, said }: { email: object; said: string },
): Promise<Lived> {
  const started = await startMarked(t, { databaseUrl, said })
  const { server } = started
  await endInEveryWay(started, endings, (to, ending) => {
    const life = ending === 'expired' && { expiresAt: new Date(Date.now() + 5000).toISOString() }
    return post(server, { ...email, to, ...life }, `canary-1-${ending}`)
  })
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
  const errors = refused.map(({ text }) => text).join('\n')
  const traced = ['failed', 'deferred', 'delivered', 'unattempted']
  return { ...started, errors, secrets: [server.key], refusals: 6, traced }
}

const authHookLink =
  'https://auth.acme.test/recovery?flow=canary-flow&token=canary-token&return_to=https%3A%2F%2Fapp.acme.test%2Fcanary-redirect'

/** The same for calls of auth servers: one sends its secret, another one signs with it. */
async function liveAuthHooks(t: TestContext, databaseUrl: string): Promise<Lived> {
  const started = await startMarked(t, {
    databaseUrl,
    said: `${saidCode} ${authHookLink}`,
    more: { POSTERN_AUTH_HOOKS_LISTEN: '127.0.0.1:0', POSTERN_LINKS_BASE_URL: 'https://links.acme.test' },
  })
  const { server } = started
  await posternJson(server.env, ['app', 'update', 'acme', '--allow-url', 'https://auth.acme.test'])
  const { secret } = await posternJson<{ secret: string }>(server.env, ['auth-hook', 'connect', 'acme', 'kratos'])
  const webhook = (await posternJson<{ secret: string }>(server.env, ['auth-hook', 'connect', 'acme', 'supabase']))
    .secret
  const signing = 'canary-signing-key-of-zitadel'
  await posternJson(server.env, ['auth-hook', 'connect', 'acme', 'zitadel'], { input: signing })
  const call = async (path: string, body: object, key: string) => {
    const text = JSON.stringify(body)
    const system = path.split('/', 1)[0] as AuthHookName
    const headers = sign(system, key, text, Date.now())
    const answer = await fetch(`${server.authHooks}/${path}`, { method: 'POST', headers, body: text })
    return { status: answer.status, text: await answer.text() }
  }
  const sample = findSystem('zitadel')?.sample('user.human.password.code.added') as ZitadelCall
  const signed = (url: string, to = marked.to) => ({
    ...{ contextInfo: { ...sample.contextInfo, recipientEmailAddress: to } },
    ...{ templateData: { ...sample.templateData, url }, args: { ...sample.args, code: 'CANARY-C0DE' } },
  })
  const mail = { to: marked.to, url: authHookLink, code: 'CANARY-C0DE', minutes: 60 }
  const sent = { ...mail, template: 'verification_code_valid' }
  const magic = findSystem('supabase')?.sample('magiclink') as SupabaseCall
  const asked = {
    user: { ...magic.user, email: marked.to },
    email_data: {
      ...{ ...magic.email_data, token: 'CANARY-C0DE', token_hash: 'canary-token' },
      redirect_to: 'https://app.acme.test/canary-redirect',
    },
  }
  // The shortest life that auth servers can give is a minute, too long for one to expire.
  await endInEveryWay(started, ['failed', 'deferred', 'delivered'], (to, ending) =>
    ending === 'deferred' || ending === 'cancelled'
      ? call('zitadel/acme', signed(authHookLink, to), signing)
      : call('kratos/acme', { ...sent, to }, secret),
  )
  const refused = [
    await call('kratos/acme', { ...sent, url: authHookLink.replace('auth.acme', 'evil') }, secret),
    await call('kratos/acme', { ...sent, template: 'canary-type' }, secret),
    await call('kratos/acme', { ...sent, to: 'canary-recipient@' }, secret),
    await call('kratos/acme', sent, `${secret.slice(0, -1)}_canary`),
    await call('zitadel/acme', signed(authHookLink), `${signing}!`),
    await call('zitadel/acme', signed(authHookLink.replace('auth.acme', 'evil')), signing),
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
  return { ...started, errors: refused.map(({ text }) => text).join('\n'), secrets, refusals: 5, traced: [] }
}

/** The same for webhooks of mail providers, whose replies name the recipient and its link. */
async function liveWebhooks(t: TestContext, databaseUrl: string): Promise<Lived> {
  const own = { ...newSecrets(), basic: 'postern:canary-password-of-webhooks', mailgun: 'canary-signing-key' }
  const more = { POSTERN_REPORTS_LISTEN: '127.0.0.1:0', POSTERN_REPORTS_KEYS: writeKeys(own) }
  const started = await startMarked(t, { databaseUrl, said: echoed, more })
  const { server, messages } = started
  await endInEveryWay(started, ['failed', 'deferred', 'delivered'], (to, ending) =>
    post(server, { ...marked, to }, `canary-1-${ending}`),
  )
  const to = recipientOf('delivered')
  const delivered = messages.find((message) => message.includes(to)) ?? ''
  const reference = /^X-Entity-Ref-ID: (\S+)/im.exec(delivered)?.[1] ?? ''
  const call = async (provider: Caller, name: string, secrets = own) => {
    const payload = JSON.stringify(readPayload(provider, name, { reference, to }))
    const body = JSON.parse(payload.replaceAll('https://help.example.com/?token=4711', marked.url))
    const { headers, text } = signCall(provider, secrets, { body, atMs: Date.now() })
    const answer = await fetch(`${server.reports}/reports/${provider}`, {
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
  const traced = ['failed', 'deferred', 'delivered', 'unattempted']
  return { ...started, errors, secrets: [server.key, own.resend, own.sendgridPublic], refusals: 0, traced }
}

type SupabaseCall = { user: object; email_data: object }
type ZitadelCall = { contextInfo: object; templateData: object; args: object }

const marks =
  /_canary|CANARY.{0,9}C0DE|canary-(recipient|token|organisation|inviter|idempotency|\d|password|type|flow|redirect|signing)/i

/** In base64, where the text before it is of any length. */
const inBase64 = (word: string): string[] =>
  [0, 1, 2].map((shift) =>
    Buffer.from(' '.repeat(shift) + word)
      .toString('base64')
      .slice(Math.ceil((shift * 4) / 3), Math.floor(((shift + word.length) * 4) / 3)),
  )
const codes = ['CANARY-C0DE', 'CANARYC0DE']
const words = [...codes, ...codes.map((code) => code.toLowerCase()), 'canary-recipient', 'canary-token']
const base64Marks = words.flatMap(inBase64)
const hexMarks = words.map((word) => Buffer.from(word).toString('hex'))

function filesUnder(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.map((entry) => join(entry.parentPath, entry.name))
}

function assertUnmarked(place: string, text: string, secrets: readonly string[]): void {
  const lower = text.toLowerCase()
  const mark =
    marks.exec(text)?.[0] ??
    base64Marks.find((encoded) => text.includes(encoded)) ??
    hexMarks.find((encoded) => lower.includes(encoded))
  assert.equal(mark, undefined, `${mark} in ${place}`)
  for (const secret of secrets) assert.ok(!text.includes(secret), `a key or secret in ${place}`)
}

const placesOfReplies = [/^\/emails\/em_/, /^\/delivery$/, /^\/v1\/emails$/, /^\/v1\/emails\/em_/, /^\/v1\/status$/]

/** Looks at the places that are read through the service. */
async function lookAtReaders({ spans, reader, streams, refusals, secrets, traced }: Lived): Promise<void> {
  const hidden = /(<|&lt;)(code|address|link)(>|&gt;)/
  const shown = await reader.readEverything(refusals)
  for (const [path, text] of shown) assertUnmarked(path, text, secrets)
  for (const place of placesOfReplies)
    assert.ok(
      shown.some(([path, text]) => place.test(path) && hidden.test(text)),
      `a reply is shown at ${place}`,
    )
  await eventually(() => traced.every((outcome) => spans.some((body) => body.includes(`"${outcome}"`))))
  assertUnmarked('the spans', spans.join('\n'), secrets)
  for (const stream of streams) {
    await eventually(() => stream().includes('event: changed'))
    assertUnmarked('a stream', stream(), secrets)
  }
}

async function lookEverywhere(lived: Lived, folder: string): Promise<void> {
  const { server, errors, secrets } = lived
  await lookAtReaders(lived)
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
  'a call of an auth server': liveAuthHooks,
  'a webhook of a mail provider': liveWebhooks,
}

for (const [name, liveOn] of Object.entries(lives)) {
  test(`row 46: no mark of ${name} in log, errors, metrics, spans, pages, process title, files or backup, SQLite`, async (t) => {
    const path = join(temporaryFolder(t), 'postern.db')
    const lived = await liveOn(t, `sqlite:${path}`)
    const backup = await postern(lived.server.env, ['backup', join(dirname(path), 'backup.db')])
    assert.equal(backup.code, 0, backup.err)
    await lookEverywhere(lived, dirname(path))
  })

  test(`row 46: no mark of ${name} in log, errors, metrics, spans, pages, process title or files, PostgreSQL`, async (t) => {
    const cluster = await startPostgres(t)
    const lived = await liveOn(t, cluster.url)
    await runSql(cluster.url, 'checkpoint')
    await lookEverywhere(lived, cluster.folder)
  })
}
