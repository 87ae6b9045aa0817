/**
 * A command for every operation, with `--url` and a token of every role and scope: it ends as the table of
 * roles says of the operations that it calls. Running it once for an admin finds them.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type Scope, scopes, verdictOf } from '../../scripts/roles-table.ts'
import { type Role, roles } from '../../src/domain/operator/management-token.ts'
import { type OperationName, operationNames } from '../../src/management/operations.ts'
import { postern } from '../support/cli.ts'
import { newManagementToken } from '../support/management.ts'
import { operator } from '../support/operator.ts'
import { startTestService } from '../support/service.ts'
import { newTarget, type Target } from '../support/targets.ts'
import { temporaryFolder } from '../support/temporary.ts'

const service = await startTestService({ after }, { roles: new Set(['api', 'console']) })
const { events, store, urls } = service
const folder = temporaryFolder({ after })
let serial = 0

/** Neither a token nor a user of the server has an account. */
const forPeople = ['account.change', 'account.remove_passkey', 'account.end_session'] as const
type Command = Exclude<OperationName, (typeof forPeople)[number]>

const from = ['--from', 'Acme <auth@acme.test>']
const commands: Readonly<Record<Command, (target: Target) => string[]>> = {
  whoami: () => ['whoami'],
  'app.list': () => ['app', 'list'],
  'app.names': () => ['email', 'list'],
  'app.put': () => ['app', 'create', `New ${serial++}`, ...from],
  'app.show': ({ app }) => ['app', 'show', app.slug],
  'app.change': ({ app }) => ['app', 'update', app.slug, '--support', 'help@acme.test'],
  'app.delete': ({ app }) => ['app', 'delete', app.slug, '--yes'],
  'app.check_link': ({ app }) => ['check-link', app.slug, 'https://app.acme.test/?token=x'],
  'app.preview': ({ app }) => ['preview', app.slug],
  'app.test_email': ({ app }) => ['send-test', 'ada@example.com', '--app', app.slug],
  'app.usage': ({ app }) => ['usage', app.slug],
  'usage.list': () => ['usage'],
  'key.list': ({ app }) => ['key', 'list', app.slug],
  'inbox.list': ({ app }) => ['inbox', 'list', app.slug],
  'inbox.wait': ({ app }) => ['inbox', 'wait', app.slug, '--timeout', '1'],
  'key.create': ({ app }) => ['key', 'create', app.slug, '--name', 'web'],
  'key.find': () => ['key', 'find'],
  'key.show': ({ key }) => ['key', 'show', key],
  'key.change': ({ key }) => ['key', 'update', key, '--name', 'api'],
  'key.replace': ({ key }) => ['key', 'replace', key],
  'key.revoke': ({ key }) => ['key', 'revoke', key],
  'email.list': () => ['email', 'list'],
  'email.find': () => ['email', 'list', '--to', 'ada@example.com'],
  'email.retry_all': () => ['email', 'retry', '--all'],
  'email.show': ({ email }) => ['email', 'show', email],
  'email.retry': ({ email }) => ['email', 'retry', email],
  'email.cancel': ({ email }) => ['email', 'cancel', email],
  'refusal.list': () => ['refusal', 'list'],
  'refusal.show': ({ request }) => ['refusal', 'show', request],
  'activity.show': () => ['activity'],
  'recipient.forget': () => ['forget', 'nobody@example.com', '--yes'],
  'report.show': () => ['report', 'status'],
  'report.read': () => ['report', 'read', '--dry-run'],
  'suppression.list': () => ['suppression', 'list'],
  'suppression.find': () => ['suppression', 'find', 'ada@example.com'],
  'suppression.add': ({ app }) => ['suppression', 'add', 'bob@example.com', '--app', app.slug],
  'suppression.remove': ({ suppression }) => ['suppression', 'remove', suppression],
  'suppression.clear': () => ['suppression', 'clear', '--destination', 'proton', '--yes'],
  'domain.show': ({ app }) => ['domain', 'show', app.slug],
  'domain.check': ({ app }) => ['domain', 'check', app.slug],
  'domain.prove': ({ app }) => ['domain', 'prove', app.slug, app.settings.senderDomains[0] ?? ''],
  'domain.add_key': ({ app }) => ['domain', 'add-key', app.slug, '--algorithm', 'ed25519'],
  'domain.activate_key': ({ app }) => ['domain', 'activate-key', app.slug, 'p1', '--unchecked'],
  'domain.remove_key': ({ app }) => ['domain', 'remove-key', app.slug, 'p1', '--yes'],
  'auth_hook.list': ({ app }) => ['auth-hook', 'list', app.slug],
  'auth_hook.connect': ({ app }) => ['auth-hook', 'connect', app.slug, 'kratos'],
  'auth_hook.check': ({ app }) => ['auth-hook', 'check', app.slug, 'kratos'],
  'webhook.list': ({ app }) => ['app-webhook', 'list', app.slug],
  'webhook.secret': ({ app }) => ['app-webhook', 'secret', app.slug],
  'webhook.test': ({ app }) => ['app-webhook', 'test', app.slug],
  'webhook.show': ({ app, message }) => ['app-webhook', 'show', app.slug, message],
  'webhook.send': ({ app, message }) => ['app-webhook', 'send', app.slug, message],
  'transport.list': () => ['transport', 'list'],
  'transport.put': () => ['transport', 'add', 'spare', '--replace'],
  'transport.check': () => ['transport', 'check', 'spare'],
  'transport.delete': () => ['transport', 'remove', 'spare'],
  'service.show': () => ['about'],
  'status.show': () => ['status'],
  'queue.show': () => ['queue'],
  'checks.run': () => ['doctor'],
  'audit.list': () => ['audit'],
  'list.export': () => ['export', 'emails'],
  'token.list': () => ['token', 'list'],
  'token.create': () => ['token', 'create', `made ${serial++}`, '--role', 'reader'],
  'token.revoke': ({ token }) => ['token', 'revoke', token],
  'person.list': () => ['person', 'list'],
  'person.invite': () => ['person', 'invite', `made ${serial++}`, '--role', 'reader'],
  'person.change': ({ person }) => ['person', 'update', person, '--role', 'operator'],
  'person.link': ({ person }) => ['person', 'link', person],
  'person.end_link': ({ person }) => ['person', 'end-link', person],
  'person.made': ({ person }) => ['person', 'made', person],
  'person.remove_passkey': ({ passkey, person }) => ['person', 'remove-passkey', person, passkey],
  'session.list': () => ['session', 'list'],
  'session.end': ({ session }) => ['session', 'end', session],
}

/** Each ends something that an earlier one needs. */
const last: readonly Command[] = [
  ...(['email.cancel', 'email.retry_all', 'suppression.remove', 'key.revoke', 'app.delete'] as const),
]
const names = [...(Object.keys(commands) as Command[]).filter((name) => !last.includes(name)), ...last]

/** These also answer 1 for what they report, or, as this app has no webhook address, for that. */
const mayFail = new Set<Command>([
  ...(['status.show', 'checks.run', 'domain.check', 'auth_hook.check', 'transport.check'] as const),
  ...(['app.test_email', 'webhook.test', 'webhook.send', 'report.read'] as const),
])

/** A mail server that pipes a report then keeps it (`sysexits.h`). */
const mailComesAgain = 75

const refusals = {
  forbidden: /This needs (?:the role|a token for the whole service)|Only an admin may read the audit/,
  absent: /There is no |No app that you can see has this/,
} as const

async function run(name: Command, target: Target, token: string) {
  const tokenFile = join(folder, `token${serial++}`)
  writeFileSync(tokenFile, token, { mode: 0o600 })
  const env = { POSTERN_URL: urls.console ?? '', POSTERN_TOKEN_FILE: tokenFile }
  const inputs: Partial<Record<Command, string>> = {
    'key.find': target.deliveryKey,
    'transport.put': 'smtp://127.0.0.1:1',
  }
  const input = inputs[name] ?? 'Subject: nothing'
  return postern(env, commands[name](target), { input })
}

/** An app without a webhook address: a command would wait for the answer of the receiver. */
async function newQuietTarget(): Promise<Target> {
  const target = await newTarget(service)
  const { webhookUrl: _, ...settings } = target.app.settings
  await store.updateApp(target.app.id, { settings }, operator)
  return target
}

const called: string[] = []
events.subscribe((event) => {
  if (event.kind === 'operation_answered') called.push(event.operation)
})

/** The operations of each command, up to the one that it is for. */
async function findDeciding(): Promise<ReadonlyMap<Command, readonly OperationName[]>> {
  const target = await newQuietTarget()
  const found = new Map<Command, readonly OperationName[]>()
  for (const name of names) {
    called.length = 0
    await run(name, target, await newManagementToken(service))
    assert.ok(called.includes(name), `${commands[name](target).join(' ')} calls ${called}`)
    found.set(name, called.slice(0, called.indexOf(name) + 1) as OperationName[])
  }
  return found
}

const deciding = await findDeciding()

function expectedOf(name: Command, role: Role, scope: Scope): keyof typeof refusals | null {
  const verdicts = (deciding.get(name) ?? []).map((each) => verdictOf(each, { role, scope, isPerson: false }))
  return verdicts.find((verdict) => verdict === 'forbidden' || verdict === 'absent') ?? null
}

test('there is a command for every operation of the table', () => {
  assert.deepEqual([...names, ...forPeople].sort(), [...operationNames].sort())
})

for (const role of roles)
  for (const scope of scopes)
    test(`every command ends as the table of roles says: ${role}, ${scope}`, async () => {
      const [target, other] = [await newQuietTarget(), await newTarget(service)]
      const apps = { 'own app': [target.app.id], 'another app': [other.app.id], 'whole service': null }
      for (const name of names) {
        const ran = await run(name, target, await newManagementToken(service, role, apps[scope]))
        const cell = `${name} for ${role}, ${scope}: ${ran.code} ${ran.err}`
        const expected = expectedOf(name, role, scope)
        if (expected !== null) {
          assert.equal(ran.code, name === 'report.read' ? mailComesAgain : 1, cell)
          assert.match(ran.err, refusals[expected], cell)
        } else {
          assert.ok(ran.code === 0 || (ran.code === 1 && mayFail.has(name)), cell)
          for (const refusal of Object.values(refusals)) assert.doesNotMatch(ran.err, refusal, cell)
        }
      }
    })
