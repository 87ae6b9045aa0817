/** The webhooks of an app in the console: address, secret, a test message, and who may do what. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { composeWebhookSender } from '../../src/compose/webhooks.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { recipientSealer } from '../../src/store/crypto/webhook-secret.ts'
import { newVisitor, signIn, startBusyConsole } from '../support/console.ts'
import { operator } from '../support/operator.ts'
import { newSender } from '../support/service.ts'

const service = await startBusyConsole({ after })
const admin = newVisitor(service, await signIn(service))
const path = '/apps/acme/webhooks'
const open = async (visitor = admin) => (await visitor.get(path)).text()

let status = 204
let body = ''
const received: string[] = []
const receiver = createServer(async (request, response) => {
  received.push((await request.toArray()).join(''))
  response.writeHead(status).end(body)
})
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

test('a message shows its JSON and the answer of the receiver, and is sent again', async () => {
  status = 500
  body = 'ana@example.com: no such user\nat /srv/app.js:1'
  const [email] = (await service.store.listEmails({ limit: 1 })).items
  assert.ok(email)
  const seal = recipientSealer(service.config.ring)
  const sealed = seal(email.id, 'ana@example.com' as EmailAddress)
  const facts = { emailType: 'magic_link', cause: 'no_mailbox', permanent: true } as const
  const message = { app: service.app.id, event: 'email.bounced', email: email.id, facts, sealed } as const
  const id = await service.store.addWebhookMessage(message)
  const page = async () => (await admin.get(`${path}/${id}`)).text()
  assert.match(await page(), /Send now/)
  assert.equal((await admin.post(`${path}/${id}/send`)).status, 303)
  const failed = await page()
  assert.match(failed, /&quot;cause&quot;: &quot;no_mailbox&quot;/)
  assert.match(failed, />500</)
  assert.match(failed, /: no such user at \/srv\/app\.js/)
  assert.doesNotMatch(failed, /ana@example/)
  assert.match(failed, /Postern adds the recipient as data\.to/)
  status = 204
  assert.equal((await admin.post(`${path}/${id}/send`)).status, 303)
  assert.equal(JSON.parse(received.at(-1) ?? '').data.to, 'ana@example.com')
  assert.match(await page(), /The recipient is no longer kept[\s\S]*Send again|Send again[\s\S]*no longer kept/)
  const count = received.length
  assert.equal((await admin.post(`${path}/${id}/send`)).status, 303)
  assert.equal(received.length, count + 1)
  assert.equal(JSON.parse(received.at(-1) ?? '').data.to, undefined)
  const audit = await (await admin.get('/audit?group=emails')).text()
  assert.match(audit, /sent a webhook message of .*acme.* at once/)
  assert.equal((await admin.get(`${path}/wh_unknown`)).status, 404)
  assert.equal((await admin.post(`${path}/wh_unknown/send`)).status, 404)
  const other = await newSender(service, 'elsewhere')
  const elsewhere = newVisitor(service, await signIn(service, 'operator', [other.app.id]))
  assert.equal((await elsewhere.get(`${path}/${id}`)).status, 404)
  assert.equal((await elsewhere.post(`/apps/elsewhere/webhooks/${id}/send`, {})).status, 404)
  await service.store.updateApp(other.app.id, { settings: { ...other.app.settings, webhookUrl: url } }, operator)
  await service.store.setWebhookSecret({ app: other.app.id, sealed: '', oldUntil: 0 }, operator)
  assert.equal((await elsewhere.post(`/apps/elsewhere/webhooks/${id}/send`, {})).status, 404, 'of another app')
  assert.equal((await elsewhere.get(`/live?topic=webhooks:${service.app.id}`)).status, 404)
})
