/** A delivery key may be used from its networks alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ask, newManagementToken } from '../../support/management.ts'
import { refusalsOf, startTestService, validBody } from '../../support/service.ts'
import { eventually } from '../../support/wait.ts'

test('requests from other networks are refused, counted, and on record with their address', async (t) => {
  const service = await startTestService(t)
  const token = await newManagementToken(service)
  const change = (networks: readonly string[] | null) =>
    ask(service, `PATCH /v1/keys/${service.keyId}`, { token, body: { networks } })
  const body = validBody({ to: 'ada@example.com' }, service.store.now())
  const post = (from: string, idempotencyKey?: string) =>
    service.post(body, {
      'x-forwarded-for': from,
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    })
  assert.equal((await post('198.51.100.1', 'first')).status, 202)
  const changed = await change(['192.0.2.0/24', '2001:DB8::/32', '192.0.2.0/24'])
  assert.deepEqual([changed.status, changed.body.networks], [200, ['192.0.2.0/24', '2001:db8::/32']])
  for (const near of ['192.0.2.1', '::ffff:192.0.2.200', '2001:db8::7', '198.51.100.1, 192.0.2.3'])
    assert.equal((await post(near)).status, 202, near)
  for (const far of ['198.51.100.1', '2001:db9::1', 'unknown', '192.0.2.1, 198.51.100.1']) {
    const answer = await post(far, 'first')
    const { code, message } = (answer.body as { error: { code: string; message: string } }).error
    assert.deepEqual([answer.status, code], [401, 'address_not_allowed'], far)
    assert.match(message, /may not be used from (198\.51\.100\.1|2001:db9::1|127\.0\.0\.1)\./)
    assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer realm="postern", error="invalid_token"$/)
    assert.equal(answer.headers.get('idempotent-replayed'), null)
  }
  await eventually(async () => (await refusalsOf(service.store, service.app.id)).length === 4)
  const refused = await refusalsOf(service.store, service.app.id)
  assert.deepEqual(
    refused.map(({ code, issues }) => [code, ...issues]),
    ['198.51.100.1', '127.0.0.1', '2001:db9::1', '198.51.100.1'].map((from) => [
      'address_not_allowed',
      `address ${from}`,
    ]),
  )
  const [today] = await service.store.readUsage(service.app.id)
  assert.equal(today?.counts.address_not_allowed, 4)
  assert.equal((await change(null)).status, 200)
  assert.equal((await post('198.51.100.1', 'first')).headers.get('idempotent-replayed'), 'true')
})

test('networks that are none are refused with the field and advice', async (t) => {
  const service = await startTestService(t)
  const token = await newManagementToken(service)
  const body = { name: 'near', networks: ['192.0.2.0/24', '10.1.2.3/8', 'office'] }
  const answer = await ask(service, `POST /v1/apps/acme/keys`, { token, body })
  assert.equal(answer.status, 400)
  assert.deepEqual(
    answer.body.error.issues.map(({ field, code }: { field: string; code: string }) => [field, code]),
    [
      ['networks', 'host_bits'],
      ['networks', 'malformed_network'],
    ],
  )
})
