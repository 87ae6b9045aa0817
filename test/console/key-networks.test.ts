/** The addresses that may use a key, changed on the page of keys. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newVisitor, signIn } from '../support/console.ts'
import { operator } from '../support/operator.ts'
import { newSender, startTestService, testSettings } from '../support/service.ts'

const service = await startTestService({ after }, { isDev: false, consoleIsLocal: true })
const admin = newVisitor(service, await signIn(service))
const id = service.keyId
const path = `/apps/acme/keys/${id}/networks`
const networks = async () => (await service.store.findKey(id))?.networks
const question = async () => (await admin.get(`/apps/acme/keys?networks=${id}`)).text()

test('they are set, shown again, and removed by leaving the field empty', async () => {
  assert.match(await question(), /Which addresses may use the key/)
  const saved = await admin.post(path, { networks: '192.0.2.0/24, 2001:db8::/32' })
  assert.deepEqual([saved.status, saved.headers.get('location')], [303, '/apps/acme/keys?done=saved'])
  assert.deepEqual(await networks(), ['192.0.2.0/24', '2001:db8::/32'])
  assert.match(await question(), /name="networks"[^>]* value="192\.0\.2\.0\/24, 2001:db8::\/32"/)
  assert.match(await (await admin.get('/apps/acme/keys')).text(), /from 192\.0\.2\.0\/24, 2001:db8::\/32/)
  assert.equal((await admin.post(path, { networks: ' ' })).status, 303)
  assert.equal(await networks(), null)
})

test('a network that is none is refused where it was typed, and nowhere else', async () => {
  const refused = await admin.post(path, { networks: '192.0.2.0/24, example.com' })
  const page = await refused.text()
  assert.equal(refused.status, 400)
  assert.equal(page.match(/aria-invalid="true"/g)?.length, 1)
  assert.match(page, /id="key-networks-networks"[^>]* value="192\.0\.2\.0\/24, example\.com"/)
  assert.equal(await networks(), null)
})

test('a reader sees no question, and changes nothing', async () => {
  const reader = newVisitor(service, await signIn(service, 'reader'))
  assert.doesNotMatch(await (await reader.get(`/apps/acme/keys?networks=${id}`)).text(), /Which addresses/)
  assert.equal((await reader.post(path, { networks: '192.0.2.0/24' })).status, 403)
  assert.equal(await networks(), null)
})

test('a key that was revoked meanwhile, or is none, is not changed, and the page says so', async () => {
  const { keyId } = await newSender(service, 'over', testSettings)
  await service.store.revokeKey(keyId, operator)
  const refused = await admin.post(`/apps/over/keys/${keyId}/networks`, { networks: '192.0.2.0/24' })
  assert.equal(refused.status, 409)
  assert.match(await refused.text(), /The key \S+ was revoked/)
  const none = await admin.post(`/apps/acme/keys/${keyId}x/networks`, { networks: '192.0.2.0/24' })
  assert.equal(none.status, 404)
  assert.match(await none.text(), /There is no key/)
})
