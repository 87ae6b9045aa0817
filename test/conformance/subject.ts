/** Shared by the cases of the conformance suite: an engine under test, senders, requests, claims. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { App } from '../../src/domain/app/app.ts'
import { hashDeliveryKey, type KeyHash, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import type { AppSettings } from '../../src/domain/app/settings.ts'
import type { DeliveryOutcome } from '../../src/domain/delivery/outcome.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import { type AppId, type EmailId, type KeyId, newId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import type { EmailType } from '../../src/domain/request/email-kinds.ts'
import type { KeyRing } from '../../src/store/crypto/key-ring.ts'
import type { AppChange, KeyRecord, NewKeyRecord } from '../../src/store/operator-store.ts'
import type { Claim, EnqueueRequest, Judged, Store } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { newRing, testSettings } from '../support/service.ts'

/** One store with its own data. */
export type Subject = {
  readonly store: Store
  advance(byMs: number): void
  /** Opens the same data again, as a second process would (with another key ring, if given). */
  reopen(options?: { ring?: KeyRing; queueMax?: number }): Promise<Store>
  /** Runs one statement on the database, past the store. */
  execute(sql: string): Promise<void>
}

export type Engine = {
  readonly name: string
  open(t: TestContext, options?: { ring?: KeyRing; queueMax?: number }): Promise<Subject>
}

export const day = 86_400_000
export const delivered: DeliveryOutcome = {
  kind: 'delivered',
  reply: parseReply('250 ok'),
  relay: 'relay:25',
}
export const deferred = (waitMs: number): DeliveryOutcome => ({
  kind: 'deferred',
  reply: parseReply('451 later'),
  relay: 'relay:25',
  ambiguous: false,
  waitMs,
})

export type Sender = { app: App; keyHash: KeyHash; keyId: KeyId }

export async function newSender(
  store: Store,
  slug: string,
  limits: Partial<AppSettings['limits']> = {},
): Promise<Sender> {
  const settings = { ...testSettings, limits: { ...testSettings.limits, ...limits } }
  const app = await store.createApp(slug, settings, operator)
  assert.ok(app)
  const keyHash = hashDeliveryKey(newDeliveryKey())
  const key = await newKey(store, { app: app.id, hash: keyHash, name: null, expiresAt: null })
  return { app, keyHash, keyId: key.id }
}

/** Makes a key whose name is free. */
export async function newKey(store: Store, key: NewKeyRecord): Promise<KeyRecord> {
  const made = await store.createKey(key, operator)
  assert.ok(made !== null && typeof made === 'object')
  return made
}

let serial = 0

export function request(
  store: Store,
  sender: Sender,
  more: {
    id?: EmailId
    type?: EmailType
    to?: string
    idem?: string
    body?: string
    lifeMs?: number
    version?: number
    supersedeKey?: string
  } = {},
): EnqueueRequest {
  const to = (more.to ?? `r${serial++}@example.com`) as EmailAddress
  const verdict = {
    admit: {
      id: more.id ?? newId('em', store.now()),
      type: more.type ?? 'magic_link',
      expiresAt: store.now() + (more.lifeMs ?? 900_000),
      traceparent: null,
      supersedeKey: more.supersedeKey ?? null,
      content: { to, url: 'https://app.acme.test/?token=abc', messageIdDomain: 'acme.test' },
    },
  } as const
  const idempotency = more.idem === undefined ? null : { key: more.idem, bodyDigest: more.body ?? 'digest' }
  const version = more.version ?? sender.app.version
  return { keyHash: sender.keyHash, judged: { version, verdict, idempotency } }
}

export const refusal = (sender: Sender, idempotency: Judged['idempotency'] = null): EnqueueRequest => ({
  keyHash: sender.keyHash,
  judged: { version: sender.app.version, verdict: { refuse: 'invalid_url' }, idempotency },
})

/** Changes an app that is there. */
export async function updateApp(store: Store, id: AppId, change: AppChange): Promise<App> {
  const app = await store.updateApp(id, change, operator)
  assert.ok(app !== null && typeof app === 'object')
  return app
}

export const claim = async (store: Store, max = 10): Promise<readonly Claim[]> =>
  (await store.claimDue({ max, perApp: 1000, leases: [] })).claims

export const kinds = (results: readonly { kind: string }[]) => {
  const counts: Record<string, number> = {}
  for (const { kind } of results) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

export type It = (
  name: string,
  run: (t: TestContext, subject: Subject) => Promise<void>,
  options?: { queueMax?: number },
) => void

/** The key ring of each store that `engine.open` made. */
const rings = new WeakMap<Store, KeyRing>()
export const rememberRing = (store: Store, ring: KeyRing): void => void rings.set(store, ring)
export const testRing = (store: Store): KeyRing => rings.get(store) ?? newRing()
