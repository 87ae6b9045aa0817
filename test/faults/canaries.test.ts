/**
 * Row 46 on real processes: emails with marked recipients, tokens, names and keys end in every way, with
 * a relay that repeats the marks in its replies. Then each place that could hold a mark is searched.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { postern, posternJson, type RunningPostern, startServe } from '../support/cli.ts'
import { runSql, startPostgres } from '../support/postgres.ts'
import { send, validBody } from '../support/service.ts'
import { startScriptedServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const echoed = '<canary-recipient@example.com> https://app.acme.test/auth?token=canary-token'

/** An email, and what the relay repeats of it. */
type Scenario = { readonly email: object; readonly said: string }

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

const invitation: Scenario = { email: marked, said: echoed }
const withCode: Scenario = {
  email: { to: marked.to, url: marked.url, type: 'magic_link', code: 'CANARY-C0DE' },
  said: `${echoed} CANARY-C0DE canaryc0de`,
}

/** Sends emails that end delivered, failed and deferred, and requests refused for each part. */
async function live(
  t: TestContext,
  databaseUrl: string,
  { email, said }: Scenario,
): Promise<{ server: RunningPostern; errors: string }> {
  const relay = await startScriptedServer(t, (connection) => ({
    rcpt: [`550 5.7.1 no ${said}`, `450 4.2.0 later ${said}`][connection] ?? '250 ok',
    dot: `250 ok ${said}`,
  }))
  const server = await startServe(t, {
    POSTERN_SMTP_URL: `smtp://canary-user:canary-password@127.0.0.1:${relay.port}?connections=1`,
    POSTERN_DATABASE_URL: databaseUrl,
    POSTERN_LOG_LEVEL: 'debug',
  })
  await posternJson(server.env, ['app', 'update', 'acme', '--allow-codes'])
  const states = async () => {
    const { out } = await postern(server.env, ['email', 'list', '--json'])
    return (JSON.parse(out) as { state: string }[])
      .map(({ state }) => state)
      .sort()
      .join()
  }
  // A deferred email is sent again, and may be delivered before its state is read.
  const wanted = [/^failed$/, /^(deferred|delivered),failed$/, /^(deferred|delivered),delivered,failed$/]
  for (const [i, expected] of wanted.entries()) {
    assert.equal((await post(server, email, `canary-${i}`)).status, 202)
    await eventually(async () => expected.test(await states()))
  }
  const refused = [
    await post(server, { ...marked, url: 'https://evil.test/?token=canary-token' }),
    await post(server, { ...marked, type: 'canary-type' }),
    await post(server, { ...marked, to: 'canary-recipient@' }),
    await post({ ...server, key: `${server.key.slice(0, -1)}_canary` }, marked),
    await post(server, { ...marked, organisationName: `canary-organisation${'!'.repeat(500)}` }),
    await post(server, { ...marked, expiresAt: '2020-01-01T00:00:00Z' }),
    await post(server, { ...withCode.email, code: 'CANARY C0DE' }),
  ]
  assert.deepEqual(
    refused.map(({ status }) => status),
    [403, 400, 400, 401, 400, 400, 400],
  )
  return { server, errors: refused.map(({ text }) => text).join('\n') }
}

const marks =
  /_canary|CANARY.?C0DE|canaryc0de|canary-(recipient|token|organisation|inviter|idempotency|\d|password|type)/

function filesUnder(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  return files.map((entry) => join(entry.parentPath, entry.name))
}

function assertUnmarked(place: string, text: string, key: string): void {
  const [mark] = marks.exec(text) ?? []
  assert.equal(mark, undefined, `${mark} in ${place}`)
  assert.ok(!text.includes(key), `the delivery key in ${place}`)
}

async function lookEverywhere(
  { server, errors }: Awaited<ReturnType<typeof live>>,
  folder: string,
): Promise<void> {
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
  for (const [place, text] of Object.entries(places)) assertUnmarked(place, text, server.key)
  const files = filesUnder(folder).map((path) => ({ path, text: readFileSync(path, 'latin1') }))
  assert.ok(
    files.some(({ text }) => text.includes('refused_by_relay')),
    'the files read are those of the database',
  )
  for (const { path, text } of files) assertUnmarked(path, text, server.key)
}

for (const [name, scenario] of Object.entries({ 'an invitation': invitation, 'a code': withCode })) {
  test(`row 46: no mark of ${name} in log, errors, metrics, process title, files or backup, SQLite`, async (t) => {
    const path = join(temporaryFolder(t), 'postern.db')
    const lived = await live(t, `sqlite:${path}`, scenario)
    const backup = await postern(lived.server.env, ['backup', join(dirname(path), 'backup.db')])
    assert.equal(backup.code, 0, backup.err)
    await lookEverywhere(lived, dirname(path))
  })

  test(`row 46: no mark of ${name} in log, errors, metrics, process title or files, PostgreSQL`, async (t) => {
    const cluster = await startPostgres(t)
    const lived = await live(t, cluster.url, scenario)
    await runSql(cluster.url, 'checkpoint')
    await lookEverywhere(lived, cluster.folder)
  })
}
