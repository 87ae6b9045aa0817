/** Lists of the console: what the search finds, their periods, and their export. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { shortenId } from '../../src/domain/id.ts'
import { newVisitor, signIn, signInMany, startBusyConsole } from '../support/console.ts'
import { operator } from '../support/operator.ts'
import { newSender, testSettings, validBody } from '../support/service.ts'
import { eventually } from '../support/wait.ts'

const service = await startBusyConsole({ after })
// Each person has a rate.
const visitor = newVisitor(service, await signInMany(service))

test('the search finds an email by its id as pages shorten it, by its Message-ID, and by a part of a reply', async () => {
  const id = await service.find('later1@example.com')
  const find = async (q: string) => (await visitor.post('/find', { q })).headers.get('location') ?? ''
  for (const text of [id, shortenId(id), id.slice(0, 17), shortenId(id).slice(3), `<${id}.0123456789@acme.example>`])
    assert.match(await (await visitor.get(await find(text))).text(), new RegExp(`data-copy="${id}"`), text)
  assert.equal(
    (await visitor.post('/find', { q: 'em_01zzzzzzzzzzzz' })).headers.get('location'),
    '/emails/em_01zzzzzzzzzzzz',
  )
  assert.equal((await visitor.get('/emails/em_01zzzzzzzzzzzz')).status, 404)
  const { lastReply } = (await service.store.listEmails({ limit: 200 })).items
    .map((email) => ({ lastReply: email.trail.at(-1)?.reply?.text ?? '' }))
    .find((email) => email.lastReply !== '') ?? { lastReply: '' }
  const address = await find(lastReply.slice(4, 30))
  assert.match(address, /^\/emails\?reply=/)
  assert.match(await (await visitor.get(address)).text(), /With a reply that contains/)
  assert.equal((await visitor.post('/find', { q: 'outcome' })).status, 404, 'the name of a field in the record')
})

test('the search finds an address however it was copied', async () => {
  const find = async (q: string) => (await visitor.post('/find', { q })).headers.get('location') ?? ''
  const plain = await find('later1@example.com')
  assert.match(plain, /^\/emails\?recipient=rc_/)
  const copies = [
    ...['\u200blater1@example.com', '\u202alater1@example.com\u202c', ' later1@example.com.', 'later1@example.com,'],
    ...[
      'mailto:later1@example.com',
      'Ada <later1@example.com>',
      'Ada <later1@example.com>; ',
      '<mailto:later1@example.com>',
    ],
  ]
  for (const copy of copies) assert.equal(await find(copy), plain, JSON.stringify(copy))
  assert.equal((await visitor.post('/find', { q: `${'a'.repeat(300)}@example.com` })).status, 404)
})

test('an address with a wrong escape is a page that is not there', async () => {
  for (const path of ['/emails/100%', '/apps/50%/keys']) {
    const answer = await visitor.get(path)
    assert.equal(answer.status, 404, path)
    assert.match(await answer.text(), /<h1>/)
  }
})

test('a list is exported as CSV and as JSON, with its filters, and the audit says so', async () => {
  const list = await (await visitor.get('/emails?state=failed')).text()
  const filters = list.match(/name="filters" value="([^"]*)"/)?.[1]?.replaceAll('&quot;', '"') ?? ''
  assert.deepEqual(JSON.parse(filters), { state: 'failed' })
  const file = (format: string, more = {}) => visitor.post('/export', { list: 'emails', filters, format, ...more })
  const csv = await file('csv')
  assert.match(csv.headers.get('content-disposition') ?? '', /^attachment; filename="postern-emails-[\dT-]+\.csv"$/)
  const bytes = Buffer.from(await csv.arrayBuffer())
  assert.equal(bytes.subarray(0, 3).toString('hex'), 'efbbbf', 'or Excel takes it for another encoding')
  const [head, ...lines] = bytes.toString().trim().split('\r\n')
  assert.match(head ?? '', /^id,app,key,type,state,/)
  assert.ok(lines.length > 0 && lines.every((line) => line.includes(',failed,')))
  const items: object[] = JSON.parse(await (await file('json')).text())
  assert.equal(items.length, lines.length)
  assert.equal((await file('csv', { list: 'tokens' })).status, 400)
  assert.equal((await file('csv', { filters: '{"no":"such"}' })).status, 400)
  assert.equal((await file('csv', { filters: 'no JSON' })).status, 200, 'without filters')
  assert.match(await (await visitor.get('/audit?group=searches')).text(), /exported the list of emails/)
})

test('lists have a period: from and to of the form, and links to the usual ones', async () => {
  const rows = async (query: string) =>
    (await (await visitor.get(`/emails?${query}`)).text()).match(/href="\/emails\/em_/g)?.length ?? 0
  const minute = (ms: number) => new Date(ms).toISOString().slice(0, 16)
  const now = service.store.now()
  assert.equal(await rows(`from=${minute(now + 120_000)}`), 0)
  assert.equal(await rows(`to=${minute(now - 3_600_000 * 24 * 29)}`), 0)
  assert.ok((await rows(`from=${minute(now - 3_600_000)}&to=${minute(now + 120_000)}`)) > 0)
  assert.equal((await visitor.get('/emails?from=yesterday')).status, 400)
  assert.match(await (await visitor.get('/refusals?within=60')).text(), /<b>Last hour<\/b>/)
  assert.equal((await visitor.get('/refusals?to=never')).status, 400)
})

test('a search for an address that was only refused says so in one sentence', async () => {
  const url = 'https://elsewhere.example/?token=x'
  assert.equal((await service.post(validBody({ to: 'only-refused@example.com', url }))).status, 403)
  const page = await eventually(async () => {
    const found = await visitor.post('/find', { q: 'only-refused@example.com' })
    const text = await (await visitor.get(found.headers.get('location') ?? '')).text()
    return text.includes('was refused') ? text : null
  })
  assert.match(
    page,
    /No email to this address was accepted[^<]*\. The newest request for it was refused .*: Link not allowed/,
  )
  assert.doesNotMatch(page, /Check the spelling/)
})

test('an entry that was removed from an allow-list can be allowed again from the audit', async () => {
  const entry = 'https://undone.example'
  await visitor.post('/apps/acme/links/add', { kind: 'allowedUrls', entry })
  await visitor.post('/apps/acme/links/remove', { kind: 'allowedUrls', entry })
  const audit = await (await visitor.get('/audit?app=acme')).text()
  assert.match(audit, /Allow https:\/\/undone\.example again/)
  const reader = newVisitor(service, await signIn(service, 'reader'))
  assert.doesNotMatch(await (await reader.get('/audit?app=acme')).text(), /Allow https/)
  await visitor.post('/apps/acme/links/add', { kind: 'allowedUrls', entry })
  assert.doesNotMatch(await (await visitor.get('/audit?app=acme')).text(), /Allow https:\/\/undone/)
})

test('a search for a key that has ended says so', async () => {
  const { app, keyId, key } = await newSender(service, 'ended-key')
  await service.store.revokeKey(keyId, operator)
  const found = await visitor.post('/find', { q: key })
  const page = await (await visitor.get((found.headers.get('location') ?? '').replace('#confirm', ''))).text()
  assert.match(page, /The key \S+ was revoked <time/)
  assert.ok(app.slug === 'ended-key' && !page.includes('Revoke the key'))
})

test('a limit that refused requests says what would have been enough', async () => {
  const sender = await newSender(service, 'busy-app', { ...testSettings, limits: { ...testSettings.limits, daily: 2 } })
  const headers = { authorization: `Bearer ${sender.key}` }
  for (let n = 0; n < 5; n++) await service.post(validBody({ to: `b${n}@example.com` }), headers)
  const text = await (await visitor.get('/apps/busy-app/settings')).text()
  assert.match(text, /2 accepted, and 3 refused by this limit\. To accept all of them with room to spare: 8\./)
})

test('a shortened id names nothing that somebody may not see', async () => {
  const id = await service.find('later1@example.com')
  const { app } = await newSender(service, 'neighbour')
  const neighbour = newVisitor(service, await signIn(service, 'admin', [app.id]))
  for (const path of [`/emails/${shortenId(id)}`, `/emails?key=${shortenId(service.keyId)}`]) {
    const answer = await neighbour.get(path)
    assert.equal(answer.status, 404, path)
    const text = await answer.text()
    assert.ok(!text.includes(id) && !text.includes(service.keyId), path)
  }
  assert.equal((await visitor.get(`/emails?key=${shortenId(service.keyId)}`)).status, 200)
})

test('an export holds all pages of a list, and its entry in the audit the filters', async () => {
  const actor = { kind: 'local', id: null, name: 'many', via: 'cli', requestId: null } as const
  const action = { action: 'checks.run', app: null, target: 'service', before: null, after: null } as const
  for (let n = 0; n < 250; n++) await service.store.recordAction(action, actor)
  const filters = JSON.stringify({ actor: 'many' })
  const exported = await visitor.post('/export', { list: 'audit', filters, format: 'json' })
  assert.equal(JSON.parse(await exported.text()).length, 250)
  const { items } = await service.store.listAudit({ actions: ['list.export'], limit: 1 })
  assert.deepEqual(items[0]?.after, { actor: 'many' })
  const ofApp = JSON.stringify({ app: 'acme', key: shortenId(service.keyId) })
  assert.equal((await visitor.post('/export', { list: 'emails', filters: ofApp, format: 'csv' })).status, 200)
  const newest = await service.store.listAudit({ actions: ['list.export'], limit: 1 })
  assert.equal(newest.items[0]?.app, service.app.id)
})
