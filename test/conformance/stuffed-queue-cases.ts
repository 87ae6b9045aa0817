/** Cases of the queue's methods on a stuffed database (`stuffed-rows.ts`). */
import assert from 'node:assert/strict'
import type { KeyHash } from '../../src/domain/app/delivery-key.ts'
import { heldDays, stepMax } from '../../src/domain/bounds.ts'
import type { DeliveryOutcome } from '../../src/domain/delivery/outcome.ts'
import { noReply } from '../../src/domain/delivery/reply.ts'
import { dayMs, minuteMs } from '../../src/domain/duration.ts'
import { type AppId, type EmailId, newId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import { nameRecipient } from '../../src/store/shared/bucket-names.ts'
import { Buckets } from '../../src/store/sqlite/queue/buckets.ts'
import type { EnqueueRequest, NewEmail } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { acme, hash, idOf, nowMs, parts } from './stuffed-rows.ts'
import {
  type Cases,
  fullBuckets,
  type It,
  keyedHash,
  type MethodName,
  ring,
  type ScriptName,
} from './stuffed-writer.ts'

const emailOf = (part: keyof typeof parts, n = 0) => idOf('em', parts[part] + n) as EmailId

const newEmail = (to: string): NewEmail => ({
  ...{ id: newId('em', nowMs), type: 'magic_link', expiresAt: nowMs + dayMs, traceparent: null },
  supersedeKey: 'sign-in',
  content: { to: to as EmailAddress, url: 'https://app.acme.test/x', messageIdDomain: 'acme.test' },
})

type Options = {
  readonly to?: string
  readonly idem?: string
  readonly body?: string
  readonly version?: number
}

const request = ({ to = 'ada@gmail.com', idem, body = 'b', version = 1 }: Options = {}): EnqueueRequest => ({
  keyHash: hash('key', 0) as KeyHash,
  judged: {
    version,
    verdict: { admit: newEmail(to) },
    idempotency: idem === undefined ? null : { key: idem, bodyDigest: body },
  },
})

const enqueued = (it: It, options?: Options) => it.run('enqueue', request(options)).kind

const limit = (it: It, limits: string) =>
  it.sql(`update app set settings = json_set(settings, ${limits}) where app_id = '${acme}'`)

const suspendAcme = (it: It, status = 'suspended', at = nowMs) =>
  it.sql(`update app set status = '${status}', status_at = ${at}, slug = app_id where app_id = '${acme}'`)

type Count = { readonly emails: number }

/** Leaves of the queue only what the condition names; SQLite empties a table at once. */
const keepQueue = (it: It, condition: string) =>
  it.sql(`create temp table kept as select * from queue where ${condition};
    delete from queue; insert into queue select * from kept; drop table kept`)

const other = idOf('app', 1) as AppId

const claim = { max: 100, perApp: 50, leases: [] }
const isSending = "state = 'sending'"

/** Other apps that are suspended, each with an email that waits. */
const suspendOthers = (it: It, apps: number) => {
  keepQueue(it, isSending)
  it.sql(`update app set status = 'suspended', status_at = ${nowMs} where rowid between 2 and ${apps + 1};
    insert into queue select 'em_' || a.rowid, a.app_id, key_id, type, 'queued', 0, 0, fence, accepted_at,
      expires_at, due_at, wanted_at, 0, q.recipient, trail, traceparent, null, sealed
    from app a join queue q on q.email_id = '${emailOf('sending')}' where a.rowid between 2 and ${apps + 1}`)
}

const lease = { emailId: emailOf('sending'), fence: 1 }
const reply = noReply('no route')
const deferred: DeliveryOutcome = { kind: 'deferred', reply, relay: null, ambiguous: false, waitMs: 1000 }

/** More apps than a call may have statements. */
const manyApps = 3 * stepMax

export const queueCases: Cases<Exclude<MethodName, ScriptName>> = {
  enqueue: {
    'an unknown key': (it) => it.run('enqueue', { keyHash: hash('none', 0) as KeyHash, judged: null }),
    'other settings': (it) => assert.equal(enqueued(it, { version: 0 }), 'judge_again'),
    'a test email': (it) => {
      const { judged } = request()
      assert.equal(it.run('enqueue', { appId: acme, judged }).kind, 'queued')
    },
    'a replayed request': (it) => {
      assert.equal(enqueued(it, { idem: 'one' }), 'queued')
      assert.equal(enqueued(it, { idem: 'one' }), 'replayed')
      assert.equal(enqueued(it, { idem: 'one', body: 'c' }), 'idempotency_key_reused')
    },
    'a limit of the key': (it) => {
      limit(it, "'$.limits.keyPerMinute', 1")
      for (const _ of [1, 2]) enqueued(it)
      assert.equal(enqueued(it), 'key_rate_limited')
    },
    'a limit of the recipient': (it) => {
      limit(it, "'$.limits.recipientPerHour', 1")
      for (const _ of [1, 2]) enqueued(it)
      assert.equal(enqueued(it), 'recipient_rate_limited')
    },
    'a limit of the day': (it) => {
      limit(it, "'$.limits.daily', 0")
      assert.equal(enqueued(it), 'daily_limit_reached')
    },
    'a full queue': (it) => {
      it.sql('update queue_depth set count = 1000000')
      assert.equal(enqueued(it), 'queue_full')
    },
    'a suppressed recipient': (it) => {
      const name = nameRecipient(keyedHash, 'ada@gmail.com' as EmailAddress)
      it.sql(`update suppression set recipient = '${name}' where suppression_id = '${idOf('sp', 0)}'`)
      assert.equal(enqueued(it), 'suppressed')
    },
    'an email that supersedes others': (it) => {
      enqueued(it)
      it.move(minuteMs)
      const result = it.run('enqueue', request())
      assert.equal(result.kind === 'queued' && result.superseded.length, 1)
    },
    'after a restart': (it) => {
      Object.assign(it.writer, { buckets: new Buckets() })
      assert.equal(enqueued(it), 'queued')
    },
    'no room for buckets in memory': (it) => {
      Object.assign(it.writer, { buckets: fullBuckets() })
      assert.equal(enqueued(it), 'queued')
    },
  },
  claimDue: {
    'a suspect, whose key is missing': (it) => it.run('claimDue', { request: claim, allVoid: false }),
    'much mail whose key is back': (it) => {
      it.sql(`update queue set missing_key = '${ring[0].id}', due_at = expires_at where state = 'deferred'`)
      it.run('claimDue', { request: claim, allVoid: false })
    },
    'mail of the tenant, beside what it holds': (it) => {
      const request = { ...claim, leases: [{ ...lease, appId: acme }] }
      assert.ok(it.run('claimDue', { request, allVoid: false }).suspects)
    },
    'mail that can be read, and damaged mail': (it) => {
      keepQueue(it, isSending)
      for (const to of ['ada@gmail.com', 'bob@gmail.com']) enqueued(it, { to })
      const ids = `select min(email_id) from queue where not ${isSending}`
      it.sql(`update queue set sealed = substr(sealed, 1, 30) where email_id = (${ids})`)
      const { claims, ended } = it.run('claimDue', { request: claim, allVoid: false })
      assert.deepEqual([claims.length, ended.length], [1, 1])
    },
    'a worker after another one': (it) => it.run('claimDue', { request: claim, allVoid: true }),
    'lapsed leases': (it) => {
      it.move(2 * minuteMs)
      it.run('claimDue', { request: claim, allVoid: false })
    },
    'deferred mail that is due': (it) => {
      it.move(2 * 60 * minuteMs)
      const [before] = it.all("select count(*) as emails from queue where state = 'deferred'") as Count[]
      it.run('claimDue', { request: claim, allVoid: false })
      const [after] = it.all("select count(*) as emails from queue where state = 'deferred'") as Count[]
      assert.ok(Number(before?.emails) - Number(after?.emails) <= 100, 'others wait for them')
    },
    'expired mail': (it) => {
      it.move(2 * dayMs)
      it.run('claimDue', { request: claim, allVoid: false })
    },
    'deferred mail that waits': (it) => {
      keepQueue(it, "state = 'deferred'")
      it.run('claimDue', { request: claim, allVoid: false })
    },
    'suspects of a suspended app': (it) => {
      suspendAcme(it)
      it.run('claimDue', { request: claim, allVoid: false })
    },
    'mail of many suspended apps': (it) => {
      suspendOthers(it, manyApps)
      it.run('claimDue', { request: claim, allVoid: false })
    },
  },
  renewLeases: {
    'one that is held, and one that is lost': (it) => {
      const lost = it.run('renewLeases', [lease, { ...lease, fence: 0 }])
      assert.equal(lost.length, 1)
    },
  },
  recordOutcome: {
    'a delivered email': (it) => it.run('recordOutcome', lease, { kind: 'delivered', reply, relay: 'relay:25' }),
    'a deferred email': (it) => it.run('recordOutcome', lease, deferred),
    'a lost lease': (it) => assert.equal(it.run('recordOutcome', { ...lease, fence: 0 }, deferred), false),
  },
  maintain: {
    'nothing to do': (it) => {
      it.writer.cursors.scanBegunAt = nowMs
      it.run('maintain')
    },
    'the beginning of a scan': (it) => it.run('maintain'),
    'the ring lacks the key that sealed all mail': (it) => {
      it.writer.cursors.missingKeys = ''
      it.run('maintain')
    },
    'everything is old': (it) => {
      it.move(500 * dayMs)
      it.run('maintain')
    },
    'a deleted app': (it) => {
      suspendAcme(it, 'deleted')
      it.run('maintain')
    },
    'webhooks that have all ended': (it) => {
      it.sql('update webhook_message set due_at = null')
      it.move(10 * dayMs)
      it.run('maintain')
    },
    'a deleted app that has nothing, beside the tenant': (it) => {
      it.sql(`update app set status = 'deleted' where app_id = '${other}'`)
      it.run('maintain')
    },
    'an app that was disabled long ago': (it) => {
      suspendAcme(it, 'disabled', nowMs - heldDays * dayMs)
      it.run('maintain')
    },
    'many apps that were disabled long ago': (it) => {
      suspendOthers(it, manyApps)
      it.sql(`update app set status_at = 0 where status = 'suspended'`)
      it.run('maintain')
    },
  },
  cancelDeletedAppMail: {
    'an active app': (it) => assert.deepEqual(it.run('cancelDeletedAppMail', acme), []),
    'a deleted app': (it) => {
      suspendAcme(it, 'deleted')
      it.run('cancelDeletedAppMail', acme)
    },
    'a deleted app that has nothing, beside the tenant': (it) => {
      it.sql(`update app set status = 'deleted' where app_id = '${other}'`)
      it.run('cancelDeletedAppMail', other)
    },
    'its suspects': (it) => {
      suspendAcme(it, 'deleted')
      keepQueue(it, 'lost_leases = 2')
      it.run('cancelDeletedAppMail', acme)
    },
    'its deferred mail': (it) => {
      suspendAcme(it, 'deleted')
      keepQueue(it, `state = 'deferred' or ${isSending}`)
      it.run('cancelDeletedAppMail', acme)
    },
    'nothing left to cancel': (it) => {
      suspendAcme(it, 'deleted')
      keepQueue(it, `${isSending} and app_id <> '${acme}'`)
      it.run('cancelDeletedAppMail', acme)
    },
    'others have all the leases': (it) => {
      suspendAcme(it, 'deleted')
      keepQueue(it, isSending)
      it.sql(`update queue set app_id = '${other}'`)
      it.run('cancelDeletedAppMail', acme)
    },
  },
  retryEmail: {
    deferred: (it) => assert.equal(it.run('retryEmail', emailOf('deferred'), operator), 'done'),
    sending: (it) => assert.equal(it.run('retryEmail', emailOf('sending'), operator), 'sending'),
    finished: (it) => assert.equal(it.run('retryEmail', emailOf('finished'), operator), 'finished'),
  },
  retryDeferred: {
    'of all apps': (it) => {
      const after = emailOf('deferred')
      assert.ok(it.run('retryDeferred', null, after, operator).retried > 0)
    },
    'of the tenant': (it) => it.run('retryDeferred', [acme], emailOf('deferred'), operator),
    'of another app': (it) => it.run('retryDeferred', [other], null, operator),
  },
  cancelEmail: {
    queued: (it) => assert.equal(it.run('cancelEmail', emailOf('ready'), operator), 'done'),
    unknown: (it) => assert.equal(it.run('cancelEmail', newId('em', nowMs), operator), 'not_found'),
  },
}

/** Maintenance of a deleted app: its mail is cancelled, and its records go, until no step finds any. */
export function deleteAll(it: It): void {
  suspendAcme(it, 'deleted')
  keepQueue(it, `email_id < '${emailOf('ready', 10 * stepMax)}'`)
  while (it.run('maintain').more);
  for (const table of ['suppression', 'webhook_message', 'queue', 'app'])
    assert.deepEqual(it.all(`select 1 from ${table} where app_id = '${acme}'`), [], table)
}
