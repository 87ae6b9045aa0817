/**
 * Every operation of the management API, for every kind of caller. The roles that operations need stand here
 * once more, so that nobody changes one by accident.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { App } from '../../src/domain/app/app.ts'
import { newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import type { DeliveryOutcome } from '../../src/domain/delivery/outcome.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import { type AppId, newId } from '../../src/domain/id.ts'
import { hashToken, newToken, type Role, roles } from '../../src/domain/operator/management-token.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { findOperation, type OperationName, operationNames } from '../../src/management/operations.ts'
import { engine } from '../support/database.ts'
import {
  ask,
  assertDescribed,
  type ManagementAnswer,
  newManagementToken,
  newPerson,
} from '../support/management.ts'
import { operator } from '../support/operator.ts'
import { newSender, send, startTestService, testSettings, validBody } from '../support/service.ts'

/**
 * The least role, and for whom: a token for the whole service, for the app of the target, or anyone for its
 * own apps; or a person alone, which no token is.
 */
const needs: Record<OperationName, readonly [Role, 'service' | 'app' | 'own' | 'person']> = {
  whoami: ['reader', 'own'],
  'app.list': ['reader', 'own'],
  'app.names': ['reader', 'own'],
  'app.put': ['admin', 'service'],
  'app.show': ['reader', 'app'],
  'app.change': ['operator', 'app'],
  'app.delete': ['admin', 'service'],
  'app.check_link': ['reader', 'app'],
  'app.preview': ['reader', 'app'],
  'app.test_email': ['operator', 'app'],
  'app.usage': ['reader', 'app'],
  'usage.list': ['reader', 'own'],
  'key.list': ['reader', 'app'],
  'key.create': ['operator', 'app'],
  'key.find': ['reader', 'app'],
  'key.show': ['reader', 'app'],
  'key.change': ['operator', 'app'],
  'key.replace': ['operator', 'app'],
  'key.revoke': ['operator', 'app'],
  'email.list': ['reader', 'own'],
  'email.find': ['reader', 'own'],
  'email.show': ['reader', 'app'],
  'email.retry': ['operator', 'app'],
  'email.cancel': ['operator', 'app'],
  'email.retry_all': ['operator', 'own'],
  'refusal.list': ['reader', 'app'],
  'refusal.show': ['reader', 'app'],
  'activity.show': ['reader', 'own'],
  'feedback.show': ['reader', 'service'],
  'feedback.read': ['operator', 'service'],
  'suppression.list': ['reader', 'own'],
  'suppression.find': ['reader', 'own'],
  'suppression.add': ['operator', 'app'],
  'suppression.remove': ['operator', 'app'],
  'suppression.clear': ['operator', 'own'],
  'hook.list': ['reader', 'app'],
  'hook.connect': ['operator', 'app'],
  'hook.check': ['reader', 'app'],
  'webhook.list': ['reader', 'app'],
  'webhook.secret': ['admin', 'app'],
  'webhook.test': ['operator', 'app'],
  'domain.show': ['reader', 'app'],
  'domain.check': ['operator', 'app'],
  'domain.add_key': ['admin', 'service'],
  'domain.activate_key': ['admin', 'service'],
  'domain.remove_key': ['admin', 'service'],
  'status.show': ['reader', 'own'],
  'queue.show': ['reader', 'own'],
  'checks.run': ['operator', 'service'],
  'audit.list': ['reader', 'own'],
  'token.list': ['admin', 'service'],
  'token.create': ['admin', 'service'],
  'token.revoke': ['admin', 'service'],
  'person.list': ['admin', 'service'],
  'person.invite': ['admin', 'service'],
  'person.change': ['admin', 'service'],
  'person.link': ['admin', 'service'],
  'person.made': ['admin', 'service'],
  'person.remove_passkey': ['admin', 'service'],
  'account.remove_passkey': ['reader', 'person'],
  'session.list': ['admin', 'service'],
  'session.end': ['admin', 'service'],
}

const service = await startTestService({ after }, { roles: new Set(['api', 'console']) })
const { store } = service
let serial = 0

const webhookUrl = 'https://app.acme.test/postern'

/** An app that nothing else uses, with a key, an email that is deferred, and a token that may be revoked. */
async function newTarget() {
  const slug = `app${serial++}`
  const domain = `${slug}.test` // apps of one domain share its keys
  const from = { name: 'Acme', address: `auth@${domain}` }
  const sender = await newSender(service, slug, { ...testSettings, from, webhookUrl })
  await store.setWebhookSecret({ app: sender.app.id, sealed: '', oldUntil: 0 }, operator)
  const key = { domain, selector: 'p1', algorithm: 'ed25519', publicKey: '', sealed: '' } as const
  await store.addSigningKey({ ...key, app: sender.app.id }, operator)
  const headers = { authorization: `Bearer ${sender.key}` }
  const posted = await send(service.apiUrl, JSON.stringify(validBody()), headers)
  const deferred: DeliveryOutcome = {
    kind: 'deferred',
    reply: parseReply('451 later'),
    relay: 'relay:25',
    ambiguous: false,
    waitMs: 600_000,
  }
  const request = newId('req', store.now())
  const refused = { requestId: request, at: store.now(), app: sender.app.id, key: sender.keyId }
  await store.addRefusals([{ ...refused, code: 'url_not_allowed', issues: [], origin: 'https://a.test' }])
  const claim = () => store.claimDue({ max: 500, perApp: 500, leases: [] })
  for (let { claims } = await claim(); claims.length > 0; { claims } = await claim())
    for (const each of claims) await store.recordOutcome(each, deferred)
  const token = await store.createToken(
    {
      hash: hashToken(newToken()),
      name: `target ${serial}`,
      role: 'reader',
      apps: null,
      expiresAt: store.now() + 1e6,
    },
    operator,
  )
  const suppression = await store.setSuppression(
    {
      ...{ app: sender.app.id, recipient: store.nameRecipient('ada@example.com' as EmailAddress) },
      ...{ destination: 'other', until: store.now() + 1e6 },
    },
    operator,
  )
  return {
    suppression: suppression?.id ?? '',
    app: sender.app,
    key: sender.keyId,
    deliveryKey: sender.key,
    email: posted.headers.get('email-id') ?? '',
    request,
    token: token === 'name_taken' ? '' : token.id,
    ...(await newPerson(service)),
  }
}
type Target = Awaited<ReturnType<typeof newTarget>>

const settings = { name: testSettings.name, from: testSettings.from }

const bodies: Partial<Record<OperationName, (target: Target) => unknown>> = {
  'app.put': () => settings,
  'app.change': () => ({ supportContact: 'help@acme.test' }),
  'app.check_link': () => ({ url: 'https://app.acme.test/?token=x' }),
  'app.preview': () => ({ type: 'magic_link' }),
  'app.test_email': () => ({ to: 'someone@example.com' }),
  'key.create': () => ({ name: `key ${serial++}` }),
  'key.find': ({ deliveryKey }) => ({ key: deliveryKey }),
  'key.change': () => ({ name: `key ${serial++}` }),
  'feedback.read': () => ({ report: 'Subject: nothing', dryRun: true }),
  'key.replace': () => ({}),
  'email.find': () => ({ to: 'ada@example.com' }),
  'email.retry_all': () => ({}),
  'suppression.find': () => ({ to: 'ada@example.com' }),
  'suppression.add': ({ app }) => ({ to: 'bob@example.com', app: app.id }),
  'suppression.clear': () => ({ reason: 'operator' }),
  'domain.add_key': () => ({ algorithm: 'ed25519' }),
  'domain.activate_key': () => ({ unchecked: true }),
  'webhook.secret': () => ({}),
  'webhook.test': () => ({}),
  'hook.connect': () => ({}),
  'hook.check': () => ({}),
  'token.create': () => ({ name: `token ${serial++}`, role: 'reader' }),
  'person.invite': () => ({ name: `invited ${serial++}`, role: 'reader' }),
  'person.change': () => ({ role: 'operator' }),
  'person.link': () => ({}),
}

function requestFor(name: OperationName, target: Target, asId = true) {
  const { method, path } = findOperation(name)
  const values: Record<string, string> = {
    app: asId ? target.app.id : target.app.slug,
    new: `new${serial++}`,
    key: target.key,
    email: target.email,
    request: target.request,
    token: target.token,
    person: target.person,
    passkey: target.passkey,
    session: target.session,
    suppression: target.suppression,
    selector: 'p1',
    system: 'kratos',
  }
  const body = bodies[name]?.(target)
  return {
    line: `${method} ${(name === 'app.put' ? path.replace('{app}', '{new}') : path).replace(/\{(\w+)\}/g, (_, each: string) => values[each] ?? '')}`,
    ...(body !== undefined && { body }),
  }
}

async function run(
  name: OperationName,
  target: Target,
  token: string | undefined,
): Promise<ManagementAnswer> {
  if (name === 'app.delete') await store.updateApp(target.app.id, { status: 'disabled' }, operator)
  const { line, body } = requestFor(name, target)
  const answer = await ask(service, line, { ...(token && { token }), body })
  assertDescribed(name, answer)
  return answer
}

test('the table of needs names every operation', () => {
  assert.deepEqual(Object.keys(needs).sort(), [...operationNames].sort())
})

const callers = roles.flatMap((role) =>
  (['service', 'in scope', 'out of scope'] as const).map((scope) => ({ role, scope })),
)
const isOk = (status: number) => status === 200 || status === 201

/**
 * The role and the app of a target are judged outside the store. Where callers see what is their own, its
 * statements choose, and they differ by engine.
 */
const judged = operationNames.filter((name) => engine === 'sqlite' || needs[name][1] === 'own')

for (const name of judged) {
  const [least, whom] = needs[name]
  test(`${name}: ${least}, ${whom}`, async () => {
    const elsewhere = await newTarget()
    for (const { role, scope } of callers) {
      const target = await newTarget()
      const apps: Record<typeof scope, AppId[] | null> = {
        service: null,
        'in scope': [target.app.id],
        'out of scope': [elsewhere.app.id],
      }
      const token = await newManagementToken(service, role, apps[scope])
      const answer = await run(name, target, token)
      const expected = expectedOf(name, role, scope)
      const cell = `${name} for ${role}, ${scope}: ${answer.text}`
      if (expected === 'ok') assert.ok(isOk(answer.status), cell)
      else assert.equal(answer.status, expected, cell)
      if (answer.status === 404) await assertLikeAbsent(name, target, { token, answer })
      if (whom === 'own' && scope === 'out of scope' && isOk(answer.status))
        assert.ok(!answer.text.includes(target.app.id), `${cell} names an app outside its scope`)
    }
  })

  test(`${name}: no token, or none that holds`, async () => {
    const target = await newTarget()
    const revoked = newToken()
    const wanted = {
      hash: hashToken(revoked),
      name: `revoked ${serial++}`,
      role: 'admin',
      apps: null,
    } as const
    const made = await store.createToken({ ...wanted, expiresAt: store.now() + 1e6 }, operator)
    assert.ok(made !== 'name_taken')
    await store.revokeToken(made.id, operator)
    const expired = newToken()
    const old = {
      ...wanted,
      hash: hashToken(expired),
      name: `expired ${serial++}`,
      expiresAt: store.now() - 1,
    }
    await store.createToken(old, operator)
    for (const token of [undefined, service.key, revoked, expired, newToken(), 'psa_x']) {
      const answer = await run(name, target, token)
      assert.equal(answer.status, 401, answer.text)
      assert.equal(answer.body.error.code, 'invalid_token')
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer/)
    }
  })
}

/** The status, or `ok`. */
function expectedOf(
  name: OperationName,
  role: Role,
  scope: 'service' | 'in scope' | 'out of scope',
): number | 'ok' {
  const [least, whom] = needs[name]
  if (roles.indexOf(role) < roles.indexOf(least)) return 403
  if (whom === 'person') return 404
  if (whom === 'service') return scope === 'service' ? 'ok' : 403
  if (whom === 'app' && scope === 'out of scope') return 404
  if (name === 'audit.list' && scope === 'service' && role !== 'admin') return 403 // of the whole service
  return 'ok'
}

/** The answer for what is out of scope is that for what does not exist, byte for byte. */
async function assertLikeAbsent(
  name: OperationName,
  target: Target,
  { token, answer }: { token: string; answer: ManagementAnswer },
): Promise<void> {
  const absent: Target = {
    ...target,
    app: { ...target.app, id: newId('app', 0) } as App,
    key: newId('key', 0),
    deliveryKey: newDeliveryKey(),
    email: newId('em', 0),
    request: newId('req', 0),
    suppression: newId('sp', 0),
  }
  const { line, body } = requestFor(name, absent)
  const other = await ask(service, line, { token, body })
  assert.equal(other.status, 404)
  const plain = (text: string) => text.replace(/\b(app|key|em|req|sp)_[0-9a-z]{26}/g, '$1_x')
  assert.equal(plain(answer.text), plain(other.text))
  const names = (headers: Headers) => [...headers.keys()].sort()
  assert.deepEqual(names(answer.headers), names(other.headers))
}

test('checks that ran are in the audit', async () => {
  const token = await newManagementToken(service, 'admin')
  const { name } = (await ask(service, 'GET /v1/whoami', { token })).body
  assert.equal((await ask(service, 'POST /v1/checks', { token })).status, 200)
  const { items } = (await ask(service, 'GET /v1/audit?action=checks.run&limit=1', { token })).body
  assert.deepEqual([items[0]?.action, items[0]?.actor.name], ['checks.run', name])
})

test('an operator of an app may not change its sender or its limits', async () => {
  const { app } = await newTarget()
  const token = await newManagementToken(service, 'operator', [app.id])
  for (const body of [
    { from: { address: 'other@example.com' } },
    { envelopeFrom: 'bounces@example.com' },
    { name: 'Another Company' },
    { limits: { daily: 9 } },
  ]) {
    const answer = await ask(service, `PATCH /v1/apps/${app.slug}`, { token, body })
    assert.equal(answer.status, 403, answer.text)
    assert.match(answer.body.error.message, /Only the role admin may change name, from, envelopeFrom, limits/)
  }
  const allowed = { allowedUrls: ['https://new.acme.test'], status: 'disabled' }
  assert.equal((await ask(service, `PATCH /v1/apps/${app.slug}`, { token, body: allowed })).status, 200)
})

test('filters by an app or key out of scope answer like those by none', async () => {
  const [own, foreign] = [await newTarget(), await newTarget()]
  const token = await newManagementToken(service, 'admin', [own.app.id])
  for (const path of [
    `/v1/emails?app=${foreign.app.slug}`,
    `/v1/emails?key=${foreign.key}`,
    `/v1/audit?app=${foreign.app.slug}`,
  ])
    assert.equal((await ask(service, `GET ${path}`, { token })).status, 404, path)
  assert.equal((await ask(service, `GET /v1/emails?key=${own.key}`, { token })).body.items.length, 1)
  const all = await ask(service, 'GET /v1/emails', { token })
  assert.deepEqual(
    all.body.items.map((item: { id: string }) => item.id),
    [own.email],
  )
  const retried = await ask(service, 'POST /v1/emails/retry', { token, body: { app: foreign.app.slug } })
  assert.equal(retried.status, 404)
})

test('suppressions for all apps are an admin’s of the whole service; others neither see nor change them', async () => {
  const { app } = await newTarget()
  const body = { to: 'eve@gmail.com' }
  const token = (role: Role, apps: AppId[] | null) => newManagementToken(service, role, apps)
  const [admin, operates, scoped] = [
    await token('admin', null),
    await token('operator', null),
    await token('admin', [app.id]),
  ]
  const run = (line: string, by: string, sent?: object) =>
    ask(service, line, { token: by, ...(sent && { body: sent }) })
  for (const by of [operates, scoped]) {
    const refused = await run('POST /v1/suppressions', by, body)
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'not_permitted'])
  }
  const made = await run('POST /v1/suppressions', admin, body)
  assert.deepEqual([made.body.app, made.body.destination], [null, 'gmail'])
  const remove = `DELETE /v1/suppressions/${made.body.id}`
  assert.equal((await run(remove, scoped)).status, 404)
  assert.equal((await run(remove, operates)).status, 403)
  const seen = async (by: string) =>
    (await run('POST /v1/suppressions/find', by, body)).body.items.map(({ id }: { id: string }) => id)
  assert.deepEqual([await seen(operates), await seen(scoped)], [[made.body.id], []])
  const list = async (by: string) =>
    (await run('GET /v1/suppressions?destination=gmail', by)).body.items.length
  assert.deepEqual([await list(operates), await list(scoped)], [1, 0])
  for (const by of [operates, scoped]) {
    const cleared = await run('POST /v1/suppressions/clear', by, { destination: 'gmail' })
    assert.equal(cleared.body.removed, 0)
  }
  const empty = await run('POST /v1/suppressions/clear', admin, {})
  assert.deepEqual([empty.status, empty.body.error.issues[0].code], [400, 'no_filter'])
  const own = (await store.listEmails({ app: app.id, limit: 1 })).items[0]?.id
  assert.deepEqual((await run(`GET /v1/emails/${own}`, scoped)).body.suppressions.length, 1)
  assert.equal((await run(remove, admin)).status, 200)
})
