import assert from 'node:assert/strict'
import { test } from 'node:test'
import { minuteMs } from '../../domain/duration.ts'
import { newId } from '../../domain/id.ts'
import type { SigningKeyRecord } from '../../store/signing-key-store.ts'
import { StoreUnavailable } from '../../store/store.ts'
import type { ReceiverRecord } from '../../store/webhook-store.ts'
import { newAlertsCheck } from '../alerts/alerts.ts'
import { examineStore, type StoreFacts } from './check-database.ts'

const key = (state: 'active' | 'retired', sealed: string): SigningKeyRecord => ({
  domain: 'acme.test',
  selector: 's1',
  algorithm: 'rsa',
  state,
  sealed,
  publicKey: '',
  createdAt: 0,
  changedAt: 0,
})
const receiver = (sealed: string): ReceiverRecord => ({
  app: newId('app', 0),
  sealed,
  old: [],
  failingSince: null,
  result: null,
})

const facts = (change: Partial<StoreFacts['store']> = {}): StoreFacts => ({
  store: {
    examine: async () => [{ check: 'worker', ok: true, detail: 'a process is sending' }],
    probeWrite: async () => {},
    listMissingKeys: async () => [],
    listSigningKeys: async () => [key('active', 'new'), key('retired', 'old')],
    listReceivers: async () => [receiver('new')],
    listApps: async () => [],
    listTransports: async () => [],
    ...change,
  },
  transports: { open: () => ({ relays: [], faults: [] }) },
  checkAlerts: null,
  lacksKey: (sealed) => (sealed === 'new' ? null : sealed),
})

const failing = async (given: StoreFacts) =>
  (await examineStore(given)).filter(({ ok }) => !ok).map(({ check, detail }) => `${check}: ${detail}`)

test('what waits for a key is listed by the key', async () => {
  assert.deepEqual(await failing(facts()), [])
  const found = await failing(
    facts({
      listMissingKeys: async () => [{ keyId: 'old', emails: 6 }],
      listSigningKeys: async () => [key('active', 'old')],
      listReceivers: async () => [receiver('older'), receiver('older')],
    }),
  )
  assert.match(
    found.join(),
    /^keys: 6 emails, the mail of acme\.test, which s1 signs wait for the key "old"; the webhooks of 2 apps wait for the key "older"\. POSTERN_SECRET_KEYS lacks/,
  )
})

test('while no write is possible, nothing is sent although a process holds the lock', async () => {
  const full = facts({ probeWrite: () => Promise.reject(new StoreUnavailable('database or disk is full')) })
  assert.deepEqual(await failing(full), [
    'writes: database or disk is full',
    'worker: nothing is sent while the database cannot be written',
  ])
  await assert.rejects(examineStore(facts({ probeWrite: () => Promise.reject(new TypeError('ours')) })), TypeError)
})

test('alerts that the receiver does not accept are named, if alerts are posted', async () => {
  const alert = { id: 'wh_1', type: 'alert.began', at: 0, kind: 'no_relay', apps: [], subject: null } as const
  const pending = [{ ...alert, urgent: true, message: 'x', claimedUntil: 0 }]
  const store = { findCheck: async () => ({ at: 0, result: { open: {}, pending } }), now: () => 10 * minuteMs }
  const given = { ...facts(), checkAlerts: newAlertsCheck({}, store) }
  assert.match(String(await failing(given)), /^alerts: 1 alert has waited up to 10 min for the receiver/)
  assert.equal(newAlertsCheck(null, store), null)
})
