/** Traces, by the SDK of OpenTelemetry with its exporter in memory. */
import assert from 'node:assert/strict'
import type { Readable } from 'node:stream'
import { test } from 'node:test'
import { propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  AlwaysOnSampler,
  InMemorySpanExporter,
  ParentBasedSampler,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { pino } from 'pino'
import { startService } from '../../src/compose/service.ts'
import { appPolicy } from '../../src/domain/app/app-policy.ts'
import { hashDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { AppPolicyCache } from '../../src/intake/app-policy-cache.ts'
import { moveClock, newClockOffset } from '../../src/store/shared/clock.ts'
import { postEmail } from '../../src/web/api/post-email.ts'
import { newListener } from '../../src/web/http/listener.ts'
import { readBody } from '../../src/web/http/read-body.ts'
import { testDatabase } from '../support/database.ts'
import { ask, newManagementToken } from '../support/management.ts'
import { operator } from '../support/operator.ts'
import { newRing, relayTo, startTestService, validBody } from '../support/service.ts'
import { startScriptedServer, startSmtpServer } from '../support/smtp.ts'
import { atEnd } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

const exporter = new InMemorySpanExporter()
trace.setGlobalTracerProvider(
  new TracerProvider({
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  }),
)
propagation.setGlobalPropagator(new W3CTraceContextPropagator())

const spansOf = (traceId: string) =>
  exporter.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId)
const named = (spans: readonly ReadableSpan[], name: string) => spans.filter((span) => span.name === name)
const parentOf = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId

const client = (digit: string) => ({ traceId: digit.repeat(32), spanId: digit.repeat(16) })
const header = ({ traceId, spanId }: ReturnType<typeof client>, flags = '01') => ({
  traceparent: `00-${traceId}-${spanId}-${flags}`,
})

test('one trace leads from the POST of a client to the 250 of the relay', async (t) => {
  const relay = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  await service.post({}) // the key is known from its first request on
  const caller = client('a')
  const answer = await service.post(validBody({ to: 'canary@example.com' }), header(caller))
  const email = answer.headers.get('email-id')
  await eventually(() => named(spansOf(caller.traceId), 'attempt').length === 1)
  const spans = spansOf(caller.traceId)
  const [request, attempt, submit] = ['POST /v1/email', 'attempt', 'submit'].map((name) => named(spans, name)[0])
  assert.ok(request && attempt && submit)
  assert.deepEqual([request.kind, attempt.kind], [SpanKind.SERVER, SpanKind.CONSUMER])
  assert.equal(parentOf(request), caller.spanId)
  assert.equal(parentOf(attempt), request.spanContext().spanId)
  assert.equal(parentOf(submit), attempt.spanContext().spanId)
  for (const name of ['judge', 'enqueue'])
    assert.ok(named(spans, name).every((span) => parentOf(span) === request.spanContext().spanId))
  assert.deepEqual([named(spans, 'judge').length, named(spans, 'enqueue').length], [1, 1])
  assert.equal(parentOf(named(spans, 'render')[0]), attempt.spanContext().spanId)
  assert.equal(request.attributes['http.response.status_code'], 202)
  assert.deepEqual(
    [request, attempt].map(({ attributes }) => [attributes['messaging.message.id'], attributes['postern.app']]),
    [
      [email, service.app.id],
      [email, service.app.id],
    ],
  )
  assert.equal(submit.attributes['smtp.reply_code'], 250)
  const text = JSON.stringify(spans.map(({ attributes, name }) => ({ attributes, name })))
  assert.doesNotMatch(text, /canary|token|@/)
  const isDelivered = (line: string) => line.includes('"outcome":"delivered"')
  const line = await eventually(() => service.log.find(isDelivered))
  assert.equal(JSON.parse(line).traceId, caller.traceId)
})

test('a retry is a trace of its own, with a link to the request', async (t) => {
  const relay = await startScriptedServer(t, (connection) => (connection === 0 ? { dot: '451 4.7.1 later' } : {}))
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  await service.post({})
  const caller = client('b')
  const answer = await service.post(validBody(), header(caller))
  const email = answer.headers.get('email-id')
  const attempts = () =>
    named(exporter.getFinishedSpans(), 'attempt').filter(
      ({ attributes }) => attributes['messaging.message.id'] === email,
    )
  await eventually(() => attempts().length === 1)
  const token = await newManagementToken(service)
  await eventually(async () => (await ask(service, `POST /v1/emails/${email}/retry`, { token })).status === 200)
  await eventually(() => attempts().length === 2)
  const [first, second] = attempts()
  const [request] = named(spansOf(caller.traceId), 'POST /v1/email')
  assert.equal(first?.spanContext().traceId, caller.traceId)
  assert.equal(first?.attributes['postern.outcome'], 'deferred')
  assert.notEqual(second?.spanContext().traceId, caller.traceId)
  assert.equal(parentOf(second), undefined)
  assert.deepEqual(
    second?.links.map(({ context }) => [context.traceId, context.spanId]),
    [[caller.traceId, request?.spanContext().spanId]],
  )
})

test('a request that its client does not sample leaves no span, also not by its email', async (t) => {
  const relay = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  await service.post({})
  exporter.reset()
  await service.post(validBody(), header(client('c'), '00'))
  await eventually(() => service.log.some((line) => line.includes('"outcome":"delivered"')))
  assert.deepEqual(
    exporter.getFinishedSpans().map(({ name }) => name),
    [],
  )
})

test('a failed email and a store that does not answer mark their spans as errors', async (t) => {
  const relay = await startScriptedServer(t, { rcpt: '550 5.1.1 unknown' })
  const service = await startTestService(t, { relays: [relayTo(relay.port)] })
  await service.post({})
  const [failing, unavailable] = [client('d'), client('e')]
  await service.post(validBody(), header(failing))
  const attempt = await eventually(() => named(spansOf(failing.traceId), 'attempt')[0])
  const [submit] = named(spansOf(failing.traceId), 'submit')
  assert.deepEqual([attempt.status.code, submit?.status.code], [SpanStatusCode.ERROR, SpanStatusCode.ERROR])
  assert.deepEqual(
    [submit?.attributes['smtp.reply_code'], submit?.attributes['smtp.enhanced_code'], submit?.attributes['smtp.stage']],
    [550, '5.1.1', 'recipient'],
  )
  await service.store.close()
  assert.equal((await service.post(validBody(), header(unavailable))).status, 503)
  for (const name of ['POST /v1/email', 'enqueue'])
    assert.equal(named(spansOf(unavailable.traceId), name)[0]?.status.code, SpanStatusCode.ERROR, name)
})

test('a bug in the answer to a request marks its span as an error', async (t) => {
  const { app, key, store } = await startTestService(t, { roles: new Set(['api'] as const) })
  const listener = newListener({ emit: () => {} })
  listener.removeAllContentTypeParsers()
  listener.addContentTypeParser('*', (_request: unknown, stream: Readable) => readBody(stream, 10_000))
  const policies = new AppPolicyCache()
  policies.set(hashDeliveryKey(key), { policy: { ...appPolicy(app), hostedLinks: 'always' }, networks: null })
  const deps = {
    store,
    policies,
    links: { baseUrl: 'https://links.acme.test', seal: () => assert.fail() },
    waitForTurn: () => undefined,
    onQueued: () => {},
    onSuperseded: () => {},
    onSuppressed: () => {},
    isStopping: () => false,
    emit: () => {},
    random: Math.random,
  }
  listener.post('/v1/email', (asked, reply) => postEmail(deps, asked, reply))
  exporter.reset()
  const headers = { host: 'x', authorization: `Bearer ${key}` }
  const payload = validBody()
  assert.equal((await listener.inject({ method: 'POST', url: '/v1/email', headers, payload })).statusCode, 500)
  assert.deepEqual(
    exporter.getFinishedSpans().map(({ name, status }) => [name, status.code]),
    [
      ['judge', SpanStatusCode.ERROR],
      ['POST /v1/email', SpanStatusCode.ERROR],
    ],
  )
})

test('a client whose key is not known decides nothing about traces', async (t) => {
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  const stranger = client('f')
  const answer = await service.post(validBody(), { ...header(stranger), authorization: 'Bearer nothing' })
  assert.equal(answer.status, 401)
  assert.deepEqual(spansOf(stranger.traceId), [])
})

test('a revoked key is forgotten: it decides nothing about traces after the request that found it revoked', async (t) => {
  const service = await startTestService(t, { roles: new Set(['api'] as const) })
  await service.post()
  await service.store.revokeKey(service.keyId, operator)
  assert.equal((await service.post()).status, 401)
  const caller = client('2')
  assert.equal((await service.post(validBody(), header(caller))).status, 401)
  assert.deepEqual(spansOf(caller.traceId), [])
})

test('an attempt long after its request is a trace of its own', async (t) => {
  const relay = await startSmtpServer(t)
  const database = await testDatabase(t)
  const ring = newRing()
  const api = await startTestService(t, { database, ring, roles: new Set(['api'] as const) })
  await api.post({})
  const caller = client('1')
  await api.post(validBody(), header(caller))
  const clock = newClockOffset()
  moveClock(clock, 60_000)
  const options = { onFatal: assert.fail, version: 'test', clock, log: pino({ level: 'silent' }) }
  const config = { ...api.config, roles: new Set(['worker'] as const), relays: [relayTo(relay.port)] }
  exporter.reset()
  const worker = await startService(config, options)
  atEnd(t, () => worker.stop())
  const attempt = await eventually(() => named(exporter.getFinishedSpans(), 'attempt')[0])
  assert.notEqual(attempt.spanContext().traceId, caller.traceId)
  assert.equal(attempt.links[0]?.context.traceId, caller.traceId)
})
