/**
 * The management API against a model: two clients act in any order on apps, keys and tokens, each with the
 * version that it has read last, and race for the same version. The audit must have one entry for each change
 * of the model.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { adminTokens, ask, type ManagementAnswer } from '../../support/management.ts'
import { startTestService } from '../../support/service.ts'

const service = await startTestService({ after }, { roles: new Set(['console']) })
const seed = Number(process.env.POSTERN_TEST_SEED ?? Math.floor(Math.random() * 1e6))

type AppState = { id: string; name: string; status: 'active' | 'disabled'; version: number }
type KeyState = { slug: string; name: string; revoked: boolean }
type Model = {
  readonly apps: Map<string, AppState>
  readonly keys: Map<string, KeyState>
  readonly tokens: Map<string, { name: string; revoked: boolean }>
  /** The version of each app that each client has read last. */
  readonly known: readonly Map<string, number>[]
  changes: number
}
/** The tokens of each client, in turn. */
type Real = { readonly tokens: readonly (() => string)[] }
type Command = fc.AsyncCommand<Model, Real>

const from = { name: 'Acme', address: 'auth@acme.test' }
const clientOf = fc.constantFrom(0, 1)
const slugOf = fc.constantFrom('one', 'two', 'three')
const nameOf = fc.constantFrom('A', 'B', 'C')

/** A command that is always possible; its text is its name and arguments. */
const command = (text: string, run: (model: Model, real: Real) => Promise<void>): Command => ({
  check: () => true,
  run,
  toString: () => text,
})

const as = ({ tokens }: Real, client: number) => tokens[client]?.() ?? ''
const sees = (model: Model, client: number, slug: string, version: number) => model.known[client]?.set(slug, version)

function assertApp(answer: ManagementAnswer, state: AppState): void {
  const { name, status, version } = answer.body
  assert.deepEqual({ name, status, version }, { name: state.name, status: state.status, version: state.version })
  assert.equal(answer.headers.get('etag'), `"${state.version}"`)
}

/** PUT: with the version that the client knows, or without a condition. */
const put = (client: number, slug: string, name: string, conditional: boolean): Command =>
  command(`put ${client} ${slug} ${name} ${conditional}`, async (model, real) => {
    const known = model.known[client]?.get(slug)
    const headers = conditional && known !== undefined ? { 'if-match': `"${known}"` } : {}
    const answer = await ask(service, `PUT /v1/apps/${slug}`, {
      token: as(real, client),
      body: { name, from },
      headers,
    })
    const state = model.apps.get(slug)
    if ('if-match' in headers && state?.version !== known) return void assert.equal(answer.status, 412)
    if (state === undefined) {
      assert.equal(answer.status, 201, answer.text)
      const made: AppState = { id: answer.body.id, name, status: 'active', version: 1 }
      model.apps.set(slug, made)
      model.changes += 1
    } else if (state.name !== name) change(model, state, { name })
    assertApp(answer, model.apps.get(slug) as AppState)
    sees(model, client, slug, answer.body.version)
  })

function change(model: Model, state: AppState, values: Partial<AppState>): void {
  Object.assign(state, values, { version: state.version + 1 })
  model.changes += 1
}

const patch = (client: number, slug: string, values: Partial<Pick<AppState, 'name' | 'status'>>): Command =>
  command(`patch ${client} ${slug} ${JSON.stringify(values)}`, async (model, real) => {
    const known = model.known[client]?.get(slug)
    const headers = known === undefined ? {} : { 'if-match': `"${known}"` }
    const answer = await ask(service, `PATCH /v1/apps/${slug}`, {
      token: as(real, client),
      body: values,
      headers,
    })
    const state = model.apps.get(slug)
    if (state === undefined) return void assert.equal(answer.status, 404)
    if (known !== undefined && known !== state.version) return void assert.equal(answer.status, 412)
    const differs = Object.entries(values).some(([name, value]) => state[name as 'name'] !== value)
    if (differs) change(model, state, values)
    assertApp(answer, state)
    sees(model, client, slug, state.version)
  })

const show = (client: number, slug: string): Command =>
  command(`show ${client} ${slug}`, async (model, real) => {
    const answer = await ask(service, `GET /v1/apps/${slug}`, { token: as(real, client) })
    const state = model.apps.get(slug)
    if (state === undefined) return void assert.equal(answer.status, 404)
    assertApp(answer, state)
    sees(model, client, slug, state.version)
  })

const race = (slug: string): Command =>
  command(`race ${slug}`, async (model, real) => {
    const state = model.apps.get(slug)
    if (state === undefined) return
    const headers = { 'if-match': `"${state.version}"` }
    const names = ['left', 'right'].map((side) => `${side} ${state.version}`)
    const answers = await Promise.all(
      names.map((name, client) =>
        ask(service, `PATCH /v1/apps/${slug}`, { token: as(real, client), body: { name }, headers }),
      ),
    )
    const winner = answers.findIndex(({ status }) => status === 200)
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 412])
    change(model, state, { name: names[winner] ?? '' })
  })

const remove = (client: number, slug: string): Command =>
  command(`remove ${client} ${slug}`, async (model, real) => {
    const answer = await ask(service, `DELETE /v1/apps/${slug}`, { token: as(real, client) })
    const state = model.apps.get(slug)
    const expected = state === undefined ? 404 : state.status === 'active' ? 409 : 200
    assert.equal(answer.status, expected, answer.text)
    if (expected !== 200) return
    model.apps.delete(slug)
    for (const known of model.known) known.delete(slug)
    for (const [id, key] of model.keys) if (key.slug === slug) model.keys.delete(id)
    model.changes += 1
  })

const makeKey = (client: number, slug: string, name: string): Command =>
  command(`key ${client} ${slug} ${name}`, async (model, real) => {
    const sent = { token: as(real, client), body: { name } }
    const answer = await ask(service, `POST /v1/apps/${slug}/keys`, sent)
    const isTaken = [...model.keys.values()].some((key) => key.slug === slug && key.name === name && !key.revoked)
    const expected = !model.apps.has(slug) ? 404 : isTaken ? 409 : 201
    assert.equal(answer.status, expected, answer.text)
    if (expected !== 201) return
    model.keys.set(answer.body.id, { slug, name, revoked: false })
    model.changes += 1
  })

const revokeKey = (client: number, pick: number): Command =>
  command(`revoke key ${client} ${pick}`, async (model, real) => {
    const [id, key] = [...model.keys][pick % Math.max(1, model.keys.size)] ?? []
    if (id === undefined || key === undefined) return
    const answer = await ask(service, `DELETE /v1/keys/${id}`, { token: as(real, client) })
    assert.equal(answer.status, 200, answer.text)
    assert.notEqual(answer.body.revokedAt, null)
    if (!key.revoked) model.changes += 1
    key.revoked = true
  })

const makeToken = (client: number, name: string): Command =>
  command(`token ${client} ${name}`, async (model, real) => {
    const body = { name, role: 'reader' }
    const answer = await ask(service, 'POST /v1/tokens', { token: as(real, client), body })
    const isTaken = [...model.tokens.values()].some((token) => token.name === name && !token.revoked)
    assert.equal(answer.status, isTaken ? 409 : 201, answer.text)
    if (isTaken) return
    model.tokens.set(answer.body.id, { name, revoked: false })
    model.changes += 1
  })

const revokeToken = (client: number, pick: number): Command =>
  command(`revoke token ${client} ${pick}`, async (model, real) => {
    const [id, token] = [...model.tokens][pick % Math.max(1, model.tokens.size)] ?? []
    if (id === undefined || token === undefined) return
    const answer = await ask(service, `DELETE /v1/tokens/${id}`, { token: as(real, client) })
    assert.equal(answer.status, 200, answer.text)
    if (!token.revoked) model.changes += 1
    token.revoked = true
  })

const commands = fc.commands(
  [
    fc.tuple(clientOf, slugOf, nameOf, fc.boolean()).map((args) => put(...args)),
    fc.tuple(clientOf, slugOf, nameOf).map(([client, slug, name]) => patch(client, slug, { name })),
    fc
      .tuple(clientOf, slugOf, fc.constantFrom('active', 'disabled'))
      .map(([client, slug, status]) => patch(client, slug, { status })),
    fc.tuple(clientOf, slugOf).map((args) => show(...args)),
    slugOf.map(race),
    fc.tuple(clientOf, slugOf).map((args) => remove(...args)),
    fc.tuple(clientOf, slugOf, nameOf).map((args) => makeKey(...args)),
    fc.tuple(clientOf, fc.nat(20)).map((args) => revokeKey(...args)),
    fc.tuple(clientOf, nameOf).map((args) => makeToken(...args)),
    fc.tuple(clientOf, fc.nat(20)).map((args) => revokeToken(...args)),
  ],
  { maxCommands: 80, size: 'max' },
)

/** Removes what the last run left. */
async function clean(token: () => string): Promise<void> {
  for (const { slug } of (await ask(service, 'GET /v1/apps', { token: token() })).body.items) {
    await ask(service, `PATCH /v1/apps/${slug}`, { token: token(), body: { status: 'disabled' } })
    await ask(service, `DELETE /v1/apps/${slug}`, { token: token() })
  }
  for (const { id, name, revokedAt } of (await ask(service, 'GET /v1/tokens?limit=200', { token: token() })).body
    .items) {
    if (revokedAt === null && name.length === 1) await ask(service, `DELETE /v1/tokens/${id}`, { token: token() })
  }
}

async function countAudit(): Promise<number> {
  const { items, next } = await service.store.listAudit({ limit: 1999 })
  assert.equal(next, null)
  return items.length
}

test(`two clients, in any order, change what the model says (seed ${seed})`, async () => {
  const numRuns = Number(process.env.POSTERN_MODEL_RUNS ?? 15)
  const [own, other] = [await adminTokens(service), await adminTokens(service)]
  const check = fc.asyncProperty(commands, async (chosen) => {
    await clean(own)
    const before = await countAudit()
    const model: Model = {
      apps: new Map(),
      keys: new Map(),
      tokens: new Map(),
      known: [new Map(), new Map()],
      changes: 0,
    }
    await fc.asyncModelRun(() => ({ model, real: { tokens: [own, other] } }), chosen)
    const listed = (await ask(service, 'GET /v1/apps', { token: own() })).body.items
    assert.deepEqual(
      listed.map((app: AppState & { slug: string }) => [app.slug, app.name, app.version]).sort(),
      [...model.apps].map(([slug, { name, version }]) => [slug, name, version]).sort(),
    )
    assert.equal((await countAudit()) - before, model.changes, 'one entry for each change')
  })
  await fc.assert(check, { seed, numRuns, endOnFailure: true })
})
