/** Every operation of the management API, for every kind of caller, as the table of SECURITY.md says. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { freshIf, scopes, verdictOf } from '../../../scripts/roles-table.ts'
import type { App } from '../../../src/domain/app/app.ts'
import { newDeliveryKey } from '../../../src/domain/app/delivery-key.ts'
import { type AppId, newId } from '../../../src/domain/id.ts'
import { hashToken, newToken, type Role, roles } from '../../../src/domain/operator/management-token.ts'
import { always, never } from '../../../src/management/operation/operation.ts'
import { findOperation, type OperationName, operationNames } from '../../../src/management/operations.ts'
import { engine } from '../../support/database.ts'
import { ask, assertDescribed, type ManagementAnswer, newManagementToken } from '../../support/management.ts'
import { operator } from '../../support/operator.ts'
import { startTestService } from '../../support/service.ts'
import { newTarget, requestFor, type Target } from '../../support/targets.ts'

const service = await startTestService({ after }, { roles: new Set(['api', 'console']) })
const { store } = service
let serial = 0

async function run(name: OperationName, target: Target, token: string | undefined): Promise<ManagementAnswer> {
  if (name === 'app.delete') await store.updateApp(target.app.id, { status: 'disabled' }, operator)
  const { line, body } = requestFor(name, target)
  const answer = await ask(service, line, { ...(token && { token }), body })
  assertDescribed(name, answer)
  return answer
}

test('each operation that needs a fresh sign-in at times says when', () => {
  const depending = operationNames.filter((name) => {
    const { outlives } = findOperation(name)
    return outlives !== always && outlives !== never
  })
  assert.deepEqual(Object.keys(freshIf).sort(), depending.sort())
})

const callers = roles.flatMap((role) => scopes.map((scope) => ({ role, scope, isPerson: false })))
const isOk = (status: number) => status === 200 || status === 201

/**
 * The role and the app of a target are judged outside the store. Where callers see what is their own, its
 * statements choose, and they differ by engine.
 */
const leavesOut = (name: OperationName): boolean =>
  verdictOf(name, { role: 'admin', scope: 'another app', isPerson: false }) === 'left out'
const judged = operationNames.filter((name) => engine === 'sqlite' || leavesOut(name))

for (const name of judged) {
  test(`${name}: every role, for its own app, another's and the whole service`, async () => {
    const elsewhere = await newTarget(service)
    for (const caller of callers) {
      const { role, scope } = caller
      const target = await newTarget(service)
      const apps: Record<typeof scope, AppId[] | null> = {
        'own app': [target.app.id],
        'another app': [elsewhere.app.id],
        'whole service': null,
      }
      const token = await newManagementToken(service, role, apps[scope])
      const answer = await run(name, target, token)
      const verdict = verdictOf(name, caller)
      const cell = `${name} for ${role}, ${scope}: ${answer.text}`
      if (verdict === 'forbidden') assert.equal(answer.status, 403, cell)
      else if (verdict === 'absent') assert.equal(answer.status, 404, cell)
      else assert.ok(isOk(answer.status), cell)
      if (answer.status === 404) await assertLikeAbsent(name, target, { token, answer })
      if (verdict === 'left out')
        assert.ok(!answer.text.includes(target.app.id), `${cell} names an app outside its scope`)
    }
  })

  test(`${name}: no token, or none that holds`, async () => {
    const target = await newTarget(service)
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
  const { app } = await newTarget(service)
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
  const [own, foreign] = [await newTarget(service), await newTarget(service)]
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
  const { app } = await newTarget(service)
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
  const list = async (by: string) => (await run('GET /v1/suppressions?destination=gmail', by)).body.items.length
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
