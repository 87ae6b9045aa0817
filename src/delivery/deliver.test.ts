import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTags } from '../../test/support/dkim.ts'
import { newRing, newTestRelay, relayTo, testSettings } from '../../test/support/service.ts'
import { startScriptedServer, testMessage } from '../../test/support/smtp.ts'
import { atEnd, type Scope } from '../../test/support/temporary.ts'
import type { App } from '../domain/app/app.ts'
import type { Reference } from '../domain/delivery/reference.ts'
import { newId } from '../domain/id.ts'
import type { EmailAddress } from '../domain/request/email-address.ts'
import { makeSigningKey, openSigningKey } from '../store/crypto/signing-key.ts'
import { momentNow } from '../store/shared/clock.ts'
import type { Claim } from '../store/store.ts'
import { type DeliverDeps, deliver } from './deliver.ts'
import { MessageComposer } from './message/compose-message.ts'

const appId = newId('app', 0)
const app: App = {
  ...{ id: appId, slug: 'acme', version: 1, status: 'active', createdAt: 0, updatedAt: 0 },
  settings: testSettings,
}
const acceptedAt = Date.UTC(2026, 10, 25)
const claim: Claim = {
  emailId: newId('em', 0),
  fence: 1,
  appId,
  type: 'magic_link',
  content: {
    to: 'ada@example.com' as EmailAddress,
    url: 'https://app.acme.test/?token=x',
    messageIdDomain: 'acme.test',
  },
  acceptedAt,
  expiresAt: acceptedAt + 900_000,
  attempt: 1,
  lifeLeftMs: 900_000,
  ageMs: 0,
  traceparent: null,
  isSuspect: false,
}

/** Delivers an email that the worker claimed `heldMs` ago. */
async function tryAt(
  t: Scope,
  script: Parameters<typeof startScriptedServer>[1],
  {
    heldMs = 0,
    relays = [],
    signing = null,
    ...change
  }: Partial<Claim> & Partial<DeliverDeps> & { heldMs?: number } = {},
) {
  const server = await startScriptedServer(t, script)
  const relay = newTestRelay(relayTo(server.port))
  atEnd(t, () => relay.close())
  const deps: DeliverDeps = {
    relays: [relay, ...relays],
    random: () => 0.5,
    composer: new MessageComposer(),
    makeReference: () => 'em_01m85rt6yr0000fykq7my1841e.0123456789' as Reference,
    bounceAddress: null,
    signing,
  }
  const now = momentNow()
  const claimedAt = { monotonicMs: now.monotonicMs - heldMs, wallMs: now.wallMs - heldMs }
  const attempt = {
    claim: { ...claim, ...change },
    app,
    claimedAt,
    leasedAt: now,
    areLeasesValid: () => true,
  }
  return { server, outcome: await deliver(deps, attempt) }
}

test('the next attempt is within half of what the link has left, counted from the claim', async (t) => {
  const life = { attempt: 4, lifeLeftMs: 100_000, heldMs: 60_000 }
  const { outcome } = await tryAt(t, { rcpt: '451 4.3.0 later' }, life)
  assert.ok(outcome.kind === 'deferred')
  assert.ok(outcome.waitMs > 10_000 && outcome.waitMs <= 20_000, String(outcome.waitMs))
})

test('an email says how long its link lives when it is sent', async (t) => {
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + 3_600_000) // the process has run for an hour
  const { outcome, server } = await tryAt(t, {}, { lifeLeftMs: 15 * 60_000, heldMs: 5 * 60_000 })
  assert.equal(outcome.kind, 'delivered')
  assert.match(server.messages[0] ?? '', /The link expires in 10 minutes/)
})

test('a signature is dated in seconds, by the store’s clock', async (t) => {
  const ring = newRing()
  const key = await makeSigningKey(ring, { domain: 'acme.test', selector: 's', algorithm: 'ed25519' })
  const { algorithm, domain, selector } = key
  const signers = [{ algorithm, domain, selector, key: openSigningKey(ring, key) }]
  const signing = { signers: { find: () => ({ signers }) }, relayDates: false }
  const { server } = await tryAt(t, {}, { signing, ageMs: 7500 })
  const [, signature = ''] = /^DKIM-Signature:([\s\S]*?)\r\n(?=\S)/im.exec(server.messages[0] ?? '') ?? []
  assert.equal(readTags(signature).t, String(acceptedAt / 1000 + 7))
})

test('mail whose keys are closed waits, and says which', async (t) => {
  const held = { held: 'the key ring cannot open the signing key s of acme.test', waitMs: 300_000 }
  const signing = { signers: { find: async () => held }, relayDates: false }
  const { outcome, server } = await tryAt(t, {}, { signing })
  assert.ok(outcome.kind === 'unattempted')
  assert.deepEqual([outcome.reply.text, outcome.waitMs], [held.held, held.waitMs])
  assert.deepEqual(server.transcript, [])
})

test('an email that the relay refuses as a whole waits longer than others do for the next attempt', async (t) => {
  for (const [script, waitMs] of [
    [{ rcpt: '550 5.7.1 <box>: Helo command rejected: Host not found' }, 30_000],
    [{ greeting: '554 no service' }, 1000], // the breaker's pause, give or take a fifth
  ] as const) {
    const { outcome } = await tryAt(t, script)
    assert.ok(outcome.kind === 'unattempted')
    assert.ok(outcome.waitMs >= waitMs && outcome.waitMs <= 1.2 * waitMs, `${outcome.waitMs}`)
  }
  const { outcome } = await tryAt(t, { rcpt: '535 5.7.8 log in' }, { lifeLeftMs: 20_000 })
  assert.ok(outcome.kind === 'unattempted' && outcome.waitMs > 5000 && outcome.waitMs <= 10_000)
})

test('an email that another relay may take is tried again soon, if that relay is busy', async (t) => {
  const busy = await startScriptedServer(t, { dot: () => {} })
  const relay = newTestRelay({ ...relayTo(busy.port), connectionsMax: 1 })
  atEnd(t, () => relay.close())
  void relay.submit(testMessage(), { deadlineMs: performance.now() + 60_000, isLeaseValid: () => true })
  const { outcome } = await tryAt(t, { dot: '554 5.7.1 no' }, { relays: [relay] })
  assert.ok(outcome.kind === 'deferred')
  assert.equal(outcome.waitMs, 1000)
  const alone = await tryAt(t, { dot: '554 5.7.1 no' })
  assert.equal(alone.outcome.kind === 'deferred' && alone.outcome.waitMs, 5000)
})
