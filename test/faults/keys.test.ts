/** A key of the ring that is missing or wrong: nothing ends, and the operator reads which key it is. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { newSecretKey } from '../../src/store/crypto/key-ring.ts'
import { postern, type RunningPostern, spawnServe, startServe, type Variables } from '../support/cli.ts'
import { freePort } from '../support/ports.ts'
import { postgresUrl } from '../support/postgres.ts'
import { validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const stop = async ({ child }: Pick<RunningPostern, 'child'>): Promise<void> => {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

let serial = 0
const post = async ({ api }: Pick<RunningPostern, 'api'>, key: string): Promise<number> =>
  (
    await fetch(`${api}/v1/email`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(validBody({ to: `keys${serial++}@example.com` })),
    })
  ).status

/** Six emails that an older key of the ring sealed wait for a relay that is down; the service has stopped. */
async function queueSix(t: TestContext, variables: Variables) {
  const [old, next] = [newSecretKey('old'), newSecretKey('next')]
  const down = { POSTERN_SMTP_URL: `smtp://127.0.0.1:${await freePort()}`, ...variables }
  const first = await startServe(t, { ...down, POSTERN_SECRET_KEYS: old })
  for (let n = 0; n < 6; n++) assert.equal(await post(first, first.key), 202)
  await stop(first)
  // Once with both keys: it seals the key of the hash anew.
  await stop(await spawnServe(t, { ...first.env, POSTERN_SECRET_KEYS: `${next},${old}` }))
  return { old, next, key: first.key, env: first.env }
}

for (const [engine, database] of [
  ['SQLite', async () => ({})],
  ['PostgreSQL', async (t: TestContext) => ({ POSTERN_DATABASE_URL: await postgresUrl(t) })],
] as const)
  test(`row 55: ${engine}: an older key is wrong, then missing, then right: all six emails are delivered`, async (t) => {
    const { old, next, key, env } = await queueSix(t, await database(t))
    const wrong = { ...env, POSTERN_SECRET_KEYS: `${next},${newSecretKey('old')}` }
    const differs = /POSTERN_SECRET_KEYS has a key "old" that is not the key "old" of this database/
    await assert.rejects(spawnServe(t, wrong), differs)
    assert.match((await postern(wrong, ['doctor'])).out, new RegExp(`FAIL {2}database: ${differs.source}`))

    const status = await postern(wrong, ['status'])
    assert.deepEqual([status.code, status.err.trim().split('\n').length], [1, 1])
    assert.match(status.err, differs)

    const missing = { ...env, POSTERN_SECRET_KEYS: next }
    const without = await spawnServe(t, missing)
    await eventually(() => /"key":"old","emails":6,"msg":"emails wait for the key/.test(without.output()))
    const waits = /6 emails wait for the key "old"\. POSTERN_SECRET_KEYS lacks it/
    assert.match((await postern(missing, ['status'])).out, new RegExp(`! keys: ${waits.source}`))
    assert.match((await postern(missing, ['doctor'])).out, new RegExp(`FAIL {2}keys: ${waits.source}`))
    assert.equal(await post(without, key), 202)
    await stop(without)

    const relay = await startSmtpServer(t)
    const right = {
      ...env,
      POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
      POSTERN_SECRET_KEYS: `${next},${old}`,
    }
    await spawnServe(t, right)
    await eventually(() => relay.received.length === 7)
    assert.doesNotMatch((await postern(right, ['status'])).out, /wait for the key/)
  })

test('row 55: PostgreSQL: two nodes, one of which lacks a key: what it cannot open, the other sends at once', async (t) => {
  const relay = await startSmtpServer(t)
  const [old, next] = [newSecretKey('old'), newSecretKey('next')]
  const variables = {
    POSTERN_DATABASE_URL: await postgresUrl(t),
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
  }
  const lacking = await startServe(t, { ...variables, POSTERN_SECRET_KEYS: old })
  // It is not started again with the new key, which is the first of the other one.
  const whole = await spawnServe(t, { ...lacking.env, POSTERN_SECRET_KEYS: `${next},${old}` })
  for (let n = 0; n < 60; n++) assert.equal(await post(n % 2 === 0 ? whole : lacking, lacking.key), 202)
  await eventually(() => relay.received.length === 60)
  assert.equal(new Set(relay.received.map(({ to }) => to[0])).size, 60)
})
