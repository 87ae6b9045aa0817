/** Transports in the console: added, checked, chosen for an app, and removed. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { formOf, newVisitor, signIn } from '../support/console.ts'
import { freePort } from '../support/ports.ts'
import { newSender, startTestService, testSettings } from '../support/service.ts'
import { startSmtpServer } from '../support/smtp.ts'

const service = await startTestService({ after }, { roles: new Set(['api', 'console']), isDev: false })
const { store } = service
const visitor = newVisitor(service, [await signIn(service), await signIn(service)])
const path = '/settings/transports'

test('a transport is added, checked, chosen for an app, and removed once no app uses it', async (t) => {
  const server = await startSmtpServer(t)
  await newSender(service, 'tenant')
  assert.match(await (await visitor.get(path)).text(), /No transport yet/)
  assert.doesNotMatch(await (await visitor.get('/apps/tenant/settings')).text(), /name="transport"/)
  const relays = `smtp://127.0.0.1:${server.port} smtp://127.0.0.1:${await freePort()}`
  assert.equal((await visitor.post(path, { name: 'acme', relays })).status, 303)
  const shown = await (await visitor.get(path)).text()
  assert.ok(shown.includes(`127.0.0.1:${server.port}<br>`))
  const checked = await (await visitor.post(`${path}/acme/check`)).text()
  assert.match(checked, /acme has faults/)
  assert.match(checked, /answers without TLS/)
  assert.match(checked, /ECONNREFUSED/)
  const form = formOf(await (await visitor.get('/apps/tenant/settings')).text(), '/apps/tenant/settings')
  assert.equal((await visitor.post('/apps/tenant/settings', { ...form, transport: 'acme' })).status, 303)
  assert.equal((await store.findApp('tenant'))?.settings.transport, 'acme')
  assert.match(await (await visitor.get(path)).text(), /href="\/apps\/tenant\/settings">tenant<\/a>/)
  assert.equal((await visitor.post(`${path}/acme/remove`)).status, 409)
  const again = formOf(await (await visitor.get('/apps/tenant/settings')).text(), '/apps/tenant/settings')
  assert.equal((await visitor.post('/apps/tenant/settings', { ...again, transport: '' })).status, 303)
  assert.equal((await store.findApp('tenant'))?.settings.transport, undefined)
  assert.match(await (await visitor.get(`${path}?remove=acme`)).text(), /Remove the transport “acme”\?/)
  assert.equal((await visitor.post(`${path}/acme/remove`)).status, 303)
  assert.deepEqual(await store.listTransports(), [])
})

test('no page repeats the URL of a relay, which holds its secret', async () => {
  const secret = 'hunter2hunter2'
  for (const relays of [`smtp://user:${secret}@ 10.0.0.1`, `ftp://${secret}`, `smtp://user:${secret}@x?nothing=1`]) {
    const refused = await visitor.post(path, { name: 'secret', relays })
    assert.equal(refused.status, 400)
    assert.ok(!(await refused.text()).includes(secret))
  }
  const second = await visitor.post(path, {
    name: 'secret',
    relays: `smtp://smtp.acme.example smtp://user:${secret}@x?nothing=1`,
  })
  assert.match(await second.text(), /relay 2: /)
  const relays = `smtps://user:${secret}@smtp.acme.example`
  assert.equal((await visitor.post(path, { name: 'secret', relays })).status, 303)
  for (const page of [path, '/audit', '/delivery', '/settings'])
    assert.ok(!(await (await visitor.get(page)).text()).includes(secret), page)
})

test('the settings of an app whose transport was lost can be saved', async () => {
  const { app } = await newSender(service, 'lost', { ...testSettings, transport: 'gone' })
  const form = formOf(await (await visitor.get('/apps/lost/settings')).text(), '/apps/lost/settings')
  assert.equal((await visitor.post('/apps/lost/settings', { ...form, daily: '77' })).status, 303)
  const { settings } = (await store.findApp(app.id)) ?? app
  assert.deepEqual([settings.limits.daily, settings.transport], [77, 'gone'])
})
