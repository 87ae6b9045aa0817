/**
 * Every page and form of the console, for every role and scope: it answers as the table of roles says of the
 * operations that it calls. Running the page once for an admin finds them.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Scope, scopes, verdictOf } from '../../scripts/roles-table.ts'
import { type Role, roles } from '../../src/domain/operator/management-token.ts'
import { findOperation, type OperationName, operationNames } from '../../src/management/operations.ts'
import { routes } from '../../src/web/operators/console/pages/routes.ts'
import { newVisitor, signIn } from '../support/console.ts'
import { newRecorder } from '../support/console-operations.ts'
import { operator } from '../support/operator.ts'
import { startTestService } from '../support/service.ts'
import { newTarget, type Target } from '../support/targets.ts'

const service = await startTestService({ after }, { isDev: false, roles: new Set(['api', 'console']) })
const { store } = service
let serial = 0

type Line = (typeof routes)[number][0]
type Fields = Readonly<Record<string, string>>

const named = (): Fields => ({ name: `made ${serial++}`, role: 'reader' })
const forms: Partial<Record<Line, (target: Target) => Fields>> = {
  'POST /find': ({ app }) => ({ q: app.slug }),
  'POST /new-app': () => ({ name: `New ${serial++}`, from: 'auth@acme.test' }),
  'POST /apps/:app/test-email': () => ({ to: 'someone@example.com' }),
  'POST /apps/:app/links/add': () => ({ entry: 'https://other.acme.test' }),
  'POST /apps/:app/links/test': () => ({ url: 'https://app.acme.test/?token=x' }),
  'POST /apps/:app/keys': named,
  'POST /apps/:app/domain/prove': ({ app }) => ({ domain: app.settings.senderDomains[0] ?? '' }),
  'POST /apps/:app/domain/keys': () => ({ algorithm: 'ed25519' }),
  'POST /apps/:app/delete': ({ app }) => ({ slug: app.slug }),
  'POST /suppressions': ({ app }) => ({ to: 'bob@example.com', app: app.slug }),
  'POST /suppressions/clear': () => ({ reason: 'operator' }),
  'POST /settings/people': named,
  'POST /settings/people/:person': () => ({ role: 'operator' }),
  'POST /settings/people/:person/passkeys/remove': ({ passkey }) => ({ passkey }),
  'POST /settings/tokens': named,
  'POST /settings/transports': ({ transport }) => ({ name: transport, relays: 'smtp://127.0.0.1:1' }),
  'POST /export': () => ({ list: 'emails', format: 'csv' }),
}

/** Without an answer from DNS and an address for webhooks, these are refused for another reason. */
const mayConflict = new Set<Line>([
  ...(['POST /apps/:app/domain/keys/:selector/activate', 'POST /apps/:app/webhooks/test'] as const),
  'POST /apps/:app/webhooks/:message/send',
])

/** Each ends something that an earlier one needs. */
const last: readonly Line[] = [
  'POST /emails/retry',
  'POST /apps/:app/keys/:key/revoke',
  'POST /suppressions/clear',
  'POST /apps/:app/status',
  'POST /apps/:app/delete',
]
const lines = [...routes.map(([line]) => line).filter((line) => !last.includes(line)), ...last]

const addressOf = (line: Line, target: Target): string => {
  const { app, email, key, message, person, request, session, suppression, token, transport } = target
  const values = { ...{ app: app.slug, email, key, message, person, request, session, suppression, token, transport } }
  const all: Readonly<Record<string, string>> = { ...values, system: 'kratos', selector: 'p1' }
  return line.split(' ')[1]?.replace(/:(\w+)/g, (_, name: string) => all[name] ?? '') ?? ''
}

/** A page that decides by itself, and forms whose refusal is shown on another page, if that may be seen. */
const decides: Partial<Record<Line, readonly OperationName[]>> = {
  'GET /new-app': ['app.put'],
  'GET /apps/:app/settings': ['app.show', 'app.usage'],
  'POST /apps/:app/test-email': ['app.show', 'app.test_email'],
  'POST /apps/:app/keys/:key/networks': ['app.show', 'key.change'],
  'POST /apps/:app/keys/:key/replace': ['app.show', 'key.replace'],
  'POST /apps/:app/webhooks/:message/send': ['app.show', 'webhook.show', 'webhook.send'],
  'POST /emails/:email/retry': ['email.show', 'email.retry'],
  'POST /emails/:email/cancel': ['email.show', 'email.cancel'],
}

/** The operations without which a page is refused: of a form, up to the one that it is for. */
async function findDeciding(): Promise<ReadonlyMap<Line, readonly OperationName[]>> {
  const target = await newTarget(service)
  const run = newRecorder(service)
  const found = new Map<Line, readonly OperationName[]>()
  for (const line of lines) {
    const method = line.startsWith('GET') ? 'GET' : 'POST'
    const operations = await run(method, addressOf(line, target), forms[line]?.(target))
    const own = operations.findIndex((name) => method === 'GET' || name !== 'app.show')
    found.set(line, decides[line] ?? operations.slice(0, own === -1 ? undefined : own + 1))
  }
  return found
}

/** The status of a refusal; null if the page is answered. */
function expectedStatus(
  line: Line,
  operations: readonly OperationName[],
  { role, scope }: { readonly role: Role; readonly scope: Scope },
): 403 | 404 | null {
  // Everybody has an account, and a passkey that is not there is as good as removed.
  if (line.startsWith('POST /account/')) return null
  const verdicts = operations.map((name) => verdictOf(name, { role, scope, isPerson: true }))
  const refused = verdicts.find((verdict) => verdict === 'forbidden' || verdict === 'absent')
  return refused === undefined ? null : refused === 'forbidden' ? 403 : 404
}

const deciding = await findDeciding()

test('the pages and forms of the console call every operation that changes something', () => {
  const called = new Set([...deciding.values()].flat())
  const missing = operationNames.filter((name) => findOperation(name).audited && !called.has(name))
  assert.deepEqual(missing, [
    // The command line alone; a search by address begins with `email.find`.
    ...(['email.find', 'recipient.forget', 'report.read', 'suppression.find'] as const),
  ])
})

for (const role of roles)
  for (const scope of scopes)
    test(`every page answers as the table of roles says: ${role}, ${scope}`, async () => {
      const [target, other] = [await newTarget(service), await newTarget(service)]
      const { webhookUrl: _, ...settings } = target.app.settings
      await store.updateApp(target.app.id, { settings }, operator)
      const apps = { 'own app': [target.app.id], 'another app': [other.app.id], 'whole service': null }
      const people = await Promise.all(Array.from({ length: 4 }, () => signIn(service, role, apps[scope])))
      const { get, post } = newVisitor(service, people)
      for (const line of lines) {
        const path = addressOf(line, target)
        const answer = line.startsWith('GET') ? await get(path) : await post(path, forms[line]?.(target))
        const cell = `${line} for ${role}, ${scope}: ${answer.status}`
        const expected = expectedStatus(line, deciding.get(line) ?? [], { role, scope })
        await answer.arrayBuffer()
        if (expected !== null) assert.equal(answer.status, expected, cell)
        else assert.ok(answer.status < 400 || (answer.status === 409 && mayConflict.has(line)), cell)
      }
    })
