/** Conformance: the keys that sign mail. */
import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import { type SigningAlgorithm, signingKeysMax } from '../../src/domain/delivery/signing-key.ts'
import { makeSigningKey, openSigningKey, resealSigningKeys } from '../../src/store/crypto/signing-key.ts'
import type { SigningKeyRecord } from '../../src/store/signing-key-store.ts'
import { type Store, StoreUnavailable } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { newRing } from '../support/service.ts'
import { atEnd } from '../support/temporary.ts'
import { type It, newSender, testRing } from './subject.ts'

const domain = 'acme.test'

async function add(
  store: Store,
  selector: string,
  { algorithm = 'ed25519', of = domain }: { algorithm?: SigningAlgorithm; of?: string } = {},
): Promise<SigningKeyRecord> {
  const [app] = await store.listApps()
  assert.ok(app)
  const key = await makeSigningKey(testRing(store), { domain: of, selector, algorithm })
  const added = await store.addSigningKey({ ...key, app: app.id }, operator)
  assert.ok(typeof added === 'object', String(added))
  return added
}

const states = async (store: Store, of: string | null = domain) =>
  (await store.listSigningKeys(of)).map(({ selector, state }) => [selector, state])
const active = async (store: Store, of = domain) => (await store.findSigningKeys(of)).map(({ selector }) => selector)

export function signingKeys(it: It): void {
  it('a key signs once it is active, and retires the one before it of its algorithm', async (_t, {
    store,
    advance,
  }) => {
    const { app } = await newSender(store, 'a')
    await add(store, 'one', { algorithm: 'rsa' })
    advance(1000)
    await add(store, 'two', { algorithm: 'rsa' })
    await add(store, 'elliptic')
    await add(store, 'waits', { algorithm: 'rsa' })
    const other = await add(store, 'one', { of: 'other.test' })
    assert.deepEqual(await active(store), [])
    const activate = (selector: string, of = domain) =>
      store.activateSigningKey({ domain: of, selector, app: app.id }, operator)
    const began = store.now()
    advance(5000)
    const activated = await activate('one')
    assert.ok(activated && activated.changedAt >= began + 5000 && activated.createdAt < began)
    await activate('elliptic')
    await activate('one', 'other.test')
    assert.deepEqual(await active(store), ['one', 'elliptic'], 'RSA signs first')
    await activate('two')
    assert.deepEqual((await states(store)).toSorted(), [
      ['elliptic', 'active'],
      ['one', 'retired'],
      ['two', 'active'],
      ['waits', 'pending'],
    ])
    assert.deepEqual(await active(store, 'other.test'), ['one'])
    await activate('one')
    assert.deepEqual(await active(store), ['one', 'elliptic'], 'one that was retired can sign again')
    assert.equal(await activate('three'), null)
    const actions = async () =>
      (await store.listAudit({ limit: 50 })).items
        .filter(({ action }) => action.startsWith('domain.'))
        .map(({ action, target, after }) => [action, target, after?.state])
    const before = (await actions()).length
    await activate('one')
    assert.equal((await actions()).length, before, 'nothing changed')
    assert.deepEqual((await actions())[0], ['domain.activate_key', 'one._domainkey.acme.test', 'active'])
    assert.equal((await states(store, null)).length, 5)
    assert.equal(other.domain, 'other.test')
  })

  it('a key is removed, a selector is used once, and a domain has at most ten keys', async (_t, { store }) => {
    const { app } = await newSender(store, 'a')
    const key = await add(store, 'k0')
    assert.equal(await store.addSigningKey({ ...key, app: app.id }, operator), 'taken')
    for (let n = 1; n < signingKeysMax; n++) await add(store, `k${n}`)
    const more = { ...key, selector: 'more', app: app.id }
    assert.equal(await store.addSigningKey(more, operator), 'too_many')
    const remove = { domain, selector: 'k0', app: app.id }
    assert.equal(await store.removeSigningKey({ ...remove, domain: 'other.test' }, operator), null)
    assert.equal((await store.removeSigningKey(remove, operator))?.selector, 'k0')
    assert.equal(await store.removeSigningKey(remove, operator), null)
    assert.equal(typeof (await store.addSigningKey(more, operator)), 'object')
    const [entry] = (await store.listAudit({ limit: 50 })).items.filter(({ action }) => action === 'domain.remove_key')
    assert.deepEqual([entry?.app, entry?.before?.state, entry?.after], [app.id, 'pending', null])
    assert.ok(!JSON.stringify(await store.listAudit({ limit: 50 })).includes(key.sealed))
  })

  it('keys are sealed anew by the first key of the ring, and then open without the old one', async (t, {
    store,
    reopen,
  }) => {
    await newSender(store, 'a')
    const old = testRing(store)
    const made = [await add(store, 'r', { algorithm: 'rsa' }), await add(store, 'e', { of: 'other.test' })]
    for (const { sealed } of made) assert.ok(!Buffer.from(sealed, 'base64url').includes('PRIVATE KEY'), 'sealed')
    const fresh = newRing('fresh')
    const rotated = await reopen({ ring: [...fresh, ...old] })
    assert.deepEqual(await resealSigningKeys([...fresh, ...old], rotated), [])
    const stored = await rotated.listSigningKeys(null)
    for (const key of stored) {
      const was = made.find(({ selector }) => selector === key.selector)
      assert.ok(was && was.sealed !== key.sealed)
      const opened = createPublicKey(openSigningKey(fresh, key)).export({ type: 'spki', format: 'der' })
      assert.ok(opened.toString('base64').endsWith(key.publicKey.slice(-40)))
      assert.throws(() => openSigningKey(fresh, was), { name: 'KeyMissing' })
      assert.throws(() => openSigningKey(fresh, { ...key, domain: 'stranger.test' }))
      assert.throws(() => openSigningKey(fresh, { ...key, selector: 'stranger' }))
    }
    await resealSigningKeys([...fresh, ...old], rotated)
    assert.deepEqual(await rotated.listSigningKeys(null), stored, 'sealed once')
    // A store that fails must not be taken for a key that the ring cannot open.
    const resealSigningKey = () => Promise.reject(new StoreUnavailable('the disk is full'))
    await assert.rejects(
      resealSigningKeys([...newRing('newest'), ...fresh, ...old], {
        listSigningKeys: (domain) => rotated.listSigningKeys(domain),
        resealSigningKey,
      }),
      StoreUnavailable,
    )
    const closed = await resealSigningKeys(newRing('stranger'), rotated)
    assert.deepEqual(closed.map(({ selector }) => selector).toSorted(), ['e', 'r'])
    assert.deepEqual(await rotated.listSigningKeys(null), stored)
    const [first] = stored
    assert.ok(first)
    await rotated.resealSigningKey({ ...first, sealed: 'changed since' }, 'lost')
    assert.deepEqual(await rotated.listSigningKeys(null), stored)
    atEnd(t, () => rotated.close())
  })
}
