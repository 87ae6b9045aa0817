/** `postern serve` as a process: the lines that it writes, and how it ends. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { startServe } from '../../support/cli.ts'
import { engine } from '../../support/database.ts'
import { send, validBody } from '../../support/service.ts'
import { startSmtpServer } from '../../support/smtp.ts'
import { eventually } from '../../support/wait.ts'

test('log lines are the service’s own, and name the machine on PostgreSQL alone', async (t) => {
  const relay = await startSmtpServer(t)
  const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const headers = { authorization: `Bearer ${server.key}` }
  assert.equal((await send(`${server.api}/v1/email`, JSON.stringify(validBody()), headers)).status, 202)
  await eventually(() => server.output().includes('"status":202'))
  const machine = engine === 'postgres' ? hostname() : undefined
  for (const line of server.output().match(/^{"level".*}$/gm) ?? []) {
    const { level, msg, ...fields } = JSON.parse(line)
    assert.deepEqual([typeof level, typeof msg, fields.machine], ['string', 'string', machine])
    assert.ok(!('pid' in fields || 'reqId' in fields), line)
  }
})

test('SIGTERM: unready at once, still answering, then a clean end', async (t) => {
  const relay = await startSmtpServer(t)
  const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const ready = async () => (await fetch(`${server.ops}/readyz`)).status
  assert.equal(await ready(), 200)
  assert.equal((await fetch(`${server.ops}/livez`)).status, 200)
  assert.match(await (await fetch(`${server.ops}/metrics`)).text(), /^postern_queue_depth 0$/m)
  const exit = once(server.child, 'exit')
  server.child.kill('SIGTERM')
  await eventually(async () => (await ready()) === 503)
  assert.equal(
    (
      await send(`${server.api}/v1/email`, JSON.stringify(validBody()), {
        authorization: `Bearer ${server.key}`,
      })
    ).status,
    202,
  )
  assert.deepEqual(await exit, [0, null])
  assert.doesNotMatch(server.output(), /bug|Error/)
})
