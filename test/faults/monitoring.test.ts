/**
 * The shipped alerts and the dashboard in a real Prometheus, while a relay is stopped and mail goes wrong.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { SMTPServer } from 'smtp-server'
import { parse } from 'yaml'
import { startServe } from '../support/cli.ts'
import { lacking } from '../support/installed.ts'
import { freePort } from '../support/ports.ts'
import { rules, type Sample, startPrometheus } from '../support/prometheus.ts'
import { relayTo, send, startTestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const skip = lacking('prometheus')

/** A relay that can be stopped while its port stays the same. */
async function startRelay(port: number) {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    closeTimeout: 10,
    onData: (stream, _session, callback) => stream.on('end', () => callback()).resume(),
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return { stop: () => new Promise<void>((resolve) => server.close(() => resolve())) }
}

test('a stopped relay raises PosternLinksExpireUnsent, then PosternNoRelay, which ends when it is back', {
  skip,
}, async (t) => {
  const port = await freePort()
  const relay = await startRelay(port)
  const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${port}` })
  const monitor = await startPrometheus(t, server.ops)
  const headers = { authorization: `Bearer ${server.key}` }
  const post = async (n: number, lifeMs: number) => {
    const expiresAt = new Date(Date.now() + lifeMs).toISOString()
    const body = JSON.stringify(validBody({ to: `r${n}@example.com`, expiresAt }))
    assert.equal((await send(`${server.api}/v1/email`, body, headers)).status, 202)
  }
  await post(0, 60_000)
  await eventually(async () => (await monitor.finished('delivered')) === 1)
  await eventually(async () => isDeepStrictEqual(await monitor.alerts(), { firing: [], pending: [] }))
  await relay.stop()
  for (let n = 1; n <= 5; n++) await post(n, 6_000)
  await eventually(async () => (await monitor.finished('expired')) === 5, 60_000)
  await eventually(async () => (await monitor.alerts()).firing.includes('PosternLinksExpireUnsent'), 60_000)
  await post(6, 600_000)
  await eventually(async () => (await monitor.alerts()).firing.includes('PosternNoRelay'), 90_000)
  const again = await startRelay(port)
  t.after(() => again.stop())
  await eventually(async () => (await monitor.finished('delivered')) === 2, 60_000)
  await eventually(async () => !(await monitor.alerts()).firing.includes('PosternNoRelay'))
})

/** The samples that are numbers; null without any. */
const numbersOf = (samples: readonly Sample[]) => {
  const numbers = samples.filter(({ value }) => value[1] !== 'NaN')
  return numbers.length > 0 ? numbers : null
}

type Rules = { groups: { rules: { expr: string }[] }[] }
type Panel = { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }
const dashboard: { panels: Panel[] } = JSON.parse(
  readFileSync(new URL('../../deploy/grafana/postern.json', import.meta.url), 'utf8'),
)
/** The metrics that an expression names. */
const metricsOf = (expression: string) => expression.match(/\b(postern|nodejs|process)_\w+/g) ?? []

test('every panel of the dashboard has data after mail went well and wrong, and every metric exists', {
  skip,
}, async (t) => {
  const answers: Record<string, [number, string]> = {
    deferred: [451, '4.7.1 come back later'],
    failed: [550, '5.1.1 no such user'],
  }
  const relay = await startSmtpServer(t, {
    onRcptTo({ address }, _session, callback) {
      const [code, text] = answers[address.split('@')[0] ?? ''] ?? []
      callback(code === undefined ? null : Object.assign(new Error(text), { responseCode: code }))
    },
  })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const monitor = await startPrometheus(t, service.urls.ops)
  for (const name of ['delivered', 'deferred', 'failed', 'expired'])
    await service.post(validBody({ to: `${name}@example.com` }))
  await service.post({})
  await eventually(async () => (await monitor.finished('delivered')) === 2 && (await monitor.finished('failed')) === 1)
  service.advance(900_000) // the deferred one expires
  await eventually(async () => (await monitor.finished('expired')) === 1)
  const names = new Set(await monitor.names())
  const panels = dashboard.panels.flatMap(({ targets = [], title }) => targets.map(({ expr }) => ({ expr, title })))
  assert.ok(panels.length > 30)
  for (const { expr, title } of panels) {
    for (const name of metricsOf(expr)) assert.ok(names.has(name), `${title}: there is no metric ${name}`)
    const expression = expr.replaceAll('$__rate_interval', '5m')
    const numbers = await eventually(async () => numbersOf(await monitor.query(expression))).catch(() => null)
    assert.ok(numbers !== null, `${title}: ${expr} has no data`)
  }
  const { groups } = parse(readFileSync(rules, 'utf8')) as Rules
  const expressions = groups.flatMap((group) => group.rules.map(({ expr }) => expr))
  for (const name of expressions.flatMap(metricsOf)) assert.ok(names.has(name), `no metric ${name}`)
})
