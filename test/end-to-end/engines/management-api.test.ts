/**
 * The management API over HTTP: its document, conditions, pages, limits, secrets; and docs/management.md as
 * it stands.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { scanMax } from '../../../src/domain/bounds.ts'
import { parseReply } from '../../../src/domain/delivery/smtp-reply.ts'
import { newToken } from '../../../src/domain/operator/management-token.ts'
import { findOperation, operationNames } from '../../../src/management/operations.ts'
import { settingsFields } from '../../../src/management/settings-schema.ts'
import { command, posternJson, startServe } from '../../support/cli.ts'
import { adminTokens, ask, newManagementToken } from '../../support/management.ts'
import { operator } from '../../support/operator.ts'
import { newSender, send, startTestService, testSettings, validBody } from '../../support/service.ts'
import { startSmtpServer } from '../../support/smtp.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { eventually } from '../../support/wait.ts'

const service = await startTestService({ after }, { roles: new Set(['api', 'console']) })
const admin = await adminTokens(service)
const root = fileURLToPath(new URL('../../..', import.meta.url))
const { name, from } = testSettings
let serial = 0

const put = (slug: string, body: object, headers = {}, query = '') =>
  ask(service, `PUT /v1/apps/${slug}${query}`, { token: admin(), body, headers })

test('the service answers with its document, without a token', async () => {
  const { status, body } = await ask(service, 'GET /v1/openapi.json')
  assert.equal(status, 200)
  type Described = { operationId: string; responses: Record<string, { headers?: { ETag?: object } }> }
  const paths = Object.values(body.paths as Record<string, Record<string, Described>>)
  const described = paths.flatMap((methods) => Object.values(methods))
  assert.deepEqual(described.map(({ operationId }) => operationId).sort(), [...operationNames].sort())
  const versioned = described.filter(({ responses }) => responses['200']?.headers?.ETag !== undefined)
  assert.deepEqual(versioned.map(({ operationId }) => operationId).sort(), ['app.change', 'app.put', 'app.show'])
})

test('another method is answered 405, another path 404, and cookies are ignored', async () => {
  const wrong = await ask(service, 'POST /v1/apps/acme', { token: admin(), body: {} })
  assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'PUT, GET, PATCH, DELETE'])
  assert.equal((await ask(service, 'GET /v1/nothing', { token: admin() })).status, 404)
  const cookie = await ask(service, 'GET /v1/apps', { headers: { cookie: `token=${admin()}` } })
  assert.equal(cookie.status, 401)
})

test('a token does not open the public API, and a delivery key not this one; each says which belongs where', async () => {
  const posted = await send(service.apiUrl, JSON.stringify(validBody()), {
    authorization: `Bearer ${admin()}`,
  })
  assert.equal(posted.status, 401)
  assert.match(posted.body.error.message, /This is a management token/)
  const asked = await ask(service, 'GET /v1/apps', { token: service.key })
  assert.equal(asked.status, 401)
  assert.match(asked.body.error.message, /This is a delivery key/)
})

test('conditions: create only, replace only, and the version that was read', async () => {
  const slug = `cond${serial++}`
  const created = await put(slug, { name, from }, { 'if-none-match': '*' })
  assert.deepEqual([created.status, created.headers.get('etag')], [201, '"1"'])
  const again = await put(slug, { name, from }, { 'if-none-match': '*' })
  assert.deepEqual([again.status, again.body.error.code], [412, 'slug_taken'])
  const changed = await put(slug, { name: 'Other', from }, { 'if-match': '"1"' })
  assert.deepEqual([changed.status, changed.headers.get('etag')], [200, '"2"'])
  const stale = await put(slug, { name: 'Late', from }, { 'if-match': '"1"' })
  assert.deepEqual([stale.status, stale.body.error.code], [412, 'version_mismatch'])
  assert.match(stale.body.error.message, /its version is 2/)
  const absent = await put(`cond${serial++}`, { name, from }, { 'if-match': '"1"' })
  assert.equal(absent.status, 412)
  for (const headers of [{ 'if-match': 'W/"1"' }, { 'if-none-match': '"1"' }]) {
    const malformed = await put(slug, { name, from }, headers)
    assert.equal(malformed.status, 400)
    assert.match(malformed.body.error.issues[0].field, /^If-/)
  }
})

test('what GET answers can be sent back, and changes nothing', async () => {
  const slug = `same${serial++}`
  const body = { name, from, allowedUrls: ['https://b.test', 'https://a.test'], limits: { daily: 5 } }
  const created = await put(slug, body)
  assert.deepEqual(created.body.allowedUrls, body.allowedUrls)
  const read = await ask(service, `GET /v1/apps/${slug}`, { token: admin() })
  const sent = await put(slug, read.body)
  assert.equal(sent.text, read.text)
  const other = await put(slug, { ...read.body, slug: 'other' })
  assert.deepEqual([other.status, other.body.error.issues[0].field], [400, 'slug'])
})

test('every setting that can be sent is stored and answered', async () => {
  const slug = `full${serial++}`
  const optional = {
    ...{ envelopeFrom: 'bounces@acme.test', replyTo: 'help@acme.test', supportContact: 'help@acme.test' },
    ...{
      fallbackUrl: 'https://acme.test/get',
      newEmailUrl: 'https://acme.test/sign-in',
      appSchemes: ['acme'],
      hostedLinks: 'off',
      linkDomain: 'links.acme.test',
      useLinkDomain: true,
      allowLocalhost: true,
      supersede: false,
      webhookUrl: 'https://acme.test/postern',
      transport: 'full',
    },
    ...{ branding: { logoUrl: 'https://acme.test/l.png', accentColour: '#123456', addressLine: 'X' } },
    linkDestinations: { magic_link: 'acme://auth/x' },
    formOfAddress: 'informal',
    words: { magic_link: { en: { subject: 'Your link', text: 'Welcome back.' } } },
    authHooks: { supabase: { lifeSeconds: { signup: 600 }, organisationName: 'Acme' } },
  }
  await service.store.putTransport({ name: 'full', sealed: '', before: null, after: [] }, operator)
  const { body, text } = await put(slug, { name, from, ...optional })
  for (const [field, value] of Object.entries(optional)) assert.deepEqual(body[field], value, text)
  assert.deepEqual(
    Object.keys(settingsFields).filter((field) => !(field in body)),
    [],
  )
})

test('an entry in another form is refused with the form to write', async () => {
  const { status, body } = await put(`form${serial++}`, {
    name,
    from,
    allowedUrls: ['https://App.acme.test/'],
  })
  assert.equal(status, 400)
  const [issue] = body.error.issues
  assert.deepEqual([issue.field, issue.code], ['allowedUrls', 'not_normal_form'])
  assert.match(issue.message, /\["https:\/\/app\.acme\.test"\]/)
})

test('a merge patch: null removes an optional setting, and gives another one its default', async () => {
  const slug = `patch${serial++}`
  await put(slug, {
    name,
    from,
    replyTo: 'help@acme.test',
    limits: { daily: 5 },
    branding: { addressLine: 'X' },
  })
  const patch = (body: object, query = '') => ask(service, `PATCH /v1/apps/${slug}${query}`, { token: admin(), body })
  const dry = await patch({ replyTo: null }, '?dryRun=true')
  assert.deepEqual([dry.status, 'replyTo' in dry.body, dry.body.version], [200, false, 1])
  const changed = await patch({ replyTo: null, limits: null, branding: { addressLine: null } })
  assert.equal(changed.body.version, 2)
  assert.ok(!('replyTo' in changed.body))
  assert.deepEqual([changed.body.limits.daily, changed.body.branding], [10_000, {}])
  const required = await patch({ name: null })
  assert.deepEqual([required.status, required.body.error.issues[0].field], [400, 'name'])
})

test('a dry run checks, and changes nothing', async () => {
  const slug = `dry${serial++}`
  const dry = await put(slug, { name, from }, {}, '?dryRun=true')
  assert.deepEqual([dry.status, dry.body.slug], [200, slug])
  const stale = await put(slug, { name, from }, { 'if-match': '"3"' }, '?dryRun=true')
  assert.equal(stale.status, 412)
  assert.equal((await ask(service, `GET /v1/apps/${slug}`, { token: admin() })).status, 404)
  const bad = await put(slug, { name, from, locale: 'xx' }, {}, '?dryRun=true')
  assert.equal(bad.status, 400)
})

test('pages: a cursor belongs to its filters', async () => {
  const sender = await newSender(service, `page${serial++}`)
  for (let n = 0; n < 5; n++)
    await send(service.apiUrl, JSON.stringify(validBody()), { authorization: `Bearer ${sender.key}` })
  const first = await ask(service, `GET /v1/emails?app=${sender.app.slug}&limit=2`, { token: admin() })
  assert.equal(first.body.items.length, 2)
  const ids: string[] = first.body.items.map(({ id }: { id: string }) => id)
  let { next } = first.body
  while (next !== null) {
    const page = await ask(service, `GET /v1/emails?app=${sender.app.slug}&limit=2&cursor=${next}`, {
      token: admin(),
    })
    ids.push(...page.body.items.map(({ id }: { id: string }) => id))
    next = page.body.next
  }
  assert.equal(new Set(ids).size, 5)
  for (const list of ['/v1/emails', '/v1/audit', '/v1/tokens', '/v1/apps']) {
    const foreign = await ask(service, `GET ${list}?cursor=${first.body.next}`, { token: admin() })
    assert.deepEqual([foreign.status, foreign.body.error.code], [400, 'cursor_mismatch'], list)
  }
  for (const name of ['one', 'two'])
    await ask(service, `POST /v1/apps/${sender.app.slug}/keys`, { token: admin(), body: { name } })
  const ofApp = `GET /v1/apps/${sender.app.slug}/keys`
  const keys = await ask(service, `${ofApp}?limit=1`, { token: admin() })
  const others = await ask(service, `${ofApp}?cursor=${keys.body.next}`, { token: admin() })
  assert.deepEqual([keys.body.items.length, others.body.items.length, others.body.next], [1, 2, null])
  const ofOther = await ask(service, `GET /v1/apps/acme/keys?limit=1&cursor=${keys.body.next}`, {
    token: admin(),
  })
  assert.equal(ofOther.body.error.code, 'cursor_mismatch')
  const early = await ask(service, 'GET /v1/emails?since=0001-01-01T00:00:00Z', { token: admin() })
  assert.ok(early.body.items.length > 0)
  const other = await ask(service, `GET /v1/emails?cursor=${first.body.next}`, { token: admin() })
  assert.deepEqual([other.status, other.body.error.code], [400, 'cursor_mismatch'])
  const searched = await ask(service, 'POST /v1/emails/find', {
    token: admin(),
    body: { to: 'ada@example.com', limit: 2 },
  })
  const { recipient, next: more } = searched.body
  assert.match(recipient, /^rc_/)
  assert.ok(!searched.text.includes('ada@'))
  const rest = await ask(service, `GET /v1/emails?recipient=${recipient}&cursor=${more}`, { token: admin() })
  assert.equal(rest.status, 200)
  const { items } = await service.store.listAudit({ limit: 1, actions: ['email.find'] })
  assert.equal(items[0]?.target, recipient)
})

const postFor = (key: string) =>
  send(service.apiUrl, JSON.stringify(validBody({ to: `q${serial++}@example.com` })), {
    authorization: `Bearer ${key}`,
  })

/** Queues more emails of another app than one step of a list or a change reads. */
async function fillQueue(): Promise<void> {
  const busy = await newSender(service, `busy${serial++}`)
  for (let n = 0; n < scanMax + 10; n += 50) await Promise.all(Array.from({ length: 50 }, () => postFor(busy.key)))
}

test('a list of one app ends with its own emails, however many of others wait, and its cursors tell nothing', async () => {
  const mine = await newSender(service, `own${serial++}`)
  for (let n = 0; n < 3; n++) await postFor(mine.key)
  await fillQueue()
  const token = await newManagementToken(service, 'reader', [mine.app.id])
  const { body } = await ask(service, 'GET /v1/emails', { token })
  assert.deepEqual([body.items.length, body.next], [3, null])
  const { body: filtered } = await ask(service, 'GET /v1/emails?type=password_reset', { token })
  assert.deepEqual([filtered.items.length, filtered.next], [0, null])

  const { next } = (await ask(service, 'GET /v1/emails?limit=1', { token })).body
  const opened = Buffer.from(next.slice(3), 'base64url').toString('latin1')
  assert.doesNotMatch(opened, /em_/, 'the id is sealed')
  const altered = `${next.slice(0, -2)}${next.endsWith('AA') ? 'BB' : 'AA'}`
  const answer = await ask(service, `GET /v1/emails?limit=1&cursor=${altered}`, { token })
  assert.equal(answer.body.error.code, 'cursor_mismatch')
})

test('a PATCH is a merge patch, under the name of RFC 7396 or as JSON, and under no other', async () => {
  const slug = `merge${serial++}`
  await put(slug, { name, from, replyTo: 'answers@acme.test' })
  const patch = (type: string, body: object) =>
    ask(service, `PATCH /v1/apps/${slug}`, { token: admin(), body, headers: { 'content-type': type } })
  const merged = await patch('application/merge-patch+json', {
    replyTo: null,
    supportContact: 'help@acme.test',
  })
  assert.equal(merged.status, 200)
  assert.deepEqual([merged.body.replyTo, merged.body.supportContact], [undefined, 'help@acme.test'])
  assert.equal((await patch('Application/Merge-Patch+JSON; charset=utf-8', { locale: 'en' })).status, 200)
  assert.equal((await patch('application/json ; charset=utf-8', { name: 'Merged' })).body.name, 'Merged')
  const other = await patch('application/json-patch+json', {})
  assert.equal(other.status, 400)
  assert.match(other.body.error.issues[0].message, /application\/merge-patch\+json or application\/json/)
  const post = await ask(service, 'POST /v1/emails/find', {
    token: admin(),
    body: { to: 'a@example.com' },
    headers: { 'content-type': 'application/merge-patch+json' },
  })
  assert.equal(post.status, 400)
  const { paths } = (await ask(service, 'GET /v1/openapi.json')).body
  assert.ok('application/merge-patch+json' in paths['/v1/apps/{app}'].patch.requestBody.content)
})

test('all deferred mail of an app is retried and audited once, also when the first step finds none of it', async () => {
  const { store } = service
  await fillQueue()
  const last = await newSender(service, `last${serial++}`)
  await service.post(validBody(), { authorization: `Bearer ${last.key}` })
  const { claims } = await store.claimDue({ max: 100, perApp: 1, leases: [] })
  const claim = claims.find(({ appId }) => appId === last.app.id)
  assert.ok(claim)
  const reply = parseReply('451 later')
  await store.recordOutcome(claim, { kind: 'deferred', reply, relay: 'r:25', ambiguous: false, waitMs: 1e6 })
  const token = await newManagementToken(service, 'operator', [last.app.id])
  const retry = () => ask(service, 'POST /v1/emails/retry', { token, body: {} })
  const answers = await Promise.all([retry(), retry()])
  const [done, busy] = answers.toSorted((a, b) => a.status - b.status)
  assert.deepEqual(done?.body, { retried: 1, complete: true })
  assert.equal(busy?.body.error.code, 'too_many_requests', 'one goes through the queue at a time')
  const { items } = await store.listAudit({ limit: 50, actions: ['email.retry_all'] })
  assert.equal(items.length, 1)
})

test('queued mail of an app that is deleted is cancelled, and each email has its line in the log', async () => {
  const doomed = await newSender(service, `doomed${serial++}`)
  const { headers } = await service.post(validBody(), { authorization: `Bearer ${doomed.key}` })
  await service.store.updateApp(doomed.app.id, { status: 'disabled' }, operator)
  const { body } = await ask(service, `DELETE /v1/apps/${doomed.app.slug}`, { token: admin() })
  assert.deepEqual([body.cancelled, body.complete], [1, true])
  const id = headers.get('email-id') ?? ''
  assert.ok(service.log.some((line) => line.includes(id) && line.includes('cancelled')))
})

test('a person of one app is changed to one of the whole service', async () => {
  const { store, app } = service
  const person = await store.createPerson({ name: 'Narrow', role: 'reader', apps: [app.id] }, operator)
  assert.ok(person !== 'name_taken')
  const changed = await ask(service, `PATCH /v1/people/${person.id}`, {
    token: admin(),
    body: { apps: null },
  })
  assert.deepEqual([changed.status, changed.body.apps], [200, null])
  assert.equal((await store.findPerson(person.id))?.apps, null)
})

test('bodies: too large, not JSON, of another type, or where none belongs', async () => {
  const to = 'POST /v1/emails/find'
  const codeOf = async (sent: Parameters<typeof ask>[2]) => {
    const answer = await ask(service, to, { token: admin(), ...sent })
    return [answer.status, answer.body.error.issues[0].code]
  }
  assert.deepEqual(await codeOf({ body: JSON.stringify({ to: 'a'.repeat(70_000) }) }), [400, 'body_too_large'])
  assert.deepEqual(await codeOf({ body: '{' }), [400, 'not_json'])
  assert.deepEqual(await codeOf({ body: '{}', headers: { 'content-type': 'text/plain' } }), [400, 'not_json'])
  const deep = `{"id":${'['.repeat(30_000)}${']'.repeat(30_000)},"name":"x"}`
  assert.equal((await ask(service, 'PUT /v1/apps/deep', { token: admin(), body: deep })).status, 400)
  const many = { allowedUrls: Array(20_000).fill('') }
  const long = await ask(service, 'PATCH /v1/apps/acme', { token: admin(), body: many })
  assert.deepEqual([long.status, long.body.error.issues[0].code], [400, 'too_large'])
  assert.ok(long.text.length < 10_000)
  for (const name of ['a\0b', 'a\ud800b']) {
    const sent = { token: admin(), body: { name, role: 'reader' } }
    const { field, message } = (await ask(service, 'POST /v1/tokens', sent)).body.error.issues[0]
    assert.match(`${field}: ${message}`, /^name: .*a NUL character or half of a surrogate pair/)
  }
  const needless = await ask(service, `DELETE /v1/keys/${service.keyId}`, { token: admin(), body: {} })
  assert.equal(needless.status, 400)
})

test('a token that asks too often is answered 429, with the time to wait', async () => {
  const busy = await newManagementToken(service, 'reader')
  const search = () => ask(service, 'POST /v1/emails/find', { token: busy, body: { to: 'x@example.com' } })
  let answer = await search()
  for (let n = 0; n < 80 && answer.status === 200; n++) answer = await search()
  assert.deepEqual([answer.status, answer.body.error.code], [429, 'too_many_requests'])
  assert.ok(Number(answer.headers.get('retry-after')) >= 1)
  assert.equal((await ask(service, 'GET /v1/apps', { token: busy })).status, 200)
})

test('the use of a token is on record', async () => {
  const used = await newManagementToken(service)
  await ask(service, 'GET /v1/whoami', { token: used })
  await eventually(async () => (await service.store.listTokens()).at(-1)?.lastUsedAt !== null)
})

test('status names what needs somebody', async () => {
  const slug = `near${serial++}`
  const sender = await newSender(service, slug, {
    ...testSettings,
    limits: { ...testSettings.limits, daily: 1 },
  })
  await send(service.apiUrl, JSON.stringify(validBody()), { authorization: `Bearer ${sender.key}` })
  const key = await ask(service, `POST /v1/apps/${slug}/keys`, {
    token: admin(),
    body: { name: 'short', expiresAt: new Date(service.store.now() + 86_400_000).toISOString() },
  })
  await ask(service, `PATCH /v1/apps/${slug}`, { token: admin(), body: { status: 'disabled' } })
  const { body } = await ask(service, 'GET /v1/status', { token: admin() })
  type Condition = { kind: string; message: string; apps: string[]; urgent: boolean }
  const isOfSlug = ({ apps }: Condition) => apps.includes(slug)
  const ofSlug: Condition[] = body.attention.filter(isOfSlug)
  const kinds = ofSlug.map(({ kind }) => kind)
  assert.deepEqual(kinds, ['daily_limit_near', 'mail_held', 'key_expires'])
  await ask(service, `PATCH /v1/apps/${slug}`, { token: admin(), body: { status: 'active' } })
  await ask(service, `POST /v1/keys/${key.body.id}/replace`, { token: admin(), body: {} })
  service.advance(60_000)
  await eventually(async () => {
    const { attention } = (await ask(service, 'GET /v1/status', { token: admin() })).body
    const isLate = attention.some(({ kind, urgent }: Condition) => /^mail_late|^no_/.test(kind) && urgent)
    return isLate && !attention.some((found: Condition) => isOfSlug(found) && found.kind === 'key_expires')
  })
  assert.match(ofSlug.at(-1)?.message ?? '', /^The key short of /)
  assert.equal(body.ok, false)
})

test('no secret, link, recipient or name stands in a later answer, a log, an audit entry, a metric or the database', async (t) => {
  const database = join(temporaryFolder(t), 'postern.db')
  const relay = await startSmtpServer(t)
  const env = {
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}`,
    POSTERN_DATABASE_URL: `sqlite:${database}`,
  }
  const server = await startServe(t, env)
  const own = (await posternJson<{ token: string }>(server.env, ['token', 'create', 'canary', '--role', 'admin'])).token
  const urls = { urls: { console: server.console } } as Parameters<typeof ask>[0]
  const made = await ask(urls, 'POST /v1/apps/acme/keys', { token: own, body: { name: 'canary' } })
  const second = await ask(urls, `POST /v1/keys/${made.body.id}/replace`, { token: own, body: {} })
  const minted = await ask(urls, 'POST /v1/tokens', { token: own, body: { name: 'more', role: 'reader' } })
  const invitation = {
    to: 'canary.recipient@example.com',
    type: 'organisation_invite',
    url: 'https://app.acme.test/?token=canary-link',
    organisationName: 'Canary Organisation',
    inviterName: 'Canary Inviter',
  }
  const posted = await send(`${server.api}/v1/email`, JSON.stringify(validBody(invitation)), {
    authorization: `Bearer ${made.body.key}`,
  })
  assert.equal(posted.status, 202)
  await eventually(() => relay.received.length === 1)
  const secrets = [
    ...[own, made.body.key, second.body.key, minted.body.token, 'canary.recipient', 'canary-link'],
    ...['Canary Organisation', 'Canary Inviter'],
  ]
  const later: string[] = [server.output()]
  const reads = operationNames.filter((operation) => findOperation(operation).method === 'GET')
  const values: Record<string, string> = {
    app: 'acme',
    key: made.body.id,
    email: posted.headers.get('email-id') ?? '',
  }
  for (const operation of reads) {
    const path = findOperation(operation).path.replace(/\{(\w+)\}/g, (_, each: string) => values[each] ?? '')
    later.push((await ask(urls, `GET ${path}`, { token: own })).text)
  }
  const find = { to: invitation.to }
  const found = await ask(urls, 'POST /v1/emails/find', { token: own, body: find })
  assert.equal(found.body.items.length, 1)
  for (const body of [
    { key: second.body.key },
    { kye: second.body.key },
    { key: `${second.body.key}${'x'.repeat(200)}` },
  ])
    later.push((await ask(urls, 'POST /v1/keys/find', { token: own, body })).text)
  const unknown = newToken()
  await ask(urls, 'GET /v1/apps', { token: unknown })
  later.push(found.text, await (await fetch(`${server.ops}/metrics`)).text(), server.output())
  for (const file of readdirSync(dirname(database))) later.push(readFileSync(join(dirname(database), file), 'latin1'))
  for (const text of later) for (const secret of [...secrets, unknown]) assert.ok(!text.includes(secret), secret)
})

test('docs/management.md as a new user follows it, line by line', async (t) => {
  const relay = await startSmtpServer(t)
  const server = await startServe(t, { POSTERN_SMTP_URL: `smtp://127.0.0.1:${relay.port}` })
  const page = readFileSync(join(root, 'docs/management.md'), 'utf8')
  const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block)
  const script = join(temporaryFolder(t), 'script.sh')
  const postern = `postern() { ${command.map((word) => `'${word}'`).join(' ')} "$@"; }`
  const lines = blocks
    .join('\necho\n')
    .replace('http://127.0.0.1:4022', server.console)
    .replaceAll('YOUR@ADDRESS', 'you@example.com')
  writeFileSync(script, `set -euo pipefail\n${postern}\n${lines.replaceAll('curl -sS', 'curl -sS --fail-with-body')}`)
  const env = { PATH: process.env.PATH ?? '', ...server.env }
  await posternJson(server.env, ['app', 'disable', 'acme'])
  await posternJson(server.env, ['app', 'delete', 'acme', '--yes'])
  const { stdout } = await promisify(execFile)('bash', [script], { env, cwd: dirname(script) })
  for (const expected of [
    /"slug":"acme","status":"active","version":1/,
    /\{"email":"em_/,
    /"recipient":"rc_/,
    /"explanation":"/,
    /"version":2.*"daily":20000/,
    /"name":"production".*"revokedAt":"2/,
  ])
    assert.match(stdout, expected)
})
