/** The domain of an app in the console: its signing keys, and the check of its DNS. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newVisitor, signIn, startBusyConsole } from '../support/console.ts'

const service = await startBusyConsole({ after })
const admin = newVisitor(service, await signIn(service))
const path = '/apps/acme/domain'
const open = async (query = '') => (await admin.get(`${path}${query}`)).text()
const change = (action: string, fields: Record<string, string> = {}) => admin.post(`${path}${action}`, fields)
const keys = () => service.store.listSigningKeys('acme.test')

test('a key is added, not activated before its record is in DNS, and removed after a question', async () => {
  assert.match(await open(), /Postern does not sign mail from acme\.test/)
  const added = await change('/keys', { algorithm: 'ed25519' })
  assert.equal(added.status, 303)
  const [key] = await keys()
  assert.ok(key)
  assert.deepEqual([key.algorithm, key.state], ['ed25519', 'pending'])
  const shown = await open()
  assert.ok(shown.includes(`data-copy="${key.selector}._domainkey.acme.test"`))
  assert.ok(shown.includes(`data-copy="v=DKIM1; k=ed25519; p=${key.publicKey}"`))
  assert.match(shown, /Publish this record, then activate the key\./)
  const refused = await change(`/keys/${key.selector}/activate`)
  assert.equal(refused.status, 409)
  assert.match(await refused.text(), /was not activated\. DNS did not answer/)
  assert.equal((await keys())[0]?.state, 'pending')
  assert.match(await open(`?remove=${key.selector}`), /Remove the key p\d{12}e\?</)
  assert.equal((await change(`/keys/${key.selector}/remove`)).status, 303)
  assert.deepEqual(await keys(), [])
})

test('a check shows a line for each record, and stays with its time', async () => {
  assert.doesNotMatch(await open(), /Checked /)
  const checked = await change('/check')
  assert.deepEqual([checked.status, checked.headers.get('location')], [303, `${path}#check`])
  const shown = await open()
  for (const name of ['SPF', 'DMARC', 'Alignment', 'MX']) assert.match(shown, new RegExp(`<b>${name}</b>`))
  assert.match(shown, /DNS did not answer/)
  assert.match(shown, /Checked <time[^>]+>just now</)
  const reader = newVisitor(service, await signIn(service, 'reader', null))
  assert.match(await (await reader.get(path)).text(), /<b>SPF<\/b>/)
})

test('the records to publish can be copied for a zone file', async () => {
  await change('/keys', { algorithm: 'ed25519' })
  const [key] = await keys()
  assert.ok((await open()).includes(`${key?.selector}._domainkey.acme.test. IN TXT ( &quot;v=DKIM1; k=ed25519;`))
  await change(`/keys/${key?.selector}/remove`)
})

test('people of one app see its keys and cannot change them; a reader cannot check', async () => {
  await change('/keys', { algorithm: 'ed25519' })
  const [key] = await keys()
  const team = newVisitor(service, await signIn(service, 'admin', [service.app.id]))
  const seen = await (await team.get(path)).text()
  assert.match(seen, /An admin of the whole service can add keys/)
  assert.ok(!seen.includes(`/keys/${key?.selector}/activate`))
  for (const action of ['/keys', `/keys/${key?.selector}/activate`, `/keys/${key?.selector}/remove`])
    assert.equal((await team.post(`${path}${action}`)).status, 403, action)
  const reader = newVisitor(service, await signIn(service, 'reader', null))
  assert.match(await (await reader.get(path)).text(), /An operator can check it/)
  assert.equal((await reader.post(`${path}/check`)).status, 403)
})
