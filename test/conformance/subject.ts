/**
 * What the cases of the conformance suite share: an engine under test, senders, requests, claims.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { App, AppSettings } from '../../src/domain/app/app.ts'
import { hashDeliveryKey, type KeyHash, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import type { DeliveryOutcome } from '../../src/domain/delivery/outcome.ts'
import { type KeyId, newId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import type { KeyRing } from '../../src/store/crypto/key-ring.ts'
import type { Claim, EnqueueRequest, Store } from '../../src/store/store.ts'
import { newRing, testSettings } from '../support/service.ts'

/** One store on data of its own. */
export type Subject = {
  readonly store: Store
  advance(byMs: number): void
  /** The same data, opened again (by another ring, where given), as a second process would. */
  reopen(options?: { ring?: KeyRing; queueMax?: number }): Promise<Store>
}

export type Engine = {
  readonly name: string
  open(t: TestContext, options?: { ring?: KeyRing; queueMax?: number }): Promise<Subject>
}

export const day = 86_400_000
export const delivered: DeliveryOutcome = { kind: 'delivered', reply: '250 ok', relay: 'relay:25' }
export const deferred = (waitMs: number): DeliveryOutcome => ({
  kind: 'deferred',
  reply: '451 later',
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
  const app = await store.createApp(slug, settings)
  assert.ok(app)
  const keyHash = hashDeliveryKey(newDeliveryKey())
  const key = await store.createKey({ app: app.id, hash: keyHash, name: null, expiresAt: null })
  return { app, keyHash, keyId: key.id }
}

let serial = 0

export function request(
  store: Store,
  sender: Sender,
  more: { to?: string; idem?: string; body?: string; lifeMs?: number } = {},
): EnqueueRequest {
  const to = (more.to ?? `r${serial++}@example.com`) as EmailAddress
  return {
    keyHash: sender.keyHash,
    appVersion: sender.app.version,
    verdict: {
      admit: {
        id: newId('em', store.now()),
        type: 'magic_link',
        expiresAt: store.now() + (more.lifeMs ?? 900_000),
        content: { to, url: 'https://app.acme.test/?token=abc', messageIdDomain: 'acme.test' },
      },
    },
    idempotency: more.idem === undefined ? null : { key: more.idem, bodyDigest: more.body ?? 'digest' },
  }
}

export const refusal = (sender: Sender): EnqueueRequest => ({
  keyHash: sender.keyHash,
  appVersion: sender.app.version,
  verdict: { refuse: 'invalid_url' },
  idempotency: null,
})

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

/** The ring that `engine.open` was given, by the store it made. */
export const rings = new WeakMap<Store, KeyRing>()
export const rememberRing = (store: Store, ring: KeyRing): void => void rings.set(store, ring)
export const testRing = (store: Store): KeyRing => rings.get(store) ?? newRing()
