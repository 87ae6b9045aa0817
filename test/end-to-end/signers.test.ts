/** The keys that sign the mail of a domain, as a worker finds them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Signers } from '../../src/delivery/message/signers.ts'
import { makeSigningKey, openSigningKey } from '../../src/store/crypto/signing-key.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { newRing, startTestService } from '../support/service.ts'
import type { Scope } from '../support/temporary.ts'

async function newSubject(t: Scope) {
  const { app, config, store } = await startTestService(t, { roles: new Set(['api']) })
  const { ring } = config
  const clock = { ms: 1000, isDown: false, isRingChanged: false, reads: 0 }
  const signers = new Signers({
    store: {
      findSigningKeys(domain) {
        clock.reads += 1
        return clock.isDown ? Promise.reject(new StoreUnavailable('down')) : store.findSigningKeys(domain)
      },
    },
    open: (key) => openSigningKey(clock.isRingChanged ? newRing('other') : ring, key),
    emit: () => {},
    nowMs: () => clock.ms,
  })
  return {
    clock,
    async activate(selector: string) {
      const key = await makeSigningKey(ring, { domain: 'acme.test', selector, algorithm: 'ed25519' })
      await store.addSigningKey({ ...key, app: app.id }, operator)
      await store.activateSigningKey({ domain: 'acme.test', selector, app: app.id }, operator)
    },
    async find(domain = 'acme.test') {
      const found = await signers.find(domain)
      return 'held' in found ? found : found.signers.map(({ selector }) => selector)
    },
    isKnown: () => !(signers.find('acme.test') instanceof Promise),
  }
}

test('the keys of a domain are read once in 30 seconds, also for many emails at once', async (t) => {
  const { activate, clock, find, isKnown } = await newSubject(t)
  assert.deepEqual(await Promise.all([find(), find(), find()]), [[], [], []])
  assert.deepEqual([clock.reads, isKnown()], [1, true])
  await activate('one')
  clock.ms += 29_999
  assert.deepEqual([await find(), clock.reads], [[], 1])
  clock.ms += 1
  assert.deepEqual([await find(), clock.reads], [['one'], 2])
  assert.deepEqual([await find('other.test'), clock.reads], [[], 3])
  await activate('two')
  clock.ms += 30_000
  assert.deepEqual(await find(), ['two'])
})

test('while the store does not answer, known keys sign on; a domain that is not known waits', async (t) => {
  const { activate, clock, find } = await newSubject(t)
  await activate('one')
  await find()
  clock.isDown = true
  clock.ms += 30_000
  assert.deepEqual(await find(), ['one'])
  assert.deepEqual(await find('other.test'), { held: 'the store does not answer', waitMs: 1000 })
  clock.isDown = false
  assert.deepEqual(await find('other.test'), [])
})

test('mail of a domain whose key the ring cannot open waits for five minutes', async (t) => {
  const { activate, clock, find } = await newSubject(t)
  await activate('one')
  clock.isRingChanged = true
  const held = 'the key ring cannot open the signing key one of acme.test'
  assert.deepEqual(await find(), { held, waitMs: 300_000 })
})
