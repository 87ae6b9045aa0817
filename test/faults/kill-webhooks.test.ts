/**
 * `kill -9` at random times while reports come in and webhooks go out: each bounce and complaint that the
 * bounce listener answered 250 reaches the receiver of the app. `POSTERN_KILLS` sets the number of kills
 * (15).
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { startService } from '../../src/compose/service.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import { waitingWebhooksMax } from '../../src/domain/bounds.ts'
import { moveClock, newClockOffset } from '../../src/store/shared/clock.ts'
import { posternJson, type RunningPostern, spawnServe, startServe } from '../support/cli.ts'
import { startLoad } from '../support/load.ts'
import { freePort } from '../support/ports.ts'
import { postgresUrl } from '../support/postgres.ts'
import { writeReport } from '../support/reports.ts'
import { reportCounts } from '../support/row-reporter.ts'
import { type Received, startSmtpServer } from '../support/smtp.ts'
import { atEnd, temporaryFolder } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const kills = Number(process.env.POSTERN_KILLS ?? 15)

/** Answers one of fifty messages with 500, and takes the others. */
async function startReceiver(t: TestContext) {
  /** By event, email and recipient: how often it was taken. */
  const taken = new Map<string, number>()
  let calls = 0
  const server = createServer(async (request, response) => {
    const { type, data } = JSON.parse((await request.toArray()).join(''))
    if (++calls % 50 === 0) return response.writeHead(500).end()
    const name = `${type} ${data.emailId} ${data.to}`
    taken.set(name, (taken.get(name) ?? 0) + 1)
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(t, () => server.close())
  return { taken, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

/**
 * Reports each received email, again and again until the listener has answered 250. It stays far below the
 * number of messages that may wait for the receiver, beyond which further ones are lost.
 */
function startReporter(t: TestContext, port: number, received: readonly Received[], countTaken: () => number) {
  const acknowledged: string[] = []
  const state = { on: true }
  const transport = createTransport({ host: '127.0.0.1', port, ignoreTLS: true, connectionTimeout: 2000 })
  const waiting = new Set<number>()
  let seen = 0
  const report = async (n: number): Promise<void> => {
    const { from, to: [recipient = ''] = [] } = received[n] ?? { from: '' }
    const isComplaint = n % 4 === 3
    const raw = isComplaint
      ? `From: fbl@example.net\r\n\r\nFeedback-Type: abuse\r\n\r\nX-Entity-Ref-ID: ${from}\r\n`
      : writeReport({ to: from, recipient })
    try {
      await transport.sendMail({ envelope: { from: '', to: from }, raw })
      const event = isComplaint ? 'complained' : 'bounced'
      const to = isComplaint ? undefined : recipient // complaints do not name it
      acknowledged.push(`email.${event} ${/em_[a-z0-9]{26}/.exec(from)?.[0]} ${to}`)
      waiting.delete(n)
    } catch {
      // Killed, or the email is still in the queue.
    }
  }
  const run = async () => {
    while (state.on) {
      for (; seen < received.length; seen++) waiting.add(seen)
      if (acknowledged.length - countTaken() < waitingWebhooksMax / 2)
        await Promise.all([...waiting].slice(-20).map(report))
      await sleep(10)
    }
  }
  const done = run()
  const stop = () => {
    state.on = false
    return done
  }
  atEnd(t, stop)
  return { acknowledged, stop }
}

async function survive(t: TestContext, databaseUrl: string): Promise<void> {
  const { received, port } = await startSmtpServer(t)
  const receiver = await startReceiver(t)
  const bouncePort = await freePort()
  const server = await startServe(t, {
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}?reserved=send`,
    POSTERN_DATABASE_URL: databaseUrl,
    POSTERN_BOUNCE_ADDRESS: 'bounces@bounce.acme.test',
    POSTERN_BOUNCE_LISTEN: `127.0.0.1:${bouncePort}`,
    POSTERN_APP_WEBHOOKS_PRIVATE: 'yes',
  })
  await posternJson(server.env, ['app', 'update', 'acme', '--webhook-url', receiver.url])
  await posternJson(server.env, ['app-webhook', 'secret', 'acme'])
  const current = { server: server as Omit<RunningPostern, 'key'> }
  const load = startLoad(t, { api: () => current.server.api, key: server.key, clients: 2 })
  const reporter = startReporter(t, bouncePort, received, () => receiver.taken.size)
  for (let kill = 0; kill < kills; kill++) {
    const before = reporter.acknowledged.length
    await eventually(() => reporter.acknowledged.length > before, 60_000)
    await sleep(Math.random() * 400)
    const ended = once(current.server.child, 'exit')
    current.server.child.kill('SIGKILL')
    await ended
    current.server = await spawnServe(t, server.env)
  }
  await Promise.all([load.stop(), reporter.stop()])
  const ended = once(current.server.child, 'exit')
  current.server.child.kill('SIGKILL')
  await ended
  const { acknowledged } = reporter
  const isMissing = (name: string) => !receiver.taken.has(name)
  await sendRest(t, server.env, () => !acknowledged.some(isMissing))
  const lost = acknowledged.filter(isMissing)
  t.diagnostic(`${kills} kills; ${acknowledged.length} reports were answered 250`)
  const duplicated = [...receiver.taken.values()].filter((times) => times > 1).length
  reportCounts(t, { tried: kills, lost: lost.length, duplicated })
  assert.deepEqual(lost, [])
  assert.ok(acknowledged.length >= kills, 'reports came in')
}

/** Messages wait for minutes after a failure, and for the lease of a sender that was killed. */
async function sendRest(t: TestContext, env: Record<string, string>, isDone: () => boolean): Promise<void> {
  const clock = newClockOffset()
  const config = parseConfig({ ...env, POSTERN_LOG_LEVEL: 'error' }, 'serve')
  const { stop } = await startService(config, { onFatal: assert.fail, version: 'test', clock })
  atEnd(t, () => stop())
  const endMs = performance.now() + 120_000
  while (!isDone() && performance.now() < endMs) {
    moveClock(clock, 120_000)
    await sleep(50)
  }
}

const databases = {
  SQLite: async (t: TestContext) => `sqlite:${join(temporaryFolder(t), 'postern.db')}`,
  PostgreSQL: postgresUrl,
}

for (const [engine, databaseUrl] of Object.entries(databases)) {
  test(`${kills} kills, ${engine}: each bounce and complaint that was taken reaches the app`, async (t) => {
    await survive(t, await databaseUrl(t))
  })
}
