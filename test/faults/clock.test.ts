/** Row 18: the wall clock jumps under a running service (libfaketime; the monotonic clock does not). */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { postern, spawnServe, startServe } from '../support/cli.ts'
import { faketime, lacking } from '../support/installed.ts'
import { postgresUrl } from '../support/postgres.ts'
import { reportCounts } from '../support/row-reporter.ts'
import { send, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { temporaryFolder } from '../support/temporary.ts'
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
    LD_PRELOAD: faketime,
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

const skip = lacking({ faketime })

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
