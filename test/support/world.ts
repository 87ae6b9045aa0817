/**
 * A service in which something of everything has happened, minute by minute on the store's clock, so that
 * what is shown of it is the same in every run. The test is its worker: no time depends on the machine.
 */
import { hostname } from 'node:os'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import type { AppSettings } from '../../src/domain/app/settings.ts'
import type { DeliveryOutcome } from '../../src/domain/delivery/outcome.ts'
import type { ReportFinding } from '../../src/domain/delivery/report.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import { type AppId, type EmailId, type KeyId, newId } from '../../src/domain/id.ts'
import type { ActivityEvent } from '../../src/domain/operator/activity.ts'
import type { Actor } from '../../src/domain/operator/audit.ts'
import { hashToken, newToken } from '../../src/domain/operator/management-token.ts'
import type { NodeRecord } from '../../src/domain/operator/node.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import type { EmailType } from '../../src/domain/request/email-kinds.ts'
import type { RefusalCode } from '../../src/domain/request/rejection.ts'
import { moveClock } from '../../src/store/shared/clock.ts'
import type { Store } from '../../src/store/store.ts'
import { operator } from './operator.ts'
import { newSender, startTestService, testSettings } from './service.ts'
import type { Scope } from './temporary.ts'

export const worldBegin = Date.UTC(2030, 4, 15, 9, 0, 20)
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const relay = 'mail.acme.test:587'
const ada: Actor = { kind: 'local', id: null, name: 'cli:ada', via: 'cli', requestId: null }

const outcomes: Readonly<Record<string, DeliveryOutcome>> = {
  later: {
    ...{ kind: 'deferred', relay, ambiguous: false, waitMs: 5 * minuteMs },
    reply: parseReply('451 4.7.1 Greylisted, try again in 5 minutes'),
  },
  unsure: {
    ...{ kind: 'deferred', relay, ambiguous: true, waitMs: 5 * minuteMs },
    reply: { code: null, enhanced: null, text: 'the connection was lost after the message' },
  },
  nobody: {
    ...{ kind: 'failed', relay, reason: 'refused_by_relay' },
    reply: parseReply('550 5.1.1 The mailbox does not exist'),
  },
}
const delivered: DeliveryOutcome = {
  kind: 'delivered',
  relay,
  reply: parseReply('250 2.0.0 Ok: queued as 4F'),
}

/** Claims everything due, and records what the recipients' names ask for. */
async function work(store: Store): Promise<void> {
  const { claims } = await store.claimDue({ max: 50, perApp: 50, leases: [] })
  for (const claim of claims) {
    const name = claim.content.to.split('@')[0]?.replace(/\d+$/, '') ?? ''
    await store.recordOutcome(claim, outcomes[name] ?? delivered)
  }
}

async function report(store: Store, email: EmailId, finding: ReportFinding): Promise<void> {
  const { kind } = await store.recordReport({ email, source: 'mail', finding, destination: 'other' })
  if (kind !== 'recorded') throw new Error(kind)
}

type Queued = {
  readonly key: string
  /** The version of the app's settings. */
  readonly version: number
  readonly to: string
  readonly type: EmailType
  readonly lifeMs: number
}

/** Not by a request: the counts of those are written seconds later. */
async function queueEmail(store: Store, { key, version, to, type, lifeMs }: Queued): Promise<void> {
  const url = 'https://app.acme.test/auth?token=abc'
  const content = { to: to as EmailAddress, url, messageIdDomain: 'acme.test' }
  const expiresAt = store.now() + lifeMs
  const admit = {
    id: newId('em', store.now()),
    type,
    expiresAt,
    traceparent: null,
    supersedeKey: null,
    content,
  }
  const judged = { version, verdict: { admit }, idempotency: null }
  const { kind } = await store.enqueue({ keyHash: hashDeliveryKey(key), judged })
  if (kind !== 'queued') throw new Error(kind)
}

export async function startWorld(scope: Scope) {
  const service = await startTestService(scope, {
    isDev: false,
    roles: new Set(['console']),
    linksBaseUrl: 'https://links.acme.test',
    bounceAddress: 'bounces@bounce.acme.test' as EmailAddress,
    settings: { supportContact: 'help@acme.test', branding: { addressLine: 'Acme Ltd, 1 Harbour Road' } },
    nowMs: worldBegin,
  })
  const { store } = service
  /** Sets the clock: so many minutes since the begin. */
  const at = (minutes: number) => moveClock(service.clock, worldBegin + minutes * minuteMs - store.now())

  at(1)
  const shop = await newSender(service, 'shop', {
    ...testSettings,
    name: 'Shop',
    allowedUrls: ['https://shop.acme.test/auth/*'],
  })
  const old = await newSender(service, 'old-shop', { ...testSettings, name: 'Old Shop' })
  await store.updateApp(old.app.id, { status: 'disabled' }, operator)
  const limits: AppSettings['limits'] = { keyPerMinute: 300, recipientPerHour: 4, daily: 20 }
  await store.updateApp(service.app.id, { settings: { ...service.app.settings, limits } }, ada)

  at(2)
  const names = ['ada', 'nobody', 'later1', 'unsure1', 'late', 'gone', 'returned', 'annoyed']
  for (const [n, name] of names.entries()) {
    const to = `${name}@example.com`
    const type = n % 2 === 1 ? 'password_reset' : 'magic_link'
    const lifeMs = (name === 'late' ? 2 : 15) * minuteMs
    await queueEmail(store, { key: service.key, version: 2, to, type, lifeMs })
  }
  const toShop = { to: 'bob@example.com', type: 'magic_link', lifeMs: 15 * minuteMs } as const
  await queueEmail(store, { key: shop.key, version: 1, ...toShop })
  at(4.4)
  const find = async (to: string) => {
    const recipient = store.nameRecipient(to as Parameters<typeof store.nameRecipient>[0])
    return (await store.listEmails({ recipient, limit: 1 })).items[0]?.id as EmailId
  }
  await store.cancelEmail(await find('gone@example.com'), ada)
  await work(store)

  at(6)
  const later = { expiresAt: store.now() + 3 * dayMs }
  const web = await newKey(store, service.app.id, { name: 'web', ...later })
  const leaked = await newKey(store, service.app.id, { name: 'leaked', expiresAt: null })
  await store.revokeKey(leaked, ada)
  await addRefusals(store, { app: service.app.id, web, other: service.keyId, leaked })
  await addPeople(store, service.app.id)

  at(9)
  await report(store, await find('returned@example.com'), {
    ...{ kind: 'bounced', about: 'recipient', permanent: true, cause: 'no_mailbox' },
    reply: parseReply('550 5.1.1 No such user here'),
  })
  await report(store, await find('annoyed@example.com'), { kind: 'complained' })

  at(10)
  await work(store) // those that were deferred
  await fillActivity(store, service.app.id, shop.app.id)
  await store.noteNode(worker('mail-2', store))
  at(12)
  await store.noteNode(worker('mail-1', store))
  for (const node of await store.listNodes()) if (node.machine === hostname()) await store.noteNode(node)
  return { ...service, shop, old, find, at }
}

async function newKey(store: Store, app: AppId, { name, expiresAt }: { name: string; expiresAt: number | null }) {
  const made = await store.createKey({ app, hash: hashDeliveryKey(newDeliveryKey()), name, expiresAt }, ada)
  if (made === null || typeof made === 'string') throw new Error('the key was not made')
  return made.id
}

type Keys = { app: AppId; web: KeyId; other: KeyId; leaked: KeyId }

function addRefusals(store: Store, { app, web, other, leaked }: Keys): Promise<void> {
  const one = (ago: number, key: KeyId, code: RefusalCode, issue: string, origin: string | null) => ({
    ...{ requestId: newId('req', store.now() - ago), at: store.now() - ago, app, key, code, origin },
    issues: issue === '' ? [] : [issue],
    recipient: store.nameRecipient('eve@example.com' as EmailAddress),
  })
  const staging = 'https://staging.acme.test'
  return store.addRefusals([
    one(5000, web, 'url_not_allowed', 'url host_differs', staging),
    one(4000, web, 'url_not_allowed', 'url host_differs', staging),
    one(3000, other, 'invalid_body', 'to forbidden_character', 'https://app.acme.test'),
    one(2000, other, 'recipient_rate_limited', '', null),
    one(1000, leaked, 'invalid_url', 'url query_missing', null),
  ])
}

async function addPeople(store: Store, app: AppId): Promise<void> {
  await store.createPerson({ name: 'Grace', role: 'operator', apps: [app] }, ada)
  const linus = await store.createPerson({ name: 'Linus', role: 'reader', apps: null }, ada)
  if (typeof linus === 'object') await store.updatePerson(linus.id, { disabled: true }, ada)
  const tokens = [
    ['deploy', 'operator', [app]],
    ['old laptop', 'admin', null],
  ] as const
  for (const [name, role, apps] of tokens)
    await store.createToken({ name, role, apps, expiresAt: store.now() + 90 * dayMs, hash: hashToken(newToken()) }, ada)
  const laptop = (await store.listTokens()).find(({ name }) => name === 'old laptop')
  if (laptop !== undefined) await store.revokeToken(laptop.id, ada)
}

/** A process that sends: one relay takes mail, the other does not. */
function worker(machine: string, store: Store): Omit<NodeRecord, 'seenAt'> {
  const [startedAt, since] = [store.now() - 60 * minuteMs, store.now() - 4 * minuteMs]
  const idle = { connecting: 0, open: 0, busy: 0, allowed: 5, max: 5 }
  const certificateExpiresAt = null
  const lastOutage = {
    from: since - 20 * minuteMs,
    until: since - 15 * minuteMs,
    reason: '421 4.3.2 Restarting',
  }
  const main = { name: relay, available: true, tried: true, since: startedAt, reason: '', lastOutage }
  const spare = {
    ...{ name: 'spare.acme.test:587', available: false, tried: true, since, lastOutage: null },
    reason: '535 5.7.8 Authentication failed',
  }
  return {
    ...{ id: newId('node', startedAt), machine, version: '0.1.0', roles: ['api', 'worker'], startedAt },
    faults: [],
    relays: [
      { ...main, certificateExpiresAt, connections: { ...idle, open: 3, busy: 2 } },
      { ...spare, certificateExpiresAt, connections: { ...idle, connecting: 1, allowed: 1 } },
    ],
  }
}

/** The counts of the hour before, of the whole service and of two apps; no two are equal. */
async function fillActivity(store: Store, acme: AppId, shop: AppId): Promise<void> {
  const minute = Math.floor(store.now() / minuteMs)
  const rows = (app: AppId | null, span: 1 | 60, at: number, counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).map(([event, count]) => ({
      app,
      span,
      minute: at,
      event: event as ActivityEvent,
      count,
    }))
  const wave = Array.from({ length: 8 }, (_, ago) => {
    const accepted = Math.round(40 + 25 * Math.sin(ago / 6))
    const counts = {
      accepted,
      delivered: accepted - 2,
      deferred: ago % 7 === 0 ? 6 : 1,
      'took:250': accepted - 5,
      'took:2500': 3,
    }
    return rows(null, 1, minute - 1 - ago, counts)
  })
  const trouble = {
    'failed:refused_by_relay': 7,
    expired: 6,
    'bounced:no_mailbox': 4,
    'bounced:policy': 1,
    complained: 2,
    'refused:url_not_allowed': 9,
    'refused:rate_limited': 4,
    'reply:250 2.0.0': 31,
    'reply:550 5.1.1': 7,
  }
  const hours = [
    ...rows(acme, 60, minute - (minute % 60), {
      accepted: 90,
      delivered: 71,
      deferred: 13,
      'took:500': 71,
      ...trouble,
    }),
    ...rows(shop, 60, minute - (minute % 60), { accepted: 20, delivered: 20, 'took:100': 20 }),
  ]
  await store.addActivity([
    ...wave.flat(),
    ...rows(null, 1, minute - 3, trouble),
    ...rows(acme, 1, minute - 3, trouble),
    ...hours,
  ])
}
