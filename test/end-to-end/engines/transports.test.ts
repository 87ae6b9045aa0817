/** Apps whose mail is sent by relays of their own, over real sockets. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startService } from '../../../src/compose/service.ts'
import type { EmailId } from '../../../src/domain/id.ts'
import { openTransport } from '../../../src/store/crypto/sealed-transport.ts'
import { ask, newManagementToken } from '../../support/management.ts'
import { operator } from '../../support/operator.ts'
import { freePort } from '../../support/ports.ts'
import { newRing, newSender, relayTo, send, startTestService, validBody } from '../../support/service.ts'
import { startScriptedServer, startSmtpServer } from '../../support/smtp.ts'
import { atEnd } from '../../support/temporary.ts'
import { eventually } from '../../support/wait.ts'

async function start(t: TestContext) {
  const server = await startSmtpServer(t)
  const service = await startTestService(t, { relays: [relayTo(server.port)] })
  const token = await newManagementToken(service)
  const manage = (line: string, body?: object) => ask(service, line, { token, body })
  const put = async (name: string, ...relays: string[]) => {
    const answer = await manage(`PUT /v1/transports/${name}`, { relays })
    assert.ok(answer.status < 300, JSON.stringify(answer.body))
    return answer
  }
  const newTenant = async (slug: string, transport?: string) => {
    const { app, key } = await newSender(service, slug)
    if (transport !== undefined) {
      const answer = await manage(`PATCH /v1/apps/${slug}`, { transport })
      assert.equal(answer.status, 200, JSON.stringify(answer.body))
    }
    const post = async (to = 'ada@example.com') => {
      const answer = await send(service.apiUrl, JSON.stringify(validBody({ to })), { authorization: `Bearer ${key}` })
      assert.equal(answer.status, 202)
      return answer.headers.get('email-id') as EmailId
    }
    return { app, post }
  }
  const reaches = (id: EmailId, state: string) =>
    eventually(async () => {
      const record = await service.store.findEmail(id)
      return record?.state === state ? record : null
    })
  return { manage, newTenant, put, reaches, server, service }
}

const urlOf = ({ port }: { readonly port: number }) => `smtp://127.0.0.1:${port}`

test('mail of an app goes through its transport alone, in the order of its relays', async (t) => {
  const { newTenant, put, reaches, server } = await start(t)
  const own = await startSmtpServer(t)
  await put('acme', `smtp://127.0.0.1:${await freePort()}`, urlOf(own))
  const [acme, other] = [await newTenant('tenant', 'acme'), await newTenant('other')]
  const [byOwn, byService] = [await acme.post('a@example.com'), await other.post('b@example.com')]
  assert.equal((await reaches(byOwn, 'delivered')).trail.at(-1)?.relay, `acme/127.0.0.1:${own.port}`)
  assert.equal((await reaches(byService, 'delivered')).trail.at(-1)?.relay, `127.0.0.1:${server.port}`)
  assert.deepEqual((await own.first()).to, ['a@example.com'])
  assert.deepEqual((await server.first()).to, ['b@example.com'])
  assert.equal(own.received.length + server.received.length, 2)
})

test('while a transport is down, its mail waits untouched and that of others leaves; a change takes effect without a restart', async (t) => {
  const { newTenant, put, reaches, service } = await start(t)
  await put('acme', `smtp://127.0.0.1:${await freePort()}`)
  const [acme, other] = [await newTenant('tenant', 'acme'), await newTenant('other')]
  const waiting = [await acme.post('a@example.com'), await acme.post('b@example.com')]
  await eventually(async () => {
    const nodes = await service.store.listNodes()
    return nodes.some(({ relays }) => relays.some(({ available, name }) => name.startsWith('acme/') && !available))
  })
  for (let n = 0; n < 20; n++) await reaches(await other.post(`n${n}@example.com`), 'delivered')
  // A probe counts as an attempt until it fails.
  for (const id of waiting) await eventually(async () => (await service.store.findEmail(id))?.attempts === 0)
  const own = await startSmtpServer(t)
  await put('acme', urlOf(own))
  for (const id of waiting)
    assert.equal((await reaches(id, 'delivered')).trail.at(-1)?.relay, `acme/127.0.0.1:${own.port}`)
  for (const id of waiting) assert.equal((await service.store.findEmail(id))?.attempts, 1)
})

test('a transport that hangs uses none of the connections of another', async (t) => {
  const { newTenant, put, reaches } = await start(t)
  const hanging = await startScriptedServer(t, { dot: () => {} })
  await put('acme', `${urlOf(hanging)}?connections=4`)
  const [acme, other] = [await newTenant('tenant', 'acme'), await newTenant('other')]
  for (let n = 0; n < 10; n++) await acme.post(`h${n}@example.com`)
  await eventually(() => hanging.connections() >= 3)
  const sent = await Promise.all(Array.from({ length: 20 }, (_, n) => other.post(`n${n}@example.com`)))
  for (const id of sent) await reaches(id, 'delivered')
  assert.equal(hanging.connections(), 3)
})

test('mail of an app whose transport was lost waits, and is sent when the transport is there again', async (t) => {
  const { manage, newTenant, put, reaches, service } = await start(t)
  const own = await startSmtpServer(t)
  await put('acme', urlOf(own))
  const acme = await newTenant('tenant', 'acme')
  await reaches(await acme.post(), 'delivered')
  const used = await manage('DELETE /v1/transports/acme')
  assert.deepEqual([used.status, used.body.error.code], [409, 'transport_in_use'])
  assert.match(used.body.error.message, /^tenant still uses the transport acme/)
  await service.store.deleteTransport('acme', operator)
  await eventually(async () => {
    const nodes = await service.store.listNodes()
    return nodes.every(({ relays }) => relays.every(({ name }) => !name.startsWith('acme/')))
  })
  const id = await acme.post('later@example.com')
  const { body } = await manage('POST /v1/checks')
  const finding = body.findings.find(({ check }: { check: string }) => check === 'transport acme')
  assert.deepEqual([finding.ok, finding.detail], [false, 'there is no such transport. The mail of tenant waits'])
  assert.equal((await service.store.findEmail(id))?.state, 'queued')
  await put('acme', urlOf(own))
  await reaches(id, 'delivered')
})

test('an admin of an app cannot choose a transport, nor see any, and none of the answers has a secret', async (t) => {
  const { manage, newTenant, put, service } = await start(t)
  const { body: made } = await put('acme', 'smtps://user:hunter2@smtp.acme.example')
  assert.deepEqual(made.relays, ['smtp.acme.example:465'])
  const { app } = await newTenant('tenant')
  const token = await newManagementToken(service, 'admin', [app.id])
  const asTenant = (line: string, body?: object) => ask(service, line, { token, body })
  const refused = await asTenant('PATCH /v1/apps/tenant', { transport: 'acme' })
  assert.deepEqual([refused.status, refused.body.error.issues[0].code], [403, 'needs_service_admin'])
  const unknown = await asTenant('PATCH /v1/apps/tenant', { transport: 'none' })
  assert.ok(!JSON.stringify(unknown.body).includes('acme'))
  for (const line of ['GET /v1/transports', 'POST /v1/transports/acme/check', 'DELETE /v1/transports/acme'])
    assert.equal((await asTenant(line)).status, 403)
  const missing = await manage('PATCH /v1/apps/tenant', { transport: 'none' })
  assert.deepEqual(
    missing.body.error.issues.map(({ code, message }: { code: string; message: string }) => [code, message]),
    [['unknown_transport', 'There is no transport "none". There are: acme.']],
  )
  const answers = [await manage('GET /v1/transports'), await manage('GET /v1/audit'), await manage('GET /v1/status')]
  for (const { body } of answers) assert.ok(!JSON.stringify(body).includes('hunter2'))
  assert.ok(!service.log.join('\n').includes('hunter2'))
  const faulty = await manage('PUT /v1/transports/acme', { relays: ['smtp://user:hunter2@a b', 'ftp://hunter2@x'] })
  assert.equal(faulty.status, 400)
  assert.ok(!JSON.stringify(faulty.body).includes('hunter2'))
  assert.equal((await manage('PUT /v1/transports/default', { relays: ['smtp://smtp.acme.example'] })).status, 400)
})

test('a service that starts with new keys seals every transport by the first one', async (t) => {
  const { put, service } = await start(t)
  await put('acme', 'smtps://user:hunter2@smtp.acme.example')
  const { config } = service
  await service.stop()
  const fresh = newRing('fresh')
  const onFatal = (error: Error) => assert.fail(error)
  const again = await startService({ ...config, ring: [...fresh, ...config.ring] }, { version: 'test', onFatal })
  atEnd(t, () => again.stop())
  const [stored] = await again.store.listTransports()
  assert.ok(stored !== undefined)
  assert.equal(openTransport(fresh, stored), 'smtps://user:hunter2@smtp.acme.example')
})

test('a password with special characters arrives as it is, and a wrong one is a fault of its transport alone', async (t) => {
  const { manage, newTenant, put, reaches, service } = await start(t)
  const password = '5Pk.#Kz%W;}r3/B"f_\'?&@:=+ I$E'
  const passwords: string[] = []
  const own = await startSmtpServer(t, {
    authOptional: false,
    allowInsecureAuth: true,
    onAuth({ password: given }, _session, callback) {
      passwords.push(given ?? '')
      callback(given === password ? null : new Error('wrong'), { user: 'acme' })
    },
  })
  await put('acme', `smtp://acme:${encodeURIComponent(password)}@127.0.0.1:${own.port}`)
  await put('wrong', `smtp://acme:nothing@127.0.0.1:${own.port}`)
  const [right, wrong] = [await newTenant('right', 'acme'), await newTenant('wrong', 'wrong')]
  const waiting = await wrong.post()
  await reaches(await right.post(), 'delivered')
  assert.ok(passwords.includes(password))
  const { body } = await manage('POST /v1/transports/wrong/check')
  assert.match(body.findings[0].detail, /535/)
  const { attempts, state } = (await service.store.findEmail(waiting)) ?? {}
  assert.ok(attempts === 0 && (state === 'queued' || state === 'deferred'))
})
