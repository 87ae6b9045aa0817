/** Conformance: the secrets of auth servers. */
import assert from 'node:assert/strict'
import { hashDeliveryKey, newAuthHookSecret } from '../../src/domain/app/delivery-key.ts'
import type { AuthHookName } from '../../src/domain/auth-hooks/auth-hook-settings.ts'
import { hasEnded } from '../../src/domain/bearer.ts'
import { authHookSecretsMax } from '../../src/domain/bounds.ts'
import {
  openAuthHookSecret,
  resealAuthHookSecrets,
  sealAuthHookSecret,
} from '../../src/store/crypto/auth-hook-secret.ts'
import type { KeyRing } from '../../src/store/crypto/key-ring.ts'
import type { Store } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { newRing } from '../support/service.ts'
import { day, type It, newKey, newSender, type Sender, testRing, updateApp } from './subject.ts'

type Secret = { hook?: AuthHookName; ring?: KeyRing; expiresAt?: number | null }

let serial = 0

/** A secret that an auth server signs with, of its own number; without a ring, a key that one sends. */
async function newSecret(store: Store, { app }: Sender, { hook = 'zitadel', ring, expiresAt = null }: Secret = {}) {
  const hash = hashDeliveryKey(newAuthHookSecret())
  const text = `secret ${serial++}`
  const sealed = ring === undefined ? {} : { sealed: sealAuthHookSecret(ring, { hash }, text) }
  const { id } = await newKey(store, { app: app.id, hash, name: text, expiresAt, hook, ...sealed })
  return { id, hash, text, sealed: sealed.sealed ?? null }
}

export function authHookSecrets(it: It): void {
  it('the secrets of a hook are those of its app and system that work, newest first', async (_t, {
    store,
    advance,
  }) => {
    const [a, b] = [await newSender(store, 'a'), await newSender(store, 'b')]
    const ring = testRing(store)
    const first = await newSecret(store, a, { ring })
    await newSecret(store, b, { ring })
    await newSecret(store, a, { hook: 'kratos' })
    const ending = await newSecret(store, a, { ring, expiresAt: store.now() + 1000 })
    const revoked = await newSecret(store, a, { ring })
    const listed = async () => (await store.listAuthHookSecrets('a', 'zitadel')).map(({ hash }) => hash)
    assert.deepEqual(await listed(), [revoked.hash, ending.hash, first.hash])
    await store.revokeKey(revoked.id, operator)
    assert.deepEqual(await listed(), [ending.hash, first.hash])
    advance(1001)
    assert.deepEqual(await listed(), [first.hash])
    assert.deepEqual(
      await store.listAuthHookSecrets('a', 'zitadel'),
      [{ hash: first.hash, hook: 'zitadel', sealed: first.sealed }],
      'as it was sealed',
    )
    assert.equal((await store.listAuthHookSecrets('a', 'kratos'))[0]?.sealed, null)
    const ofAll = await store.listAuthHookSecrets('a', null)
    assert.deepEqual(
      ofAll.map(({ hook }) => hook),
      ['kratos', 'zitadel'],
    )
    assert.deepEqual(await store.listAuthHookSecrets('nobody', 'zitadel'), [])
    await updateApp(store, a.app.id, { status: 'disabled' })
    assert.deepEqual(await listed(), [])
  })

  it('an app has a few secrets of one auth server; the oldest ends when one more is made', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const grace = () => store.now() + 30 * day
    let newest = (await newSecret(store, sender)).id
    const made = [newest]
    for (let n = 0; n < 10; n++) {
      const hash = hashDeliveryKey(newAuthHookSecret())
      const next = await store.replaceKey(newest, { hash, expiresAt: null, oldExpiresAt: grace() }, operator)
      assert.ok(next !== null && typeof next === 'object')
      newest = next.id
      made.push(newest)
    }
    assert.equal((await store.listAuthHookSecrets('a', 'zitadel')).length, authHookSecretsMax)
    const working = (await store.listKeys(sender.app.id)).filter((key) => !hasEnded(key, store.now()))
    assert.deepEqual(
      working.filter(({ hook }) => hook !== null).map(({ id }) => id),
      made.slice(-authHookSecretsMax),
      'the newest',
    )
    assert.ok(
      working.some(({ id }) => id === sender.keyId),
      'keys of the app stay',
    )
  })

  it('the successor of a secret is of the same hook, with its own secret', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const ring = testRing(store)
    const old = await newSecret(store, sender, { ring })
    const hash = hashDeliveryKey(newAuthHookSecret())
    const sealed = sealAuthHookSecret(ring, { hash }, 'next')
    const change = { hash, sealed, expiresAt: null, oldExpiresAt: store.now() + 1000 }
    const made = await store.replaceKey(old.id, change, operator)
    assert.ok(made !== null && typeof made === 'object')
    assert.equal(made.hook, 'zitadel')
    assert.deepEqual(await store.listAuthHookSecrets('a', 'zitadel'), [
      { hash, hook: 'zitadel', sealed },
      { hash: old.hash, hook: 'zitadel', sealed: old.sealed },
    ])
    const again = { ...change, hash: hashDeliveryKey(newAuthHookSecret()) }
    assert.equal(await store.replaceKey(old.id, again, operator), 'ended', 'it has a successor')
    await store.revokeKey(made.id, operator)
    assert.equal(typeof (await store.replaceKey(old.id, again, operator)), 'object')
  })

  it('a secret is sealed for its own key: that of another one does not open', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const ring = testRing(store)
    const [one, two] = [await newSecret(store, sender, { ring }), await newSecret(store, sender, { ring })]
    assert.equal(openAuthHookSecret(ring, { hash: one.hash, sealed: `${one.sealed}` }), one.text)
    assert.equal(openAuthHookSecret(ring, { hash: one.hash, sealed: `${two.sealed}` }), null)
    assert.equal(openAuthHookSecret(newRing('test'), { hash: one.hash, sealed: `${one.sealed}` }), null)
  })

  it('rotation: secrets that work are sealed with the first key, so that the old one can go', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const old = testRing(store)
    const fresh = newRing('new')
    const working = await newSecret(store, sender, { ring: old })
    const bearer = await newSecret(store, sender)
    const revoked = await newSecret(store, sender, { ring: old })
    await store.revokeKey(revoked.id, operator)
    const stranger = await newSecret(store, sender, { ring: newRing('stranger') })
    const ring: KeyRing = [fresh[0], ...old]
    await resealAuthHookSecrets(ring, store)
    const secrets = async () =>
      new Map((await store.listAuthHookSecrets('a', 'zitadel')).map(({ hash, sealed }) => [hash, sealed]))
    const after = await secrets()
    assert.equal(openAuthHookSecret(fresh, { hash: working.hash, sealed: `${after.get(working.hash)}` }), working.text)
    assert.equal(after.get(bearer.hash), null)
    assert.equal(after.get(stranger.hash), stranger.sealed, 'what the ring does not open stays')
    // Once more changes nothing.
    await resealAuthHookSecrets(ring, store)
    assert.deepEqual(await secrets(), after)
  })

  it('a secret that was sealed anew meanwhile is not sealed over', async (_t, { store }) => {
    const sender = await newSender(store, 'a')
    const { id, hash, sealed } = await newSecret(store, sender, { ring: testRing(store) })
    const other = await newSecret(store, sender, { ring: testRing(store) })
    await store.resealAuthHookSecret({ id, hash, sealed: `${sealed}` }, 'first')
    await store.resealAuthHookSecret({ id, hash, sealed: `${sealed}` }, 'second')
    const found = await store.listAuthHookKeys()
    assert.deepEqual(
      new Map(found.map((each) => [each.hash, each.sealed])),
      new Map([
        [hash, 'first'],
        [other.hash, other.sealed],
      ]),
    )
  })
}
