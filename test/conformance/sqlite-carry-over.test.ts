/** A restore on SQLite: what had ended in the database that it replaces does not work again. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { hashToken, newToken } from '../../src/domain/operator/management-token.ts'
import {
  hashSessionSecret,
  hashSignInCode,
  newSessionSecret,
  newSignInCode,
  type SignInHash,
} from '../../src/domain/operator/sign-in.ts'
import type { KeyRing } from '../../src/store/crypto/key-ring.ts'
import type { PersonRecord } from '../../src/store/people-store.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import type { Scope } from '../support/temporary.ts'
import { backUp, inStore, newPlace, type Place, present, restoreJson, restoreText } from './restore-place.ts'
import { newSender } from './subject.ts'

const newPerson = async (store: Store, name: string, role: PersonRecord['role']): Promise<PersonRecord> => {
  const person = await store.createPerson({ name, role, apps: null }, operator)
  assert.ok(person !== 'name_taken')
  const passkey = { id: `passkey-${name}`, person: person.id, publicKey: 'k', counter: 1, name: 'laptop' }
  assert.ok(await store.addPasskey(passkey, operator))
  return person
}

const newKeyFor = async (store: Store, app: Parameters<Store['createKey']>[0]['app'], name: string) => {
  const hash = hashDeliveryKey(newDeliveryKey())
  const key = await store.createKey({ app, hash, name, expiresAt: null }, operator)
  assert.ok(key !== null && typeof key === 'object')
  return { key, hash }
}

const newTokenFor = async (store: Store, name: string) => {
  const expiresAt = store.now() + 86_400_000
  const hash = hashToken(newToken())
  const token = await store.createToken({ hash, name, role: 'admin', apps: null, expiresAt }, operator)
  assert.ok(token !== 'name_taken')
  return { token, hash }
}

/** Two of everything: the first of each ends after the backup, the second goes on. */
async function makeAll(store: Store) {
  const acme = await newSender(store, 'acme')
  const [gone, paused] = [await newSender(store, 'gone'), await newSender(store, 'paused')]
  const keys = [await newKeyFor(store, acme.app.id, 'leaked'), await newKeyFor(store, acme.app.id, 'kept')] as const
  const short = await newKeyFor(store, acme.app.id, 'shortened')
  const over = await newKeyFor(store, acme.app.id, 'over')
  await store.updateKey(short.key.id, { expiresAt: store.now() + 86_400_000 }, operator)
  await store.updateKey(over.key.id, { expiresAt: store.now() + 1 }, operator)
  const endless = await newKeyFor(store, acme.app.id, 'endless')
  const tokens = [await newTokenFor(store, 'stolen'), await newTokenFor(store, 'kept token')] as const
  const [mallory, ana, ben] = [
    await newPerson(store, 'Mallory', 'admin'),
    await newPerson(store, 'Ana', 'admin'),
    await newPerson(store, 'Ben', 'admin'),
  ]
  const cleo = await newPerson(store, 'Cleo', 'admin')
  await store.updatePerson(cleo.id, { apps: [acme.app.id] }, operator)
  const dora = await newPerson(store, 'Dora', 'operator')
  await store.updatePerson(dora.id, { apps: [acme.app.id, paused.app.id] }, operator)
  await store.keepNonce('n', store.now() + 86_400_000)
  const [used, code] = [hashSignInCode(newSignInCode()), hashSignInCode(newSignInCode())]
  const newCode = (hash: SignInHash) =>
    store.createSignInCode({ hash, person: ben.id, expiresAt: store.now() + 86_400_000 }, operator)
  await newCode(used)
  const session = hashSessionSecret(newSessionSecret())
  assert.ok(await store.signInByCode(used, { hash: session, agent: 'a', requestId: 'req_x' }))
  await newCode(code)
  const all = { acme, gone, paused, keys, short, over, endless, tokens, mallory, ana, ben, cleo, dora }
  return { ...all, code, session }
}

async function endSome(store: Store, all: Awaited<ReturnType<typeof makeAll>>): Promise<void> {
  await store.revokeKey(all.keys[0].key.id, operator)
  await store.revokeKey(all.acme.keyId, operator) // it has no name
  await store.updateKey(all.short.key.id, { expiresAt: store.now() + 1 }, operator)
  await store.revokeKey(all.over.key.id, operator)
  await store.updateKey(all.endless.key.id, { expiresAt: store.now() + 1 }, operator)
  await store.updatePerson(all.dora.id, { apps: [all.acme.app.id] }, operator)
  await store.updatePerson(all.cleo.id, { apps: null }, operator)
  await store.revokeToken(all.tokens[0].token.id, operator)
  await store.updatePerson(all.mallory.id, { disabled: true }, operator)
  await store.updatePerson(all.ana.id, { role: 'reader', apps: [all.acme.app.id] }, operator)
  await store.removePasskey(all.ben.id, 'passkey-Ben', operator)
  // One of the same name was removed, but this one stays.
  const other = { id: 'passkey-other', person: all.ana.id, publicKey: 'k', counter: 1, name: 'laptop' }
  assert.ok(await store.addPasskey(other, operator))
  await store.removePasskey(all.ana.id, 'passkey-other', operator)
  await store.updateApp(all.paused.app.id, { status: 'disabled' }, operator)
  await store.updateApp(all.gone.app.id, { status: 'disabled' }, operator)
  await store.deleteApp(all.gone.app.id, operator)
  while ((await store.maintain()).more);
}

test('what was revoked, disabled, reduced or removed since the backup stays so, and is printed', async (t) => {
  const place = newPlace(t)
  const all = await inStore(place, makeAll)
  await backUp(place)
  await inStore(place, (store) => endSome(store, all))
  const out = await restoreText(place)
  assert.match(out, /Changed since the backup; the restored database has it as the previous one:\n/)
  for (const name of [
    ...['leaked', 'shortened', 'endless', 'stolen', 'Mallory', 'Ana', 'Dora', 'laptop of Ben'],
    ...['gone', 'paused'],
  ])
    assert.ok(out.includes(name), `${name} in ${out}`)
  assert.doesNotMatch(out, /kept|over \(|null/)
  assert.match(out, /lost:\n {2}people: Cleo \(pe_\w+, rights given since\)\n/)
  await inStore(place, async (store) => {
    const judged = null
    assert.equal((await store.enqueue({ keyHash: all.keys[0].hash, judged })).kind, 'invalid_key')
    assert.equal((await store.enqueue({ keyHash: all.short.hash, judged })).kind, 'invalid_key')
    assert.equal((await store.enqueue({ keyHash: all.endless.hash, judged })).kind, 'invalid_key')
    assert.equal((await store.enqueue({ keyHash: all.gone.keyHash, judged })).kind, 'invalid_key')
    assert.equal((await store.enqueue({ keyHash: all.keys[1].hash, judged })).kind, 'judge_again')
    assert.ok((await store.findTokenByHash(all.tokens[0].hash))?.revokedAt)
    assert.equal((await store.findTokenByHash(all.tokens[1].hash))?.revokedAt, null)
    const people = new Map((await store.listPeople()).map((person) => [person.name, person]))
    assert.ok(people.get('Mallory')?.disabledAt)
    assert.deepEqual([people.get('Ana')?.role, people.get('Ana')?.apps], ['reader', [all.acme.app.id]])
    assert.deepEqual([people.get('Ben')?.role, people.get('Ben')?.disabledAt], ['admin', null])
    assert.deepEqual(people.get('Cleo')?.apps, [all.acme.app.id], 'no more than the backup gave')
    assert.deepEqual(people.get('Dora')?.apps, [all.acme.app.id])
    assert.equal(await store.takeNonce('n'), false)
    assert.equal(await store.findSession(all.session), null)
    assert.equal(await store.isSignInCode(all.code), false)
    assert.equal((await store.findApp('paused'))?.version, all.paused.app.version + 1)
    assert.equal(await store.findPasskey('passkey-Ben'), null)
    assert.ok(await store.findPasskey('passkey-Ana'))
    const statuses = (await store.listApps()).map(({ slug, status }) => `${slug} ${status}`)
    assert.deepEqual(statuses.toSorted(), ['acme active', 'paused disabled'])
  })
})

test('the way back from a restore keeps what was made after the backup', async (t) => {
  const place = newPlace(t)
  const all = await inStore(place, makeAll)
  await backUp(place)
  const later = await inStore(place, async (store) => ({
    ...(await newKeyFor(store, all.acme.app.id, 'made later')),
    person: await newPerson(store, 'Cy', 'admin'),
    app: await newSender(store, 'new'),
  }))
  const restored = await restoreJson(place)
  assert.deepEqual(present(restored.carried), { audit: { added: 5 } })
  assert.deepEqual(present(restored.lost), {
    apps: ['new'],
    'delivery keys': [`made later (${later.key.id})`, later.app.keyId],
    people: [`Cy (${later.person.id})`],
    passkeys: ['laptop of Cy'],
  })
  const back = await restoreText(place, restored.previous)
  assert.match(back, /\nCompared, without a change since the backup: apps, settings of apps, webhook secrets,/)
  assert.doesNotMatch(back, /Changed since|lost:/)
  await inStore(place, async (store) => {
    assert.equal((await store.enqueue({ keyHash: later.hash, judged: null })).kind, 'judge_again')
    assert.ok(await store.findPasskey('passkey-Cy'))
    assert.equal((await store.findApp('new'))?.status, 'active')
  })
})

test('a second restore of the same backup gives nothing back either', async (t) => {
  const place = newPlace(t)
  const all = await inStore(place, makeAll)
  await backUp(place)
  await inStore(place, (store) => endSome(store, all))
  const [first, second] = [await restoreJson(place), await restoreJson(place)]
  assert.deepEqual(second.carried, first.carried)
  assert.deepEqual(first.carried?.apps, ['gone (deleted)', 'paused (disabled)'])
  await inStore(place, async (store) => {
    assert.ok((await store.findTokenByHash(all.tokens[0].hash))?.revokedAt)
    const { items } = await store.listAudit({ limit: 100, actions: ['token.revoke'] })
    assert.equal(items.length, 1)
  })
})

test('the way back from a restore keeps what was given after the backup', async (t) => {
  const place = newPlace(t)
  const all = await inStore(place, async (store) => {
    const made = await makeAll(store)
    await store.updatePerson(made.ana.id, { role: 'reader', disabled: true }, operator)
    await store.updateApp(made.paused.app.id, { status: 'disabled' }, operator)
    return made
  })
  await backUp(place)
  await inStore(place, async (store) => {
    await store.updateKey(all.short.key.id, { expiresAt: store.now() + 9_000_000 }, operator)
    await store.updateKey(all.short.key.id, { expiresAt: null }, operator)
    await store.updatePerson(all.ana.id, { role: 'admin', disabled: false }, operator)
    await store.updateApp(all.paused.app.id, { status: 'active' }, operator)
  })
  const { lost, previous } = await restoreJson(place)
  assert.deepEqual(present(lost), {
    apps: ['paused (stays disabled)'],
    'delivery keys': [`shortened (${all.short.key.id}, the later expiry)`],
    people: [`Ana (${all.ana.id}, rights given since)`],
  })
  assert.deepEqual(present((await restoreJson(place, previous)).carried), {})
  await inStore(place, async (store) => {
    assert.equal((await store.findPerson(all.ana.id))?.role, 'admin')
    assert.equal((await store.findApp('paused'))?.status, 'active')
  })
})

test('a database that is damaged in part is replaced all the same, and what works again is listed', async (t) => {
  const place = newPlace(t)
  await inStore(place, makeAll)
  await backUp(place)
  const database = new DatabaseSync(place.path)
  database.exec('alter table audit rename to audit_lost')
  database.close()
  const out = await restoreText(place)
  assert.match(out, /Nothing could be compared, because .* lacks audit\.audit_id\. .* works again\. /)
  assert.doesNotMatch(out, /Compared, without|Changed since/)
})

test('without the database that it was made from, a restore lists what works again', async (t) => {
  const place = newPlace(t)
  await inStore(place, makeAll)
  await backUp(place)
  for (const other of [newPlace(t, place.ring), await anotherDatabase(t, place.ring)]) {
    const out = await restoreText(other, place.backup)
    assert.match(out, /Nothing could be compared, because (there was no database|.* is another one)/)
    for (const name of ['leaked', 'stolen', 'Mallory', 'laptop of Ben', 'gone'])
      assert.ok(out.includes(name), `${name} in ${out}`)
    assert.equal((await restoreJson(other, place.backup)).works['delivery keys']?.length, 7)
  }
})

test('a line for each kind of access, with twenty names at most', async (t) => {
  for (const [keys, expected] of [
    [20, /^ {2}delivery keys: key 0 .*, key 19 \(\w+\)$/m],
    [21, /^ {2}delivery keys: key 0 .*, key 19 \(\w+\), and 1 more \(--json lists them\)$/m],
  ] as const) {
    const place = newPlace(t)
    const app = await inStore(place, async (store) => (await newSender(store, 'acme')).app.id)
    await inStore(place, async (store) => {
      const [unnamed] = await store.listKeys(app)
      if (unnamed !== undefined) await store.revokeKey(unnamed.id, operator)
      for (let n = 0; n < keys; n++) await newKeyFor(store, app, `key ${n}`)
    })
    await backUp(place)
    const out = await restoreText(newPlace(t, place.ring), place.backup)
    assert.match(out, expected)
    assert.doesNotMatch(out, /tokens:|people:|passkeys:/)
  }
})

async function anotherDatabase(t: Scope, ring: KeyRing): Promise<Place> {
  const place = newPlace(t, ring)
  await inStore(place, (store) => newSender(store, 'other'))
  return place
}

test('the counter of a passkey does not go back', async (t) => {
  const place = newPlace(t)
  const all = await inStore(place, makeAll)
  await backUp(place)
  await inStore(place, async (store) => {
    const session = { hash: 'h' as never, agent: 'a', requestId: 'req_x' }
    assert.ok(await store.signInByPasskey('passkey-Ana', 41, session))
  })
  await restoreText(place)
  await inStore(place, async (store) => assert.equal((await store.findPasskey('passkey-Ana'))?.counter, 41))
  assert.ok(all)
})

test('a service that starts while a restore replaces the database does not go on with a part of each', async (t) => {
  const [place, other] = [newPlace(t), newPlace(t)]
  for (const each of [place, other]) await inStore(each, (store) => newSender(store, 'acme'))
  // Holds the database as a restore does, and puts another one in its place while the service waits for it.
  const restore = `
    const { DatabaseSync } = require('node:sqlite'); const fs = require('node:fs')
    const database = new DatabaseSync('${place.path}')
    database.exec('begin immediate'); process.stdout.write('held')
    setTimeout(() => { fs.renameSync('${other.path}', '${place.path}'); database.exec('rollback'); database.close() }, 700)`
  const child = spawn(process.execPath, ['-e', restore], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  const options = { path: place.path, ring: place.ring, queueMax: 1000, onFatal: assert.fail }
  await assert.rejects(openSqliteStore(options), {
    name: 'StoreUnavailable',
    message: /replaced by a restore/,
  })
  await once(child, 'exit')
})
