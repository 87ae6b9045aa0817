/**
 * Row 18: the wall clock jumps under a running service (libfaketime; the monotonic clock does not). And a
 * clock that is an hour off, at relays that take signed requests.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { sendJson, startApiServer } from '../support/api-server.ts'
import { newAcme, postern, runProcess, serveEnvironment, spawnServe, startServe } from '../support/cli.ts'
import { lacking, toolPath } from '../support/installed.ts'
import { postgresUrl } from '../support/postgres.ts'
import { reportCounts } from '../support/row-reporter.ts'
import { send, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { type Scope, temporaryFolder } from '../support/temporary.ts'
import { applicationKey, secret, serviceAccount, startTokenServer } from '../support/token-server.ts'
import { eventually } from '../support/wait.ts'

const day = 86_400_000
const jumps = [1, -1, 2, -2, 0]

/** Replaces the file atomically: libfaketime reads it whenever a process asks for the time. */
function setClock(file: string, days: number): void {
  writeFileSync(`${file}.new`, `${days < 0 ? '' : '+'}${days}d`)
  renameSync(`${file}.new`, file)
}

async function jumpAbout(t: TestContext, databaseUrl: string, followed: boolean): Promise<void> {
  const clock = join(temporaryFolder(t), 'clock')
  setClock(clock, 0)
  const { received, port } = await startSmtpServer(t)
  const { env, key, child } = await startServe(t, {
    POSTERN_DATABASE_URL: databaseUrl,
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}`,
  })
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  const server = await spawnServe(t, {
    ...env,
    LD_PRELOAD: toolPath('faketime'),
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  })
  for (const [i, days] of jumps.entries()) {
    setClock(clock, days)
    // The same recipient and key each time: no jump may lock them out.
    const body = validBody({}, Date.now() + (followed ? days * day : 0))
    const answer = await send(`${server.api}/v1/email`, JSON.stringify(body), {
      authorization: `Bearer ${key}`,
    })
    assert.equal(answer.status, 202, `${days} days: ${JSON.stringify(answer.body)}`)
    await eventually(() => received.length === i + 1)
  }
  assert.doesNotMatch(server.output(), /expired|lost|a bug/)
  const { out } = await postern(env, ['email', 'list', '--json'])
  const states = (JSON.parse(out) as { state: string }[]).map(({ state }) => state)
  assert.deepEqual(states, Array(jumps.length).fill('delivered'))
  reportCounts(t, { tried: jumps.length, lost: 0, duplicated: received.length - jumps.length })
}

const skip = lacking('faketime')

test('row 18: the wall clock jumps days under a running service, SQLite: it follows, and mail flows', {
  skip,
}, async (t) => {
  await jumpAbout(t, `sqlite:${join(temporaryFolder(t), 'postern.db')}`, true)
})

test('row 18: the wall clock jumps days under a running service, PostgreSQL: the database’s counts, and mail flows', {
  skip,
}, async (t) => {
  await jumpAbout(t, await postgresUrl(t), false)
})

/** An SES that looks at the time of a signature. */
const startSes = (t: Scope) =>
  startApiServer(t, ({ headers }, response) => {
    const [, ...parts] = /^(....)(..)(..)T(..)(..)(..)Z$/.exec(String(headers['x-amz-date'])) ?? []
    const [year = 0, month = 0, ...rest] = parts.map(Number)
    const isInTime = Math.abs(Date.now() - Date.UTC(year, month - 1, ...rest)) < 300_000
    if (isInTime) return sendJson(response, 400, { message: 'no' }, { 'x-amzn-errortype': 'MessageRejected' })
    sendJson(
      response,
      403,
      { message: 'Signature not in its time' },
      { 'x-amzn-errortype': 'InvalidSignatureException' },
    )
  })

/** Relays whose accounts are proven in each way, by the name that the check of each begins with. */
async function startRelays(t: Scope) {
  const { isValid, tokenUrl } = await startTokenServer(t)
  const smtp = await startSmtpServer(t, {
    authOptional: false,
    allowInsecureAuth: true,
    authMethods: ['XOAUTH2'],
    onAuth: async ({ accessToken = '', username = '' }, _session, done) =>
      done(null, (await isValid(accessToken)) ? { user: username } : { data: { status: '401' } }),
  })
  const [ses, gmail] = [
    await startSes(t),
    await startApiServer(t, (_asked, response) =>
      sendJson(response, 400, { error: { code: 400, message: 'no', status: 'INVALID_ARGUMENT' } }),
    ),
  ]
  const folder = temporaryFolder(t)
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    return `file:${join(folder, name)}`
  }
  const { email, key, keyId } = serviceAccount
  const robot = write('robot.json', JSON.stringify({ client_email: email, private_key: key, private_key_id: keyId }))
  const bySmtp = `smtp://no-reply%40acme.test@127.0.0.1:${smtp.port}?oauth=${tokenUrl}&scope=mail`
  return {
    received: smtp.received,
    bySecret: `${bySmtp}&client=by-secret&secret=${secret}`,
    signed: [
      `${bySmtp}&client=by-key&key=${write('key.pem', applicationKey)}`,
      `gmail://no-reply@acme.test?oauth=${tokenUrl}&scope=mail&key=${robot}&endpoint=${gmail.url}`,
      `ses://AKID:the-secret-key@eu-west-1?endpoint=${ses.url}`,
    ],
  }
}

test('a clock that is an hour off: tokens by secret work, and refused signatures are explained', {
  skip,
}, async (t) => {
  const { bySecret, received, signed } = await startRelays(t)
  const env = { ...(await serveEnvironment(t)), POSTERN_SMTP_URL: [bySecret, ...signed].join(' ') }
  const key = await newAcme(env)
  const check = async (offset: string) => {
    const shifted = { LD_PRELOAD: toolPath('faketime'), FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: '1' }
    const { out } = await runProcess({ ...env, ...shifted }, ['doctor', '--json'])
    const { findings } = JSON.parse(out) as { findings: { check: string; ok: boolean; detail: string }[] }
    return findings.filter((finding) => finding.check.startsWith('relay '))
  }
  for (const { detail, ok } of await check('+0')) {
    assert.ok(ok, detail)
    assert.doesNotMatch(detail, new RegExp(`${secret}|by-secret|the-secret-key`))
  }
  for (const [offset, difference] of [
    ['+3600', 'ahead'],
    ['-3600', 'behind'],
  ] as const) {
    const [first, ...others] = await check(offset)
    assert.match(first?.detail ?? '', /^answers .* and takes the token \(client by-s…, 60 min left\)$/)
    assert.equal(others.length, signed.length)
    for (const { detail, ok } of others) {
      assert.equal(ok, false, detail)
      assert.match(detail, new RegExp(`the clock of this machine is \\d+ min ${difference}`))
    }
  }
  const shifted = { LD_PRELOAD: toolPath('faketime'), FAKETIME: '+3600', FAKETIME_DONT_FAKE_MONOTONIC: '1' }
  const server = await spawnServe(t, { ...env, ...shifted, POSTERN_SMTP_URL: bySecret })
  const body = JSON.stringify(validBody({}, Date.now() + 3_600_000))
  assert.equal((await send(`${server.api}/v1/email`, body, { authorization: `Bearer ${key}` })).status, 202)
  await eventually(() => received.length === 1)
})
