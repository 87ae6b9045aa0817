/** The webhooks of an app in the console: address, secret, a test message, and who may do what. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { composeWebhookSender } from '../../src/compose/webhooks.ts'
import { newVisitor, signIn, startBusyConsole } from '../support/console.ts'

const service = await startBusyConsole({ after })
const admin = newVisitor(service, await signIn(service))
const path = '/apps/acme/webhooks'
const open = async (visitor = admin) => (await visitor.get(path)).text()

let status = 204
const receiver = createServer((_request, response) => response.writeHead(status).end())
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
after(() => receiver.close())
const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`

// The console of the busy service has no worker beside it.
const sender = composeWebhookSender({ ...service, version: 'test' } as never)
sender.start()
after(() => sender.stop(0))

test('an address and a secret, which is shown once; a test message says what the receiver answered', async () => {
  assert.match(await open(), /The app has no secret, so nothing is sent/)
  const refused = await admin.post(path, { webhookUrl: 'ftp://app.acme.test/' })
  assert.equal(refused.status, 400)
  assert.match(await refused.text(), /An https URL of at most 2000 characters/)
  assert.equal((await admin.post(path, { webhookUrl: url })).status, 303)
  const made = await admin.post(`${path}/secret`, { once: 'first' })
  assert.equal(made.status, 201)
  assert.match(await made.text(), /data-copy="whsec_[A-Za-z0-9+/]{43}="/)
  assert.doesNotMatch(await open(), /whsec_/)
  const again = await admin.post(`${path}/secret`, { once: 'first' })
  assert.match(await again.text(), /already submitted/)
  const replaced = await (await admin.post(`${path}/secret`, { once: 'second' })).text()
  assert.match(replaced, /The old secret signs as well until/)
  assert.equal((await admin.post(`${path}/test`)).status, 303)
  assert.match(await open(), /webhook\.test[\s\S]*sent[\s\S]*204/)
  status = 410
  await admin.post(`${path}/test`)
  const failing = await open()
  assert.match(failing, /The receiver has failed since/)
  assert.match(failing, /given up[\s\S]*410/)
  const overview = await (await admin.get('/apps/acme')).text()
  assert.match(overview, /The webhook receiver of acme answers 410[\s\S]*\/apps\/acme\/webhooks/)
})

test('an admin of one app may replace the secret and not the address; an operator may test; a reader reads', async () => {
  const people = {
    team: newVisitor(service, await signIn(service, 'admin', [service.app.id])),
    operator: newVisitor(service, await signIn(service, 'operator', null)),
    reader: newVisitor(service, await signIn(service, 'reader', null)),
  }
  const may = async (visitor: typeof admin) => {
    const answers = []
    for (const [action, fields] of [
      ['', { webhookUrl: 'https://elsewhere.test/' }],
      ['/secret', {}],
      ['/test', {}],
    ] as const)
      answers.push((await visitor.post(`${path}${action}`, fields)).status)
    return answers
  }
  assert.deepEqual(await may(people.team), [403, 201, 303])
  assert.deepEqual(await may(people.operator), [403, 403, 303])
  assert.deepEqual(await may(people.reader), [403, 403, 403])
  const seen = await open(people.team)
  assert.match(seen, /An admin of the whole service sets it/)
  assert.ok(seen.includes(url) && !seen.includes('elsewhere.test'))
  assert.doesNotMatch(await open(people.operator), /Replace the secret/)
  assert.doesNotMatch(await open(people.reader), /Send a test message/)
})
