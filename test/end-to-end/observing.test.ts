/** Observing from outside: metrics, log lines, request ids. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import type { EmailId } from '../../src/domain/id.ts'
import type { PosternEvent } from '../../src/observe/events.ts'
import { newListener } from '../../src/web/http/listener.ts'
import { lacking } from '../support/installed.ts'
import { operator } from '../support/operator.ts'
import { freePort } from '../support/postfix.ts'
import { relayTo, startTestService, type TestService, validBody } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { eventually } from '../support/wait.ts'

const scrape = async (service: TestService): Promise<string> =>
  (await fetch(`${service.urls.ops}/metrics`)).text()
const valueIn = (metrics: string, name: string): number =>
  Number(new RegExp(`^${name.replace(/[{}]/g, '\\$&')} (.+)$`, 'm').exec(metrics)?.[1])
const lines = (service: TestService) => service.log.map((line) => JSON.parse(line) as Record<string, unknown>)

test('the first scrape shows the age of the oldest email, and the first one after draining shows 0', async (t) => {
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const answer = await service.post(validBody())
  service.advance(300_000)
  const age = valueIn(await scrape(service), 'postern_queue_oldest_age_seconds')
  assert.ok(age >= 300 && age < 330, String(age))
  await service.store.cancelEmail(answer.headers.get('email-id') as EmailId, operator)
  assert.equal(valueIn(await scrape(service), 'postern_queue_oldest_age_seconds'), 0)
  assert.equal(valueIn(await scrape(service), 'postern_queue_depth'), 0)
})

test('the series of the alerts begin at 0, so that an increase shows the first event', async (t) => {
  const metrics = await scrape(await startTestService(t))
  for (const series of [
    'postern_requests_total{status="503",code="queue_unavailable"}',
    'postern_emails_finished_total{state="expired",reason=""}',
    'postern_emails_finished_total{state="failed",reason="refused_by_relay"}',
  ])
    assert.equal(valueIn(metrics, series), 0, series)
})

test('a relay is available from the start, and its fall shows', async (t) => {
  const port = await freePort()
  const service = await startTestService(t, { relays: [relayTo(port)] })
  const name = `postern_relay_available{relay="127.0.0.1:${port}"}`
  assert.equal(valueIn(await scrape(service), name), 1)
  for (let n = 0; n < 4; n++) await service.post(validBody({ to: `r${n}@example.com` }))
  await eventually(async () => valueIn(await scrape(service), name) === 0)
})

test('emails that expire while the relay is down are counted and logged, each once', async (t) => {
  const service = await startTestService(t, { relays: [relayTo(await freePort())] })
  const expiresAt = new Date(service.store.now() + 60_000).toISOString()
  for (let n = 0; n < 5; n++) await service.post(validBody({ to: `r${n}@example.com`, expiresAt }))
  service.advance(60_000)
  await eventually(async () => (await service.store.queueGauge()).depth === 0)
  const expired = 'postern_emails_finished_total{state="expired",reason=""}'
  await eventually(async () => valueIn(await scrape(service), expired) === 5)
  const logged = lines(service).filter(({ state, outcome }) => state === 'expired' || outcome === 'expired')
  assert.equal(
    logged.reduce((sum, { count = 1 }) => sum + Number(count), 0),
    5,
  )
})

test('a relay that is down is one line, not one for each email', async (t) => {
  const service = await startTestService(t, { relays: [relayTo(await freePort())] })
  for (let n = 0; n < 5; n++) await service.post(validBody({ to: `r${n}@example.com` }))
  await eventually(() => service.log.some((line) => line.includes('the relay is unavailable')))
  const loud = lines(service).filter(
    ({ level, msg }) => Number(level) >= 30 && /tried|unavailable/.test(String(msg)),
  )
  assert.equal(loud.length, 1, JSON.stringify(loud))
})

test('the request id of an error finds its log line, which names app, key and reason', async (t) => {
  const service = await startTestService(t, {})
  const url = 'https://evil.test/auth?token=canary-token'
  const { status, body } = await service.post(validBody({ url, to: 'canary@example.com' }))
  assert.equal(status, 403)
  const line = lines(service).find(({ requestId }) => requestId === body.error.requestId)
  assert.deepEqual(
    [line?.status, line?.code, line?.app, line?.key],
    [403, 'url_not_allowed', service.app.id, service.keyId],
  )
  const invalid = await service.post(validBody({ to: 'canary', expiresAt: 'x' }))
  const second = lines(service).find(({ requestId }) => requestId === invalid.body.error.requestId)
  assert.deepEqual(second?.issues, ['to not_an_address', 'expiresAt not_a_timestamp'])
  assert.doesNotMatch(service.log.join('\n'), /canary/)
})

test('accepted and delivered emails leave a line each', async (t) => {
  const relay = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  const id = (await service.post(validBody())).headers.get('email-id')
  await eventually(() => lines(service).some(({ email, outcome }) => email === id && outcome === 'delivered'))
  const accepted = lines(service).find(({ email, status }) => email === id && status === 202)
  assert.match(String(accepted?.requestId), /^req_/)
})

test('a bug is answered 500, with a request id that its event carries', async () => {
  const events: PosternEvent[] = []
  const app = newListener({ emit: (event) => void events.push(event) })
  app.get('/', () => {
    throw new Error('broken')
  })
  const answer = await app.inject({ url: '/', headers: { host: 'x' } })
  assert.equal(answer.statusCode, 500)
  const { requestId } = answer.json().error
  assert.deepEqual(
    events.map((event) => event.kind === 'bug' && event.requestId),
    [requestId],
  )
})

test('promtool finds nothing to complain of', {
  skip: lacking({ promtool: '/usr/bin/promtool' }),
}, async (t) => {
  const service = await startTestService(t, {})
  await service.post(validBody())
  const input = await eventually(async () => {
    const text = await scrape(service)
    return text.includes('outcome="delivered"') ? text : null
  })
  assert.equal(execFileSync('/usr/bin/promtool', ['check', 'metrics'], { input, encoding: 'utf8' }), '')
})
