/** Alerts to the operators' receiver, from two processes of one service. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { composeAlerter } from '../../../src/compose/alerts.ts'
import { StoreUnavailable } from '../../../src/store/store.ts'
import { type Asked, startApiServer } from '../../support/api-server.ts'
import { operator } from '../../support/operator.ts'
import { startTestService, testSettings, validBody } from '../../support/service.ts'
import { atEnd, type Scope } from '../../support/temporary.ts'
import { eventually } from '../../support/wait.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const key = Buffer.alloc(32, 7)
const version = '0.0.0'

/** Looks very often, as two processes do. */
function startAlerters(scope: Scope, service: Awaited<ReturnType<typeof startTestService>>) {
  for (let n = 0; n < 2; n++) {
    const alerter = composeAlerter({ ...service, version }, { everyMs: 20 })
    assert.ok(alerter)
    alerter.start()
    atEnd(scope, () => alerter.stop())
  }
}

test('one of two processes posts an alert, signed, when a condition begins and ends; a failed post is repeated', async (t) => {
  const calls: Asked[] = []
  const { url } = await startApiServer(t, (asked, response) => {
    const isOurs = asked.body.includes('daily_limit_near')
    response.writeHead(isOurs && calls.length === 0 ? 503 : 204).end()
    if (isOurs) calls.push(asked)
  })
  const alerts = { url: new URL(url), key }
  const settings = { limits: { ...testSettings.limits, daily: 2 } }
  const service = await startTestService(t, { alerts, settings, roles: new Set(['api', 'console', 'worker']) })
  await service.post(validBody())
  await service.post(validBody({ to: 'other@example.com' }))
  await eventually(async () => (await service.store.readQueueGauge()).depth === 0)
  startAlerters(t, service)
  /** The clock of the service runs fast. */
  const untilCalls = (count: number) =>
    eventually(() => {
      service.advance(2000)
      return calls.length >= count
    })
  await untilCalls(2)
  const [first, again] = calls
  assert.ok(first && again)
  assert.equal(first.headers['webhook-id'], again.headers['webhook-id'])
  assert.equal(first.headers['user-agent'], `Postern/${version}`)
  const body = new Webhook(secret).verify(first.body, first.headers as Record<string, string>) as {
    type: string
    text: string
    data: object
  }
  assert.equal(body.type, 'alert.began')
  assert.match(
    body.text,
    /^Postern, urgent: acme has used all of its 2 emails for today.* http:\/\/postern\.localhost$/i,
  )
  assert.deepEqual(
    [(body.data as { kind: string }).kind, (body.data as { apps: string[] }).apps],
    ['daily_limit_near', ['acme']],
  )
  await eventually(async () => /"pending":\[\]/.test(JSON.stringify(await service.store.findCheck('alerts'))))
  await service.store.updateApp(service.app.id, { settings: testSettings }, operator)
  await untilCalls(3)
  assert.match(calls[2]?.body ?? '', /"alert\.ended".*Over after/)
  assert.equal(calls.length, 3)
})

for (const [way, listApps] of [
  ['refuses', () => Promise.reject(new StoreUnavailable('it is away'))],
  ['hangs', () => new Promise<never>(() => {})],
] as const)
  test(`while the database ${way}, the process says so itself, once`, async (t) => {
    const { asked, url } = await startApiServer(t, (_asked, response) => void response.writeHead(204).end())
    const alerts = { url: new URL(url), key: null }
    const service = await startTestService(t, { alerts: null, roles: new Set(['api']) })
    const away = { ...service.store, listApps }
    const alerter = composeAlerter(
      { ...service, version, store: away, config: { ...service.config, alerts } },
      { everyMs: 20, deadlineMs: 20 },
    )
    assert.ok(alerter)
    alerter.start()
    atEnd(t, () => alerter.stop())
    await eventually(() => {
      service.advance(2000)
      return asked.length > 0
    })
    const [first] = asked
    assert.match(first?.body ?? '', /"alert\.began".*The database does not answer: (it is away|a check took too long)/)
    assert.equal(first?.headers['webhook-signature'], undefined)
  })

test('checks that find nothing new do not write', async (t) => {
  const alerts = { url: new URL('http://localhost:1/'), key: null }
  const service = await startTestService(t, { alerts, roles: new Set(['api']) })
  const counts = { reads: 0, writes: 0 }
  const { findCheck, swapCheck } = service.store
  const store: typeof service.store = {
    ...service.store,
    findCheck(check) {
      counts.reads += 1
      return findCheck(check)
    },
    swapCheck(...change) {
      counts.writes += 1
      return swapCheck(...change)
    },
  }
  const alerter = composeAlerter({ ...service, version, store }, { everyMs: 5 })
  assert.ok(alerter)
  alerter.start()
  atEnd(t, () => alerter.stop())
  await eventually(() => counts.reads >= 5)
  // The first check may have found a condition of this machine.
  assert.ok(counts.writes <= 1, `${counts.writes} writes`)
})
