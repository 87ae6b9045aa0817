/** A restore on SQLite: what had ended in the database that it replaces does not work again. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { hashToken, newToken } from '../../src/domain/operator/management-token.ts'
import {
  hashSessionSecret,
  hashSignInCode,
  newSessionSecret,
  newSignInCode,
} from '../../src/domain/operator/sign-in.ts'
import { formatKeyRing, type KeyRing } from '../../src/store/crypto/key-ring.ts'
import type { AccessNames } from '../../src/store/database-facts.ts'
import type { PersonRecord } from '../../src/store/people-store.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { postern, posternJson } from '../support/cli.ts'
import { operator } from '../support/operator.ts'
import { newRing } from '../support/service.ts'
import { type Scope, temporaryFolder } from '../support/temporary.ts'
import { newSender } from './subject.ts'

type Place = {
  readonly path: string
  readonly ring: KeyRing
  readonly env: Record<string, string>
  readonly backup: string
}

function newPlace(t: Scope, ring = newRing()): Place {
  const folder = temporaryFolder(t)
  const path = join(folder, 'postern.db')
  const env = { POSTERN_DATABASE_URL: `sqlite:${path}`, POSTERN_SECRET_KEYS: formatKeyRing(ring) }
  return { path, ring, env, backup: join(folder, 'backup.db') }
}

async function inStore<T>({ path, ring }: Place, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openSqliteStore({ path, ring, queueMax: 1000, onFatal: assert.fail })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

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
  const keys = [
    await newKeyFor(store, acme.app.id, 'leaked'),
    await newKeyFor(store, acme.app.id, 'kept'),
  ] as const
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
  for (const hash of [used, code])
    await store.createSignInCode({ hash, person: ben.id, expiresAt: store.now() + 86_400_000 }, operator)
  const session = hashSessionSecret(newSessionSecret())
  assert.ok(await store.signInByCode(used, { hash: session, agent: 'a', requestId: 'req_x' }))
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
  assert.equal((await postern(place.env, ['backup', place.backup])).code, 0)
  await inStore(place, (store) => endSome(store, all))
  const ran = await postern(place.env, ['restore', place.backup])
  assert.equal(ran.code, 0, ran.err)
  assert.match(ran.out, /Since the backup, this access was ended, reduced or removed/)
  for (const name of [
    ...['leaked', 'shortened', 'endless', 'stolen', 'Mallory', 'Ana', 'Dora', 'laptop of Ben'],
    ...['gone', 'paused'],
  ])
    assert.ok(ran.out.includes(name), `${name} in ${ran.out}`)
  assert.doesNotMatch(ran.out, /kept|over \(|Cleo|null/)
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
    assert.deepEqual(statuses.toSorted(), ['acme active', 'gone disabled', 'paused disabled'])
  })
})

test('the way back from a restore keeps what was made after the backup', async (t) => {
  const place = newPlace(t)
  const all = await inStore(place, makeAll)
  await postern(place.env, ['backup', place.backup])
  const later = await inStore(place, async (store) => ({
    ...(await newKeyFor(store, all.acme.app.id, 'made later')),
    person: await newPerson(store, 'Cy', 'admin'),
    app: await newSender(store, 'new'),
  }))
  const restored = await posternJson<{ previous: string; ended: AccessNames }>(place.env, [
    'restore',
    place.backup,
  ])
  assert.deepEqual(restored.ended, { keys: [], tokens: [], people: [], passkeys: [], apps: [] })
  const back = await postern(place.env, ['restore', restored.previous])
  assert.equal(back.code, 0, back.err)
  assert.match(back.out, /No key, token, person, passkey or app in the backup has lost access since\./)
  await inStore(place, async (store) => {
    assert.equal((await store.enqueue({ keyHash: later.hash, judged: null })).kind, 'judge_again')
    assert.ok(await store.findPasskey('passkey-Cy'))
    assert.equal((await store.findApp('new'))?.status, 'active')
  })
})

test('a second restore of the same backup gives nothing back either', async (t) => {
  const place = newPlace(t)
  const all = await inStore(place, makeAll)
  await postern(place.env, ['backup', place.backup])
  await inStore(place, (store) => endSome(store, all))
  const restore = () => posternJson<{ ended: AccessNames }>(place.env, ['restore', place.backup])
  const [first, second] = [await restore(), await restore()]
  assert.deepEqual(second.ended, first.ended)
  assert.equal(first.ended.apps.length, 2)
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
  await postern(place.env, ['backup', place.backup])
  await inStore(place, async (store) => {
    await store.updateKey(all.short.key.id, { expiresAt: store.now() + 9_000_000 }, operator)
    await store.updateKey(all.short.key.id, { expiresAt: null }, operator)
    await store.updatePerson(all.ana.id, { role: 'admin', disabled: false }, operator)
    await store.updateApp(all.paused.app.id, { status: 'active' }, operator)
  })
  const { previous } = await posternJson<{ previous: string }>(place.env, ['restore', place.backup])
  const { ended } = await posternJson<{ ended: AccessNames }>(place.env, ['restore', previous])
  assert.deepEqual(ended, { keys: [], tokens: [], people: [], passkeys: [], apps: [] })
  await inStore(place, async (store) => {
    assert.equal((await store.findPerson(all.ana.id))?.role, 'admin')
    assert.equal((await store.findApp('paused'))?.status, 'active')
  })
})

test('a database that is damaged in part is replaced all the same, and what works again is listed', async (t) => {
  const place = newPlace(t)
  await inStore(place, makeAll)
  await postern(place.env, ['backup', place.backup])
  const database = new DatabaseSync(place.path)
  database.exec('alter table audit rename to audit_lost')
  database.close()
  const ran = await postern(place.env, ['restore', place.backup])
  assert.equal(ran.code, 0, ran.err)
  assert.match(ran.out, /so all of this works again/)
})

test('without the database that it was made from, a restore lists what works again', async (t) => {
  const place = newPlace(t)
  await inStore(place, makeAll)
  await postern(place.env, ['backup', place.backup])
  for (const other of [newPlace(t, place.ring), await anotherDatabase(t, place.ring)]) {
    const ran = await postern(other.env, ['restore', place.backup])
    assert.equal(ran.code, 0, ran.err)
    assert.match(ran.out, /so all of this works again/)
    for (const name of ['leaked', 'stolen', 'Mallory', 'laptop of Ben', 'gone'])
      assert.ok(ran.out.includes(name), `${name} in ${ran.out}`)
    const json = await posternJson<{ ended: AccessNames | null; works: AccessNames }>(other.env, [
      'restore',
      place.backup,
    ])
    assert.equal(json.works.keys.length, 7)
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
    await postern(place.env, ['backup', place.backup])
    const { out } = await postern(newPlace(t, place.ring).env, ['restore', place.backup])
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
  await postern(place.env, ['backup', place.backup])
  await inStore(place, async (store) => {
    const session = { hash: 'h' as never, agent: 'a', requestId: 'req_x' }
    assert.ok(await store.signInByPasskey('passkey-Ana', 41, session))
  })
  await postern(place.env, ['restore', place.backup])
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
