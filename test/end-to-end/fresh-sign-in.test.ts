/**
 * A session that began more than an hour ago: it makes nothing that outlives it and sends nothing elsewhere,
 * by any operation or page, and it still takes access away.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { freshIf } from '../../scripts/roles-table.ts'
import { composeManagement } from '../../src/compose/management.ts'
import { hourMs } from '../../src/domain/duration.ts'
import { type Access, localAccess } from '../../src/management/operation/access.ts'
import { always } from '../../src/management/operation/operation.ts'
import { type CallInput, findOperation, type OperationName, operationNames } from '../../src/management/operations.ts'
import { newLocalRunner } from '../../src/management/perform.ts'
import { formOf, newVisitor, signIn } from '../support/console.ts'
import { operator } from '../support/operator.ts'
import { startTestService } from '../support/service.ts'
import { newTarget, requestFor, type Target } from '../support/targets.ts'

const service = await startTestService({ after }, { isDev: false, roles: new Set(['api', 'console']) })
const { config, store } = service
const management = composeManagement(config, { store, version: 'test' })

const agoMs = 2 * hourMs

/** The answer to an access: the code of an error, or `done`. */
async function call(
  access: Access,
  name: OperationName,
  { params, body }: { readonly params: Readonly<Record<string, string>>; readonly body?: unknown },
): Promise<string> {
  const input = { params, ...(body !== undefined && { body }) } as CallInput<typeof name>
  const result = await newLocalRunner(management, access).call(name, input)
  return result.ok ? 'done' : result.error.code
}

/** A person of the whole service who signed in so long ago; null: a token. */
async function accessOf(signedInMsAgo: number | null): Promise<Access> {
  const { name, person } = await signIn(service)
  return {
    ...localAccess(name),
    actor: { kind: 'person', id: person as never, name, via: 'console', requestId: 'req_test' },
    signedInAt: signedInMsAgo === null ? null : store.now() - signedInMsAgo,
  }
}

const changesOf = async ({ actor: { name } }: Access): Promise<number> =>
  (await store.listAudit({ actor: name, limit: 100 })).items.filter((entry) => entry.actor.name === name).length

const [old, recent, token] = [await accessOf(agoMs), await accessOf(hourMs / 2), await accessOf(null)]

const judged = operationNames.filter((name) => freshIf[name] === undefined)

test('each operation that outlives a session is refused to an old one and changes nothing; others, and new sessions, are not', async () => {
  const target = await newTarget(service)
  for (const name of judged) {
    const before = await changesOf(old)
    const answer = await call(old, name, requestFor(name, target))
    const { outlives } = findOperation(name)
    assert.equal(answer === 'sign_in_again', outlives === always, `${name}: ${answer}`)
    if (answer === 'sign_in_again') assert.equal(await changesOf(old), before, name)
  }
  for (const access of [recent, token])
    for (const name of judged)
      assert.notEqual(await call(access, name, requestFor(name, target)), 'sign_in_again', name)
})

type Case = readonly [title: string, body: object]
type Cases = { readonly asked: readonly Case[]; readonly notAsked: readonly Case[] }

const later = new Date(Date.now() + 90 * 24 * hourMs).toISOString()
const sooner = new Date(Date.now() + 24 * hourMs).toISOString()

/** Each setting of an app is judged in `destinations.test.ts`. */
const cases: Readonly<Record<'app.change' | 'key.change' | 'person.change', Cases>> = {
  'app.change': {
    asked: [['one destination among harmless fields', { locale: 'de', replyTo: 'reply@other.test' }]],
    notAsked: [
      ['nothing', {}],
      ['what is there already', { allowedUrls: ['https://app.acme.test'], appSchemes: ['acme'] }],
      ['an entry taken away', { allowedUrls: [] }],
      ['addresses taken away', { replyTo: null, supportContact: null, webhookUrl: null }],
      ['auth servers and destinations taken away', { authHooks: null, linkDestinations: null }],
      ['links to localhost taken away', { allowLocalhost: false }],
      ['language and limits', { locale: 'de', limits: { daily: 5 }, branding: { accentColour: '#1d4ed8' } }],
      ['disabled', { status: 'disabled' }],
    ],
  },
  'key.change': {
    asked: [
      ['a later end', { expiresAt: later }],
      ['no end', { expiresAt: null }],
      ['a later end and a name', { name: 'other', expiresAt: later }],
      ['all networks', { networks: null }],
      ['another network', { networks: ['192.0.2.0/25', '198.51.100.7'] }],
      ['a larger network', { networks: ['192.0.2.0/23'] }],
    ],
    notAsked: [
      ['a name', { name: 'renamed' }],
      ['an earlier end', { expiresAt: sooner }],
      ['a smaller network', { networks: ['192.0.2.128/25'] }],
    ],
  },
  'person.change': {
    asked: [
      ['a role', { role: 'admin' }],
      ['apps', { apps: null }],
      ['enabled', { disabled: false }],
      ['disabled with a role', { disabled: true, role: 'admin' }],
    ],
    notAsked: [['disabled', { disabled: true }]],
  },
}

/** A key of one network with an end in 30 days. */
async function newCaseTarget(): Promise<Target> {
  const target = await newTarget(service)
  await store.updateKey(target.key, { expiresAt: Date.now() + 30 * 24 * hourMs, networks: ['192.0.2.0/24'] }, operator)
  return target
}

for (const [operation, { asked, notAsked }] of Object.entries(cases))
  test(`${operation}: a session is asked for a new sign-in only if the effect outlives it`, async () => {
    const name = operation as keyof typeof cases
    for (const [title, body] of asked) {
      const { params } = requestFor(name, await newCaseTarget())
      assert.equal(await call(old, name, { params, body }), 'sign_in_again', title)
      assert.notEqual(await call(recent, name, { params, body }), 'sign_in_again', title)
    }
    for (const [title, body] of notAsked) {
      const { params } = requestFor(name, await newCaseTarget())
      assert.equal(await call(old, name, { params, body }), 'done', title)
    }
  })

type Form = readonly [path: string, fields: Readonly<Record<string, string>>]

/** Forms of pages, which an old session may not send; `kept` of each stands on the page that refuses it. */
const refusedForms = ({ app: { slug }, key, person }: Target): readonly Form[] => [
  ['/new-app', { name: 'kept', from: 'kept@acme.test', allowedUrls: 'https://kept.test', slug: 'kept' }],
  [`/apps/${slug}/links/add`, { kind: 'allowedUrls', entry: 'https://kept.test' }],
  [`/apps/${slug}/links/add`, { kind: 'appSchemes', entry: 'com.kept.app' }],
  [`/apps/${slug}/links/localhost`, { allow: 'yes' }],
  [
    `/apps/${slug}/hosted-links`,
    { fallbackUrl: 'https://kept.test', newEmailUrl: 'https://kept.test/b', 'opens-magic_link': 'https://kept.test/a' },
  ],
  [`/apps/${slug}/look`, { logoUrl: 'https://kept.test/logo.png', addressLine: 'kept' }],
  [`/apps/${slug}/look`, { supportContact: 'kept@acme.test' }],
  [`/apps/${slug}/keys`, { name: 'kept', expires: '90' }],
  [`/apps/${slug}/keys/${key}/replace`, { grace: '0' }],
  [`/apps/${slug}/connect/kratos`, {}],
  [`/apps/${slug}/connect/kratos/settings`, { version: '1', page: 'https://kept.test/code' }],
  [`/apps/${slug}/domain/prove`, { domain: 'kept.test' }],
  [`/apps/${slug}/domain/keys`, { algorithm: 'ed25519' }],
  [`/apps/${slug}/domain/keys/p1/activate`, {}],
  [`/apps/${slug}/webhooks`, { webhookUrl: 'https://kept.test/hook' }],
  [`/apps/${slug}/webhooks/secret`, {}],
  [`/apps/${slug}/settings`, { replyTo: 'kept@acme.test' }],
  [`/apps/${slug}/settings`, { senderAddress: 'kept@acme.test', envelopeFrom: 'kept+b@acme.test' }],
  [`/apps/${slug}/status`, { status: 'active' }],
  [`/apps/${slug}/delete`, { slug }],
  ['/settings/tokens', { name: 'kept', role: 'operator', days: '30' }],
  ['/settings/people', { name: 'kept', role: 'operator' }],
  [`/settings/people/${person}`, { role: 'operator' }],
  [`/settings/people/${person}`, { disabled: 'no' }],
  [`/settings/people/${person}/link`, {}],
]

const takingAwayForms = ({ app, key, passkey, person, session, token }: Target): readonly Form[] => [
  [`/apps/${app.slug}/links/remove`, { kind: 'allowedUrls', entry: 'https://app.acme.test' }],
  [`/apps/${app.slug}/links/localhost`, { allow: 'no' }],
  [`/apps/${app.slug}/hosted-links`, {}],
  [`/apps/${app.slug}/look`, { supportContact: '', logoUrl: '' }],
  [`/apps/${app.slug}/webhooks`, { webhookUrl: '' }],
  [`/apps/${app.slug}/settings`, { replyTo: '', envelopeFrom: '', daily: '7' }],
  [`/apps/${app.slug}/status`, { status: 'disabled' }],
  [`/apps/${app.slug}/status`, { status: 'suspended' }],
  [`/apps/${app.slug}/keys/${key}/revoke`, {}],
  [`/apps/${app.slug}/domain/keys/p1/remove`, {}],
  [`/settings/tokens/${token}/revoke`, {}],
  [`/settings/people/${person}/link/end`, {}],
  [`/settings/people/${person}/passkeys/remove`, { passkey }],
  [`/settings/sessions/${session}/end`, {}],
  [`/settings/people/${person}`, { disabled: 'yes' }],
]

/** An app whose settings can be taken away. */
async function newFullTarget(status: 'active' | 'disabled'): Promise<Target> {
  const target = await newTarget(service)
  const { settings } = target.app
  const more = { replyTo: 'answers@acme.test', supportContact: 'help@acme.test', allowLocalhost: true }
  const branding = { logoUrl: 'https://acme.test/logo.png' }
  await store.updateApp(target.app.id, { settings: { ...settings, ...more, branding }, status }, operator)
  return target
}

test('forms of the console are refused to an old session, keep their entries, and are taken once signed in again', async () => {
  const people = await Promise.all(Array.from({ length: 5 }, () => signIn(service)))
  service.advance(agoMs)
  const [late, recent] = [newVisitor(service, people), newVisitor(service, await signIn(service))]
  const target = await newTarget(service)
  await store.updateApp(target.app.id, { status: 'disabled' }, operator)
  const sentAgain: Form[] = []
  for (const [path, fields] of refusedForms(target)) {
    const answer = await late.post(path, fields)
    const page = await answer.text()
    assert.equal(answer.status, 403, `${path} ${JSON.stringify(fields)}`)
    assert.match(page, /this needs a sign-in within the last hour/, path)
    for (const [name, text] of Object.entries(fields))
      if (text.includes('kept')) assert.ok(page.includes(`value="${text}"`), `${path} loses ${name}`)
    if (fields.name === 'kept') sentAgain.push([path, { ...fields, ...formOf(page, path) }])
  }
  const now = await store.findApp(target.app.id)
  assert.deepEqual([now?.settings, now?.status], [target.app.settings, 'disabled'])
  assert.equal(sentAgain.length, 4)
  for (const [path, fields] of sentAgain) assert.ok((await recent.post(path, fields)).status < 400, path)
})

test('an old session takes access away by every form that does', async () => {
  const people = await Promise.all(Array.from({ length: 5 }, () => signIn(service)))
  service.advance(agoMs)
  const late = newVisitor(service, people)
  const target = await newFullTarget('active')
  for (const [path, fields] of takingAwayForms(target))
    assert.equal((await late.post(path, fields)).status, 303, `${path} ${JSON.stringify(fields)}`)
  const { settings, status } = (await store.findApp(target.app.id)) ?? {}
  assert.deepEqual([status, settings?.allowedUrls, settings?.webhookUrl], ['suspended', [], undefined])
})
