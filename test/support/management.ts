/** The management API for a test: requests with a token, each answer held against the document of the API. */
import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { type AppId, newId } from '../../src/domain/id.ts'
import { hashToken, newToken, type Role } from '../../src/domain/operator/management-token.ts'
import {
  hashSessionSecret,
  hashSignInCode,
  newSessionSecret,
  newSignInCode,
} from '../../src/domain/operator/sign-in.ts'
import { checkSchema } from '../../src/management/operation/check-schema.ts'
import { findOperation, type OperationName } from '../../src/management/operations.ts'
import { newDocument } from '../../src/web/operators/api/openapi.ts'
import { operator } from './operator.ts'
import type { TestService } from './service.ts'

export const managementDocument = newDocument('0.0.0')
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
ajv.addSchema({ $id: 'management', components: managementDocument.components })
const validators = new Map<string, ValidateFunction>()

/** Fails if the document does not describe this answer. */
export function assertDescribed(operation: OperationName, answer: ManagementAnswer): void {
  const { status, body, headers } = answer
  const all = Object.values(managementDocument.paths).flatMap((methods) => Object.values(methods))
  const response = all.find(({ operationId }) => operationId === operation)?.responses[String(status)]
  assert.ok(response, `the document does not know ${operation} ${status}: ${answer.text}`)
  const name = `${operation} ${status}`
  const schema = JSON.parse(
    JSON.stringify(response.content['application/json'].schema).replaceAll('"#/', '"management#/'),
  )
  const check = validators.get(name) ?? ajv.compile(schema)
  validators.set(name, check)
  assert.ok(check(body), `${name}: ${ajv.errorsText(check.errors)} in ${answer.text}`)
  // The document is open for later fields; today there are none but those of the operation.
  if (status < 300) assert.deepEqual(checkSchema(findOperation(operation).answer, body), { ok: true, value: body })
  assert.equal(headers.get('content-type'), 'application/json')
  assert.equal(headers.get('cache-control'), 'no-store')
}

export type ManagementAnswer = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Read as a client in JavaScript would; `assertDescribed` compares the whole with its schema. */
  // biome-ignore lint/suspicious/noExplicitAny: only the path says which answer it is, and tests read all
  readonly body: any
}

export type Sent = {
  readonly token?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends one request. */
export async function ask(
  service: Pick<TestService, 'urls'>,
  line: string,
  { token, body, headers = {} }: Sent = {},
): Promise<ManagementAnswer> {
  const [method = 'GET', path = '/'] = line.split(' ')
  const response = await fetch(`${service.urls.console}${path}`, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
}

let serial = 0

/** A token, made directly in the store. */
export async function newManagementToken(
  { store }: Pick<TestService, 'store'>,
  role: Role = 'admin',
  apps: readonly AppId[] | null = null,
): Promise<string> {
  const token = newToken()
  const name = `test ${serial++}`
  const expiresAt = store.now() + 86_400_000
  await store.createToken({ hash: hashToken(token), name, role, apps, expiresAt }, operator)
  return token
}

/** A person with a passkey, a session and an open link, made directly in the store. */
export async function newPerson({ store }: Pick<TestService, 'store'>) {
  const person = await store.createPerson({ name: `person ${serial++}`, role: 'reader', apps: null }, operator)
  if (person === 'name_taken') throw new Error('the name is taken')
  const passkey = `passkey-${serial++}`
  await store.addPasskey({ id: passkey, person: person.id, publicKey: 'k', counter: 0, name: 'laptop' }, operator)
  const hash = hashSignInCode(newSignInCode())
  const expiresAt = store.now() + 3_600_000 // longer than any test run: a listing must not change by itself
  await store.createSignInCode({ hash, person: person.id, expiresAt }, operator)
  const secret = newSessionSecret()
  const session = await store.signInByCode(hash, {
    ...{ hash: hashSessionSecret(secret), agent: 'test', requestId: newId('req', 0) },
  })
  if (session === null) throw new Error('no session began')
  const open = { hash: hashSignInCode(newSignInCode()), person: person.id, expiresAt }
  await store.createSignInCode(open, operator)
  return { person: person.id, passkey, session: session.id, secret }
}

/** Tokens of admins in turn, so that a test with many requests reaches no rate. */
export async function adminTokens(service: Pick<TestService, 'store'>): Promise<() => string> {
  const tokens = await Promise.all(Array.from({ length: 20 }, () => newManagementToken(service)))
  let next = 0
  return () => tokens[next++ % tokens.length] ?? ''
}
