/** Something for every operation to act on, and the request that makes it act. */
import assert from 'node:assert/strict'
import type { DeliveryOutcome } from '../../src/domain/delivery/outcome.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import { type EmailId, newId } from '../../src/domain/id.ts'
import { hashToken, newToken } from '../../src/domain/operator/management-token.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { findOperation, type OperationName } from '../../src/management/operations.ts'
import { sealInboxEmail } from '../../src/store/crypto/sealed-inbox-email.ts'
import { newPerson } from './management.ts'
import { operator } from './operator.ts'
import { newSender, send, type TestService, testSettings, validBody } from './service.ts'

let serial = 0

/** There may be a hundred, so all targets have one. */
const transport = 'spare'

const inboxEmail = JSON.stringify({
  ...{ id: 'em_x', app: 'Acme', slug: 'acme', type: 'magic_link', to: 'delivered@postern.test', subject: 'Sign in' },
  ...{ from: { name: 'Acme', address: 'auth@acme.test' }, url: 'https://a.test', code: null, expiresAt: 0 },
  ...{ language: 'en', html: '', text: '' },
})

const webhookUrl = 'https://app.acme.test/postern'

/**
 * An app that nothing else uses, with a key, an email that is deferred, and a token that may be revoked. The
 * service has no worker.
 */
export async function newTarget(service: TestService) {
  const { store } = service
  const slug = `app${serial++}`
  const domain = `${slug}.test` // apps of one domain share its keys
  const from = { name: 'Acme', address: `auth@${domain}` }
  const sender = await newSender(service, slug, { ...testSettings, from, webhookUrl })
  await store.setWebhookSecret({ app: sender.app.id, sealed: '', oldUntil: 0 }, operator)
  const test = { app: sender.app.id, event: 'webhook.test', email: null, facts: {}, sealed: null } as const
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
  await store.addRefusals([
    { ...refused, code: 'url_not_allowed', issues: [], origin: 'https://a.test', recipient: null },
  ])
  const claim = () => store.claimDue({ max: 500, perApp: 500, leases: [] })
  for (let { claims } = await claim(); claims.length > 0; { claims } = await claim())
    for (const each of claims) await store.recordOutcome(each, deferred)
  await store.putTransport({ name: transport, sealed: '', before: null, after: [] }, operator)
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
  assert.ok(suppression !== null && suppression !== 'too_many')
  const email = posted.headers.get('email-id') as EmailId
  await store.keepInboxEmail({ id: email, sealed: sealInboxEmail(service.config.ring, email, inboxEmail) })
  return {
    suppression: suppression.id,
    message: await store.addWebhookMessage(test),
    app: sender.app,
    key: sender.keyId,
    deliveryKey: sender.key,
    email,
    request,
    token: token === 'name_taken' ? '' : token.id,
    transport,
    ...(await newPerson(service)),
  }
}
export type Target = Awaited<ReturnType<typeof newTarget>>

const settings = { name: testSettings.name, from: testSettings.from }

const bodies: Partial<Record<OperationName, (target: Target) => unknown>> = {
  'account.change': () => ({ localTimes: true }),
  'app.put': () => settings,
  'app.change': () => ({ supportContact: 'help@acme.test' }),
  'app.check_link': () => ({ url: 'https://app.acme.test/?token=x' }),
  'app.preview': () => ({ type: 'magic_link' }),
  'app.test_email': () => ({ to: 'someone@example.com' }),
  'key.create': () => ({ name: `key ${serial++}` }),
  'key.find': ({ deliveryKey }) => ({ key: deliveryKey }),
  'key.change': () => ({ name: `key ${serial++}` }),
  'recipient.forget': () => ({ to: 'nobody@example.com' }),
  'report.read': () => ({ report: 'Subject: nothing', dryRun: true }),
  'key.replace': () => ({}),
  'email.find': () => ({ to: 'ada@example.com' }),
  'email.retry_all': () => ({}),
  'suppression.find': () => ({ to: 'ada@example.com' }),
  'suppression.add': ({ app }) => ({ to: 'bob@example.com', app: app.id }),
  'suppression.clear': () => ({ reason: 'operator' }),
  'domain.prove': ({ app }) => ({ domain: app.settings.senderDomains[0] }),
  'domain.add_key': () => ({ algorithm: 'ed25519' }),
  'domain.activate_key': () => ({ unchecked: true }),
  'webhook.secret': () => ({}),
  'webhook.test': () => ({}),
  'webhook.send': () => ({}),
  'list.export': () => ({ list: 'emails' }),
  'auth_hook.connect': () => ({}),
  'auth_hook.check': () => ({}),
  'transport.put': () => ({ relays: ['smtp://127.0.0.1:1'] }),
  'token.create': () => ({ name: `token ${serial++}`, role: 'reader' }),
  'person.invite': () => ({ name: `invited ${serial++}`, role: 'reader' }),
  'person.change': () => ({ role: 'operator' }),
  'person.link': () => ({}),
}

/** The request of an operation on a target, as the management API takes it. */
export function requestFor(name: OperationName, target: Target, asId = true) {
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
    message: target.message,
    selector: 'p1',
    transport,
    system: 'kratos',
  }
  const body = bodies[name]?.(target)
  const params = Object.fromEntries(
    [...path.matchAll(/\{(\w+)\}/g)].map(([, each = '']) => [each, values[name === 'app.put' ? 'new' : each] ?? '']),
  )
  const line = `${method} ${path.replace(/\{(\w+)\}/g, (_, each: string) => params[each] ?? '')}`
  return { line, params, ...(body !== undefined && { body }) }
}
