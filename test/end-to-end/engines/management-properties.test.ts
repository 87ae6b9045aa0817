/**
 * Properties of the management API, from its schemas: no input makes a 5xx, each answer is described, one
 * fault is named, and repeating PUT, PATCH or DELETE changes nothing.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { hashToken, newToken } from '../../../src/domain/operator/management-token.ts'
import { noBody } from '../../../src/management/operation/operation.ts'
import { findOperation, type OperationName, operationNames } from '../../../src/management/operations.ts'
import { faultyFor, type Schema, validFor } from '../../support/arbitrary.ts'
import { engine } from '../../support/database.ts'
import { ask, assertDescribed, newManagementToken, newPerson } from '../../support/management.ts'
import { operator } from '../../support/operator.ts'
import type { TestService } from '../../support/service.ts'
import { newSender, send, startTestService, validBody } from '../../support/service.ts'

const service: TestService = await startTestService({ after }, { roles: new Set(['api', 'console']) })
const { store } = service
const seed = Number(process.env.POSTERN_TEST_SEED ?? Math.floor(Math.random() * 1e6))
const options = (usual: number) => ({ numRuns: Number(process.env.POSTERN_PROPERTY_RUNS ?? usual), seed })
let serial = 0

/** A fresh token for each case, so that none reaches its rate. */
const token = () => newManagementToken(service)

async function newTarget() {
  const { app, key, keyId } = await newSender(service, `app${serial++}`)
  const posted = await send(service.apiUrl, JSON.stringify(validBody()), { authorization: `Bearer ${key}` })
  const made = await store.createToken(
    {
      hash: hashToken(newToken()),
      name: `target ${serial++}`,
      role: 'reader',
      apps: null,
      expiresAt: store.now() + 1e6,
    },
    operator,
  )
  return {
    app: app.slug,
    slug: app.slug,
    key: keyId,
    email: posted.headers.get('email-id') ?? '',
    token: made === 'name_taken' ? '' : made.id,
    ...(await newPerson(service)),
  }
}
type Target = Awaited<ReturnType<typeof newTarget>>

const pathOf = (name: OperationName, values: Readonly<Record<string, string>>) =>
  findOperation(name).path.replace(/\{(\w+)\}/g, (_, each: string) => encodeURIComponent(values[each] ?? ''))

const schemaOf = (schema: unknown) => JSON.parse(JSON.stringify(schema)) as Schema
/** Nobody waits longer than this for an email that does not come. */
const waitMaxS = 0.1
const soon = (query: object): object => {
  const given = (query as { timeout?: unknown }).timeout
  return given !== undefined && !(Number(given) > waitMaxS) ? query : { ...query, timeout: waitMaxS }
}
const queryText = (query: unknown): string => {
  const entries = Object.entries(query as object).map(([name, value]) => [name, String(value)])
  return entries.length === 0 ? '' : `?${new URLSearchParams(entries)}`
}

for (const name of operationNames) {
  const { body, method, query } = findOperation(name)
  const hasBody = body !== noBody
  const bodySchema = schemaOf(body)
  const anyBody = hasBody ? fc.oneof(validFor(bodySchema), fc.jsonValue()) : fc.constant(undefined)
  const anyQuery = fc.oneof(
    validFor(schemaOf(query)),
    fc.dictionary(fc.string({ maxLength: 9 }), fc.string({ unit: 'grapheme', maxLength: 9 }), { maxKeys: 2 }),
  )

  test(`${name}: nothing makes a 5xx, and every answer is described (seed ${seed})`, async () => {
    const target = await newTarget()
    const anyName = fc.oneof(fc.constant(null), fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }))
    const check = fc.asyncProperty(anyBody, anyQuery, anyName, async (sent, search, other) => {
      const values = other === null ? target : Object.fromEntries(Object.keys(target).map((key) => [key, other]))
      const path = `${pathOf(name, values)}${queryText(name === 'inbox.wait' ? soon(search as object) : search)}`
      if (/\/\.{0,2}(\/|\?|$)/.test(path)) return // another address
      const answer = await ask(service, `${method} ${path}`, {
        token: await token(),
        body: plain(sent, target),
      })
      assert.ok(answer.status < 500, answer.text)
      assertDescribed(name, answer)
    })
    await fc.assert(check, options(10))
  })

  // The schema refuses them: one target does for all, and one engine.
  const faulty = hasBody && engine === 'sqlite' ? faultyFor(bodySchema) : null
  if (faulty !== null)
    test(`${name}: one fault is answered 400 and named (seed ${seed})`, async () => {
      const target = await newTarget()
      const check = fc.asyncProperty(faulty, async ({ value, field }) => {
        const answer = await ask(service, `${method} ${pathOf(name, target)}`, {
          token: await token(),
          body: value,
        })
        assert.equal(answer.status, 400, answer.text)
        const fields = answer.body.error.issues.map((issue: { field: string }) => issue.field)
        assert.ok(
          fields.some((each: string) => each === field || each.startsWith(`${field}.`)),
          `${field} is not among ${fields}`,
        )
        assertDescribed(name, answer)
      })
      await fc.assert(check, options(10))
    })
}

/** Tried beside the generated ones, of which a seed may hold none that is accepted. */
const alwaysAccepted: Partial<Record<OperationName, object>> = {
  'app.put': { name: 'Acme', from: { name: 'Acme', address: 'auth@acme.test' } },
  'app.change': { supportContact: 'help@acme.test' },
}

const shows: Partial<Record<OperationName, (target: Target) => string>> = {
  'app.put': ({ app }) => `GET /v1/apps/${app}`,
  'app.change': ({ app }) => `GET /v1/apps/${app}`,
  'key.change': ({ key }) => `GET /v1/keys/${key}`,
  'key.revoke': ({ key }) => `GET /v1/keys/${key}`,
  'person.change': () => 'GET /v1/people?limit=200',
  'token.revoke': () => 'GET /v1/tokens?limit=200',
}

for (const [name, show] of Object.entries(shows) as [OperationName, (target: Target) => string][]) {
  const { body, method } = findOperation(name)
  test(`${name}: repeated, it changes nothing (seed ${seed})`, async () => {
    const arbitrary = body === noBody ? fc.constant(undefined) : validFor(schemaOf(body))
    let done = 0
    const check = fc.asyncProperty(arbitrary, async (sent) => {
      const target = await newTarget()
      const admin = await token()
      const send = () => ask(service, `${method} ${pathOf(name, target)}`, { token: admin, body: plain(sent, target) })
      const first = await send()
      if (first.status >= 400) return
      done += 1
      const state = async () => [
        // A cursor is sealed with a random nonce.
        (await ask(service, show(target), { token: admin })).text.replace(/"cu_[^"]*"/, 'null'),
        (await store.listAudit({ limit: 1 })).items[0]?.id,
      ]
      const before = await state()
      const second = await send()
      assert.equal(second.status, 200)
      assert.equal(second.text, first.text)
      assert.deepEqual(await state(), before)
      if (name === 'app.put') assert.equal(second.text, before[0], 'GET answers what PUT answered')
    })
    const accepted = alwaysAccepted[name]
    await fc.assert(check, { ...options(25), ...(accepted && { examples: [[accepted]] }) })
    assert.ok(done > 0, 'none was accepted')
  })
}

/** A slug in the body must be that of the path. */
const plain = (sent: unknown, { slug }: Target): unknown =>
  typeof sent === 'object' && sent !== null && 'slug' in sent ? { ...sent, slug } : sent
