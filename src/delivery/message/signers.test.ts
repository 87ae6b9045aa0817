import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operator } from '../../../test/support/operator.ts'
import { newRing, testSettings } from '../../../test/support/service.ts'
import { atEnd, temporaryFolder } from '../../../test/support/temporary.ts'
import { makeSigningKey, openSigningKey } from '../../store/crypto/signing-key.ts'
import { openSqliteStore } from '../../store/sqlite/sqlite-store.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { Signers } from './signers.ts'

const ring = newRing()

async function newSubject(t: { after(end: () => unknown): void }) {
  const onFatal = (error: Error) => {
    throw error
  }
  const path = `${temporaryFolder(t)}/postern.db`
  const store = await openSqliteStore({ path, ring, queueMax: 10, onFatal })
  atEnd(t, () => store.close())
  const app = await store.createApp('acme', testSettings, operator)
  assert.ok(app)
  const clock = { ms: 1000, isDown: false, reads: 0 }
  const signers = new Signers({
    store: {
      findSigningKeys(domain) {
        clock.reads += 1
        return clock.isDown ? Promise.reject(new StoreUnavailable('down')) : store.findSigningKeys(domain)
      },
    },
    open: (key) => openSigningKey(ring, key),
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
