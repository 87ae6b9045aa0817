/** Cases of the methods of operators, reporters and senders on a stuffed database (`stuffed-rows.ts`). */
import assert from 'node:assert/strict'
import type { KeyHash } from '../../src/domain/app/delivery-key.ts'
import { authHookSecretsMax, keysMax, passkeysMax, stepMax } from '../../src/domain/bounds.ts'
import type { Bounce } from '../../src/domain/delivery/report.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import { dayMs, minuteMs } from '../../src/domain/duration.ts'
import {
  type AppId,
  type EmailId,
  type KeyId,
  type NodeId,
  newId,
  type PersonId,
  type SessionId,
  type SuppressionId,
  type TokenId,
  type WebhookMessageId,
} from '../../src/domain/id.ts'
import type { Actor } from '../../src/domain/operator/audit.ts'
import type { TokenHash } from '../../src/domain/operator/management-token.ts'
import type { SessionHash, SignInHash } from '../../src/domain/operator/sign-in.ts'
import type { RefusedRequest } from '../../src/domain/request/refused-request.ts'
import { acme, hash, idOf, nowMs, parts, person, settings, stuffedRows } from './stuffed-rows.ts'
import type { Cases, It, ScriptName } from './stuffed-writer.ts'

/** An operator of the tenant. */
const actor: Actor = { kind: 'person', id: person, name: 'person 0', via: 'console', requestId: null }

const key = (n = 0) => idOf('key', n) as KeyId
/** One of an auth server. */
const authHookKey = key(authHookSecretsMax)
const newKey = {
  ...{ app: acme, hash: hash('new', 0) as KeyHash, name: 'a new key', expiresAt: null },
}
const replacement = { hash: hash('new', 0) as KeyHash, expiresAt: null, oldExpiresAt: nowMs + dayMs }
/** Leaves room for another key that works. */
const revokeOne = (it: It) =>
  it.sql(`update delivery_key set revoked_at = ${nowMs} where key_id = '${key(keysMax - 1)}'`)
const endHalf = (it: It) =>
  it.sql(`update delivery_key set expires_at = ${nowMs - 1} where app_id = '${acme}' and rowid % 2 = 0`)

const finished = idOf('em', parts.finished) as EmailId
const reply = parseReply('550 5.1.1 no such user')
const bounce: Bounce = { kind: 'bounced', about: 'recipient', permanent: true, cause: 'no_mailbox', reply }
const report = { email: finished, source: 'mail', destination: 'gmail' } as const
const recipient = { app: acme, recipient: hash('rcp', 0), destination: 'other' } as const
const isRemoved = (it: It) =>
  it.sql(`delete from suppression where recipient = '${hash('rcp', 0)}' and app_id = '${acme}'`)

const session = { hash: hash('new', 1) as SessionHash, agent: 'Firefox', requestId: newId('req', 0) }
const oidc = { name: 'person 1', role: 'operator', apps: [acme] } as const

const refusal = (code: RefusedRequest['code']): RefusedRequest => ({
  ...{
    requestId: newId('req', nowMs),
    at: nowMs,
    app: acme,
    key: key(),
    code,
    issues: [],
    origin: null,
    recipient: hash('rcp', 0),
  },
})
/** A flood of both kinds, in one step. */
const refusals = Array.from({ length: stepMax }, (_, n) => refusal(n % 2 === 0 ? 'key_rate_limited' : 'invalid_url'))

const signing = { app: acme, domain: 'd1.test' }
const newSigningKey = { algorithm: 'rsa', publicKey: 'public', sealed: 'sealed', selector: 'new' } as const

const transport = { sealed: 'sealed', before: null, after: ['smtp.acme.test:587'] }

const message = { app: acme, email: finished, event: 'email.suppressed', facts: {}, sealed: null } as const
const webhook = { app: acme, id: idOf('wh', 0) as WebhookMessageId, tries: 1, result: '200' }
const endOneWebhook = (it: It) =>
  it.sql(`update webhook_message set due_at = null where message_id = '${idOf('wh', 0)}'`)

const suspend = (it: It) => it.sql(`update app set status = 'disabled' where app_id = '${acme}'`)

const clearStep = (
  it: It,
  query: { readonly apps: readonly AppId[] | null; readonly reason?: 'complaint'; readonly since?: number },
  after: SuppressionId | null = null,
) => it.run('clearSuppressions', query, { actor, after })

export const operatorCases: Cases<ScriptName> = {
  createApp: {
    'a new one': (it) => assert.ok(it.run('createApp', 'new', settings, actor) !== null),
    'a slug that is taken': (it) => assert.equal(it.run('createApp', 'app-0', settings, actor), null),
  },
  updateApp: {
    changed: (it) => it.run('updateApp', acme, { settings: { ...settings, name: 'New' } }, actor),
    disabled: (it) => it.run('updateApp', acme, { status: 'disabled' }, actor),
  },
  deleteApp: {
    disabled: (it) => {
      suspend(it)
      assert.equal(it.run('deleteApp', acme, actor), 'deleted')
    },
  },
  createKey: {
    'a name that is taken': (it) =>
      assert.equal(it.run('createKey', { ...newKey, name: `key ${keysMax - 1}` }, actor), 'name_taken'),
    'too many': (it) => assert.equal(it.run('createKey', newKey, actor), 'too_many'),
    'one more': (it) => {
      revokeOne(it)
      assert.equal(typeof it.run('createKey', newKey, actor), 'object')
    },
    'the first test key': (it) => {
      revokeOne(it)
      assert.equal(typeof it.run('createKey', { ...newKey, isTest: true }, actor), 'object')
    },
    'half of them have just expired': (it) => {
      endHalf(it)
      assert.equal(typeof it.run('createKey', newKey, actor), 'object')
    },
  },
  keepInboxEmail: {
    'one that is being sent': (it) =>
      it.run('keepInboxEmail', { id: idOf('em', parts.sending) as EmailId, sealed: 'sealed' }),
    'one that is gone': (it) => it.run('keepInboxEmail', { id: finished, sealed: 'sealed' }),
  },
  updateKey: {
    renamed: (it) => it.run('updateKey', key(), { name: 'another' }, actor),
    'other networks': (it) => it.run('updateKey', key(), { networks: ['192.0.2.0/24'] }, actor),
    'a name that is taken': (it) => assert.equal(it.run('updateKey', key(), { name: 'key 1' }, actor), 'name_taken'),
  },
  replaceKey: {
    'an own key': (it) => assert.equal(typeof it.run('replaceKey', key(), replacement, actor), 'object'),
    'the secret of an auth server': (it) =>
      assert.equal(typeof it.run('replaceKey', authHookKey, replacement, actor), 'object'),
    'all keys are of an auth server': (it) => {
      it.sql(`update delivery_key set hook = 'supabase' where app_id = '${acme}'`)
      it.run('replaceKey', authHookKey, replacement, actor)
    },
  },
  revokeKey: { 'one that works': (it) => assert.ok(it.run('revokeKey', key(), actor)) },
  resealAuthHookSecret: {
    'a secret': (it) =>
      it.run('resealAuthHookSecret', { id: authHookKey, hash: hash('key', 1) as KeyHash, sealed: 'sealed' }, 'again'),
  },
  createToken: {
    'a new name': (it) => assert.equal(typeof it.run('createToken', newToken('new'), actor), 'object'),
    'a name that is taken': (it) =>
      assert.equal(it.run('createToken', newToken(`token ${stuffedRows - 1}`), actor), 'name_taken'),
  },
  revokeToken: { 'one that works': (it) => it.run('revokeToken', idOf('tok', 0) as TokenId, actor) },
  noteTokenUse: { 'one that works': (it) => it.run('noteTokenUse', idOf('tok', 0) as TokenId) },
  createPerson: {
    'a new name': (it) => it.run('createPerson', { ...oidc, name: 'new' }, actor),
    'a name that is taken': (it) => assert.equal(it.run('createPerson', oidc, actor), 'name_taken'),
  },
  updatePerson: {
    disabled: (it) => assert.ok(it.run('updatePerson', person, { disabled: true }, actor)),
    'another role': (it) => assert.ok(it.run('updatePerson', person, { role: 'reader' }, actor)),
  },
  swapCheck: {
    'the first': (it) => assert.ok(it.run('swapCheck', 'alerts', null, {})),
    changed: (it) => {
      it.sql(`insert into last_check (subject, at, result) values ('alerts', 0, '{}')`)
      assert.ok(it.run('swapCheck', 'alerts', {}, { open: {} }))
    },
  },
  setLocalTimes: { on: (it) => it.run('setLocalTimes', person, true) },
  createSignInCode: {
    'for a person': (it) => {
      const code = { hash: hash('new', 0) as SignInHash, person, expiresAt: nowMs + minuteMs }
      assert.ok(it.run('createSignInCode', code, actor))
    },
  },
  endSignInCode: { 'of a person': (it) => assert.ok(it.run('endSignInCode', person, actor)) },
  signInByCode: {
    'a code': (it) => assert.ok(it.run('signInByCode', hash('code', 0) as SignInHash, session)),
    'an unknown code': (it) => assert.equal(it.run('signInByCode', hash('none', 0) as SignInHash, session), null),
  },
  signInByPasskey: {
    'a passkey': (it) => assert.ok(it.run('signInByPasskey', hash('pk', 0), 1, session)),
    'an unknown passkey': (it) => assert.equal(it.run('signInByPasskey', 'none', 1, session), null),
  },
  signInByOidc: {
    'a known person': (it) =>
      it.run('signInByOidc', { ...oidc, oidc: { issuer: 'https://id.test', subject: '1' } }, session),
    'a new one, whose name is taken': (it) =>
      it.run('signInByOidc', { ...oidc, oidc: { issuer: 'https://id.test', subject: 'new' } }, session),
  },
  noteSessionUse: { 'a session': (it) => it.run('noteSessionUse', idOf('ses', 0) as SessionId) },
  endSession: { 'a session': (it) => assert.ok(it.run('endSession', idOf('ses', 0) as SessionId, actor)) },
  addPasskey: {
    'too many': (it) => assert.equal(it.run('addPasskey', newPasskey, actor), false),
    'one more': (it) => {
      it.sql(`delete from passkey where passkey_id = '${hash('pk', passkeysMax - 1)}'`)
      assert.ok(it.run('addPasskey', newPasskey, actor))
    },
  },
  removePasskey: {
    'one of a person': (it) => assert.ok(it.run('removePasskey', person, hash('pk', 0), actor)),
  },
  keepNonce: {
    'many have expired': (it) => assert.ok(it.run('keepNonce', 'new', nowMs + minuteMs)),
    'none has expired': (it) => {
      it.sql(`update nonce set expires_at = ${nowMs + minuteMs}`)
      it.run('keepNonce', 'new', nowMs + minuteMs)
    },
  },
  takeNonce: { 'one that is kept': (it) => assert.ok(it.run('takeNonce', hash('non', 1))) },
  addRefusals: {
    'a step of a flood': (it) => it.run('addRefusals', refusals),
  },
  addActivity: {
    'counts of the tenant': (it) =>
      it.run('addActivity', [
        { app: acme, span: 1, minute: Math.floor(nowMs / minuteMs), event: 'accepted', count: 1 },
      ]),
  },
  keepCheck: { 'of a domain': (it) => it.run('keepCheck', acme, []) },
  noteNode: { 'a process': (it) => it.run('noteNode', { ...newNode, startedAt: nowMs }) },
  removeNode: { 'a process': (it) => it.run('removeNode', idOf('node', 0) as NodeId) },
  recordAction: {
    'of the tenant': (it) =>
      it.run('recordAction', { action: 'email.find', app: acme, target: 'x', before: null, after: null }, actor),
  },
  recordReport: {
    'a bounce': (it) => {
      endOneWebhook(it)
      assert.equal(it.run('recordReport', { ...report, finding: bounce }).kind, 'recorded')
    },
    'a complaint, and no spam': (it) => {
      for (const kind of ['complained', 'not_spam', 'confirmed'] as const)
        assert.equal(it.run('recordReport', { ...report, finding: { kind } }).kind, 'recorded')
    },
    'of an email that waits': (it) => {
      const email = idOf('em', parts.ready) as EmailId
      assert.equal(it.run('recordReport', { ...report, email, finding: bounce }).kind, 'waiting')
    },
  },
  strikeRefused: {
    'a mailbox that is gone': (it) => {
      isRemoved(it)
      it.run('strikeRefused', { email: finished, destination: 'gmail', reply: reply.text })
    },
    'several apps see the same': (it) => {
      it.sql(`insert into strike_count (app_id, destination, since, count, capped)
        values ('', 'gmail', ${nowMs - minuteMs}, 100, 100)`)
      it.run('strikeRefused', { email: finished, destination: 'gmail', reply: reply.text })
    },
  },
  setSuppression: {
    'too many': (it) =>
      assert.equal(it.run('setSuppression', { ...recipient, until: nowMs + dayMs }, actor), 'too_many'),
    'one more': (it) => {
      isRemoved(it)
      it.run('setSuppression', { ...recipient, until: nowMs + dayMs }, actor)
    },
    'for all apps': (it) => it.run('setSuppression', { ...recipient, app: null, until: nowMs + dayMs }, actor),
  },
  removeSuppression: {
    one: (it) => assert.ok(it.run('removeSuppression', idOf('sp', 0) as SuppressionId, actor)),
  },
  deleteRecords: {
    'of many emails': (it) => {
      it.sql(`update history set recipient = '${recipient.recipient}'`)
      assert.equal(it.run('deleteRecords', recipient.recipient), stepMax)
    },
  },
  clearRefusedRecipient: {
    'a step': (it) => it.run('clearRefusedRecipient', recipient.recipient, null),
    'the last step': (it) => it.run('clearRefusedRecipient', recipient.recipient, idOf('req', 1)),
  },
  removeSuppressionsOf: {
    'of every app': (it) => it.run('removeSuppressionsOf', recipient.recipient, actor),
  },
  clearSuppressions: {
    'of the tenant': (it) => clearStep(it, { apps: [acme] }),
    'of the tenant, few': (it) => clearStep(it, { apps: [acme], since: nowMs }),
    'of another app': (it) => clearStep(it, { apps: [idOf('app', 1) as AppId] }),
    'of several apps': (it) => clearStep(it, { apps: [acme, idOf('app', 1) as AppId] }),
    'of all apps': (it) => clearStep(it, { apps: null, reason: 'complaint' }),
  },
  addSigningKey: {
    'too many': (it) => assert.equal(it.run('addSigningKey', { ...signing, ...newSigningKey }, actor), 'too_many'),
    'for a new domain': (it) => it.run('addSigningKey', { ...newSigningKey, app: acme, domain: 'new.test' }, actor),
  },
  activateSigningKey: {
    pending: (it) => assert.ok(it.run('activateSigningKey', { ...signing, selector: 's11' }, actor)),
  },
  removeSigningKey: {
    one: (it) => assert.ok(it.run('removeSigningKey', { ...signing, selector: 's11' }, actor)),
  },
  resealSigningKey: {
    one: (it) => it.run('resealSigningKey', { ...signing, selector: 's11', sealed: 'sealed' }, 'again'),
  },
  putTransport: {
    'too many': (it) => assert.equal(it.run('putTransport', { ...transport, name: 'new' }, actor), 'too_many'),
    replaced: (it) => assert.ok(it.run('putTransport', { ...transport, name: 't1' }, actor)),
  },
  deleteTransport: { one: (it) => assert.ok(it.run('deleteTransport', 't1', actor)) },
  resealTransport: { one: (it) => it.run('resealTransport', { name: 't1', sealed: 'sealed' }, 'again') },
  setWebhookSecret: {
    replaced: (it) => assert.ok(it.run('setWebhookSecret', { app: acme, sealed: 'x', oldUntil: nowMs + dayMs }, actor)),
  },
  resealReceiver: {
    one: (it) => it.run('resealReceiver', { app: acme, sealed: 'sealed', old: [] }, { sealed: 'again', old: [] }),
  },
  addWebhookMessage: {
    full: (it) => assert.equal(it.run('addWebhookMessage', message), 'full'),
    'one more': (it) => {
      endOneWebhook(it)
      assert.match(it.run('addWebhookMessage', message), /^wh_/)
    },
  },
  sendWebhookAgain: {
    'one that waits': (it) => assert.equal(it.run('sendWebhookAgain', acme, webhook.id), 'done'),
    full: (it) => {
      endOneWebhook(it)
      it.sql(`insert into webhook_message (message_id, app_id, event, facts, at, due_at, tries)
        values ('wh_more', '${acme}', 'webhook.test', '{}', ${nowMs}, ${nowMs}, 0)`)
      assert.equal(it.run('sendWebhookAgain', acme, webhook.id), 'full')
    },
    'one that has ended': (it) => {
      endOneWebhook(it)
      assert.equal(it.run('sendWebhookAgain', acme, webhook.id), 'done')
    },
  },
  claimWebhooks: {
    'those that are due': (it) => assert.equal(it.run('claimWebhooks', acme, 10).length, 10),
    'none is due': (it) => {
      it.sql(`update webhook_message set due_at = ${nowMs + minuteMs} where due_at is not null`)
      assert.equal(it.run('claimWebhooks', acme, 10).length, 0)
    },
  },
  probeWrite: { 'a write': (it) => it.run('probeWrite') },
  endWebhookTry: {
    accepted: (it) => it.run('endWebhookTry', { ...webhook, receiver: 'accepts', waitMs: null }),
    failed: (it) => it.run('endWebhookTry', { ...webhook, receiver: 'fails', waitMs: minuteMs }),
    'accepted by a receiver that had failed': (it) => {
      it.sql(`update webhook_receiver set failing_since = ${nowMs - minuteMs} where app_id = '${acme}'`)
      it.sql(
        `update webhook_message set due_at = ${nowMs + dayMs} where due_at is not null and message_id <> '${idOf('wh', 0)}'`,
      )
      it.run('endWebhookTry', { ...webhook, receiver: 'accepts', waitMs: null })
    },
  },
}

function newToken(name: string) {
  const expiresAt = nowMs + dayMs
  return { hash: hash('new', 0) as TokenHash, name, role: 'operator', apps: [acme], expiresAt } as const
}

const newNode = {
  id: newId('node', nowMs),
  machine: 'm0',
  version: '1',
  roles: ['web'],
  relays: [],
  faults: [],
}
const newPasskey = { id: 'new', person: person as PersonId, publicKey: 'public', counter: 0, name: 'key' }

/** Removes all suppressions of the tenant; the rows of others stay. */
export function clearAll(it: It): void {
  let { next } = clearStep(it, { apps: [acme] })
  while (next !== null) ({ next } = clearStep(it, { apps: [acme] }, next))
  assert.deepEqual(it.all(`select 1 from suppression where app_id = '${acme}'`), [])
}
