/** Conformance: people of the console, their codes, passkeys and sessions. */
import assert from 'node:assert/strict'
import { sessionsMax } from '../../src/domain/bounds.ts'
import { newId, type PersonId } from '../../src/domain/id.ts'
import type { Actor } from '../../src/domain/operator/audit.ts'
import {
  hashSessionSecret,
  hashSignInCode,
  isSessionAlive,
  newSessionSecret,
  newSignInCode,
  type SignInHash,
  sessionIdleMs,
  sessionMaxMs,
} from '../../src/domain/operator/sign-in.ts'
import type { NewSession, PersonRecord } from '../../src/store/people-store.ts'
import type { Store } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import type { It } from './subject.ts'

const newSession = (): NewSession => ({
  hash: hashSessionSecret(newSessionSecret()),
  agent: 'Browser',
  requestId: newId('req', 0),
})

async function newPerson(store: Store, name = 'ada'): Promise<PersonRecord> {
  const person = await store.createPerson({ name, role: 'operator', apps: null }, operator)
  assert.ok(person !== 'name_taken')
  return person
}

async function newCode(store: Store, person: PersonId, lifeMs = 60_000) {
  const hash = hashSignInCode(newSignInCode())
  return {
    hash,
    made: await store.createSignInCode({ hash, person, expiresAt: store.now() + lifeMs }, operator),
  }
}

export function people(it: It): void {
  it('a person has a name of its own, a role and a scope, which can be changed', async (_t, { store }) => {
    const app = newId('app', store.now())
    const ada = await newPerson(store)
    assert.equal(await store.createPerson({ name: 'ada', role: 'admin', apps: null }, operator), 'name_taken')
    assert.deepEqual(await store.findPerson(ada.id), ada)
    assert.deepEqual(await store.findPerson('ada'), ada)
    assert.equal(await store.findPerson('bob'), null)
    const changed = await store.updatePerson(ada.id, { role: 'reader', apps: [app] }, operator)
    assert.deepEqual(changed, { ...ada, role: 'reader', apps: [app] })
    assert.deepEqual(await store.listPeople(), [changed])
    assert.equal(await store.updatePerson(newId('pe', 0), { role: 'admin' }, operator), null)
    const [entry, first] = (await store.listAudit({ limit: 9 })).items
    assert.deepEqual(
      [entry?.action, entry?.target, entry?.before, entry?.after],
      ['person.update', ada.id, { role: 'operator', apps: null }, { role: 'reader', apps: [app] }],
    )
    assert.equal(first?.action, 'person.create')
    await store.updatePerson(ada.id, { role: 'reader' }, operator)
    assert.equal((await store.listAudit({ limit: 9 })).items.length, 2, 'nothing was changed')
  })

  it('a code begins one session, however many use it at once', async (_t, { store, advance }) => {
    const ada = await newPerson(store)
    const { hash } = await newCode(store, ada.id)
    const sessions = await Promise.all(Array.from({ length: 8 }, () => store.signInByCode(hash, newSession())))
    assert.equal(sessions.filter((each) => each !== null).length, 1)
    assert.equal(await store.signInByCode(hash, newSession()), null)
    const late = await newCode(store, ada.id)
    advance(60_001)
    assert.equal(await store.signInByCode(late.hash, newSession()), null)
    assert.equal(await store.signInByCode(hashSignInCode(newSignInCode()), newSession()), null)
  })

  it('a person has one code, which ends with the next one, a sign-in, and a change of access', async (_t, {
    store,
    advance,
  }) => {
    const [ada, bob] = [await newPerson(store), await newPerson(store, 'bob')]
    const begin = async (hash: SignInHash) => (await store.signInByCode(hash, newSession())) !== null
    const ofBob = await newCode(store, bob.id, 600_000)
    const first = await newCode(store, ada.id)
    const second = await newCode(store, ada.id)
    assert.deepEqual([await begin(first.hash), await begin(second.hash)], [false, true], 'the next one')

    await store.addPasskey({ id: 'k', person: ada.id, publicKey: 'k', counter: 0, name: 'k' }, operator)
    const unused = await newCode(store, ada.id)
    assert.ok(await store.signInByPasskey('k', 1, newSession()))
    assert.equal(await begin(unused.hash), false, 'a sign-in in another way')

    const asOperator = await newCode(store, ada.id)
    await store.updatePerson(ada.id, { role: 'admin' }, operator)
    assert.equal(await begin(asOperator.hash), false, 'a code for an operator makes no admin')

    const open = await newCode(store, ada.id)
    const listed = async () => (await store.listSignInCodes()).map(({ person }) => person).toSorted()
    assert.deepEqual(await listed(), [ada.id, bob.id].toSorted())
    assert.equal(await store.endSignInCode(ada.id, operator), true)
    assert.deepEqual([await begin(open.hash), await store.endSignInCode(ada.id, operator)], [false, false])
    const [entry] = (await store.listAudit({ limit: 1 })).items
    assert.deepEqual([entry?.action, entry?.target], ['sign_in.end_code', ada.id])
    assert.deepEqual(await listed(), [bob.id])
    advance(600_001)
    assert.deepEqual(await listed(), [])
    assert.equal(await begin(ofBob.hash), false)
  })

  it('a person has a bounded number of sessions; the oldest ends, and none of others', async (_t, {
    store,
    advance,
  }) => {
    const [ada, bob] = [await newPerson(store), await newPerson(store, 'bob')]
    const begin = async (person: PersonId) => {
      advance(1)
      return (await store.signInByCode((await newCode(store, person)).hash, newSession()))?.id
    }
    const other = await begin(bob.id)
    const begun = []
    for (let n = 0; n < sessionsMax + 3; n++) begun.push(await begin(ada.id))
    const listed = (await store.listSessions()).map(({ id }) => id)
    assert.deepEqual(listed, [other, ...begun.slice(3)])
    advance(sessionIdleMs)
    const last = await begin(ada.id)
    assert.deepEqual(
      (await store.listSessions()).map(({ id }) => id),
      [other, last],
      'those that are over go',
    )
  })

  it('a session is found by its secret, notes its use, and is over in time', async (_t, { store, advance }) => {
    const ada = await newPerson(store)
    const wanted = newSession()
    const begun = await store.signInByCode((await newCode(store, ada.id)).hash, wanted)
    assert.ok(begun !== null)
    assert.equal(begun.method, 'code')
    const found = await store.findSession(wanted.hash)
    assert.deepEqual({ ...found, person: 0 }, { ...begun, person: 0 })
    assert.equal(found?.person.lastSeenAt, begun.createdAt)
    advance(sessionIdleMs - 1000)
    await store.noteSessionUse(begun.id)
    advance(sessionIdleMs - 1000)
    const used = await store.findSession(wanted.hash)
    assert.ok(used !== null && isSessionAlive(used, store.now()))
    advance(2000)
    assert.ok(!isSessionAlive(used, store.now()))
    assert.ok(!isSessionAlive({ ...used, seenAt: begun.createdAt + sessionMaxMs }, begun.createdAt + sessionMaxMs))
    await store.signInByCode((await newCode(store, ada.id)).hash, newSession())
    assert.equal(await store.findSession(wanted.hash), null, 'sessions that are over are removed')
    assert.equal((await store.listSessions()).length, 1)
  })

  it('a session is ended once, and no other with it', async (_t, { store }) => {
    const [ada, bob] = [await newPerson(store), await newPerson(store, 'bob')]
    const signIn = async (person: PersonRecord) => {
      const session = await store.signInByCode((await newCode(store, person.id)).hash, newSession())
      assert.ok(session !== null)
      return session
    }
    const [first] = [await signIn(ada), await signIn(ada), await signIn(bob)]
    assert.equal(await store.endSession(first.id, operator), true)
    assert.equal(await store.endSession(first.id, operator), false)
    assert.deepEqual(
      (await store.listSessions()).map(({ person }) => person.name),
      ['ada', 'bob'],
    )
    const [entry] = (await store.listAudit({ limit: 1 })).items
    assert.deepEqual([entry?.action, entry?.target, entry?.after], ['session.end', first.id, { person: ada.id }])
  })

  it('a person who is disabled has neither sessions nor codes', async (_t, { store }) => {
    const ada = await newPerson(store)
    const wanted = newSession()
    await store.signInByCode((await newCode(store, ada.id)).hash, wanted)
    const [open, untried] = [await newCode(store, ada.id), await newCode(store, ada.id)]
    await store.addPasskey({ id: 'p1', person: ada.id, publicKey: 'k', counter: 0, name: 'laptop' }, operator)
    const disabled = await store.updatePerson(ada.id, { disabled: true }, operator)
    assert.ok(disabled?.disabledAt !== null)
    const [entry] = (await store.listAudit({ limit: 1, actions: ['person.update'] })).items
    assert.deepEqual([entry?.before?.disabled, entry?.after?.disabled], [false, true])
    assert.equal(await store.findSession(wanted.hash), null)
    assert.equal(await store.signInByCode(open.hash, newSession()), null)
    assert.equal(await store.signInByPasskey('p1', 1, newSession()), null)
    assert.equal((await newCode(store, ada.id)).made, false)
    await store.updatePerson(ada.id, { disabled: false }, operator)
    for (const { hash } of [open, untried])
      assert.equal(await store.signInByCode(hash, newSession()), null, 'a code does not come back')
    assert.ok(await store.signInByPasskey('p1', 1, newSession()))
  })

  it('passkeys belong to one person, and count', async (_t, { store }) => {
    const [ada, bob] = [await newPerson(store), await newPerson(store, 'bob')]
    const key = { id: 'p1', person: ada.id, publicKey: 'pk', counter: 0, name: 'laptop' }
    assert.equal(await store.addPasskey(key, operator), true)
    assert.equal(await store.addPasskey({ ...key, person: bob.id }, operator), false)
    const session = await store.signInByPasskey('p1', 7, newSession())
    assert.equal(session?.person.name, 'ada')
    const found = await store.findPasskey('p1')
    assert.deepEqual(found, {
      ...key,
      counter: 7,
      createdAt: found?.createdAt,
      lastUsedAt: session?.createdAt,
    })
    assert.deepEqual(await store.listPasskeys(ada.id), [found])
    assert.deepEqual(await store.listPasskeys(null), [found])
    assert.deepEqual(await store.listPasskeys(bob.id), [])
    assert.equal(await store.removePasskey(bob.id, 'p1', operator), false)
    assert.equal(await store.removePasskey(ada.id, 'p1', operator), true)
    assert.equal(await store.findPasskey('p1'), null)
    assert.equal(await store.signInByPasskey('p1', 8, newSession()), null)
    const { items } = await store.listAudit({ limit: 9, actions: ['passkey.add', 'passkey.remove'] })
    assert.deepEqual(
      items.map(({ action, target, before, after }) => [action, target, before, after]),
      [
        ['passkey.remove', ada.id, { name: 'laptop' }, null],
        ['passkey.add', ada.id, null, { name: 'laptop' }],
      ],
    )
  })

  it('a nonce is kept once, and taken once', async (_t, { store, advance }) => {
    await store.keepNonce('c1', store.now() + 60_000)
    assert.equal(await store.keepNonce('c2', store.now() + 60_000), true)
    assert.equal(await store.keepNonce('c2', store.now() + 60_000), false)
    const taken = await Promise.all(Array.from({ length: 5 }, () => store.takeNonce('c1')))
    assert.equal(taken.filter(Boolean).length, 1)
    advance(60_001)
    assert.equal(await store.takeNonce('c2'), false)
    assert.equal(await store.keepNonce('c2', store.now() + 60_000), true)
  })

  it('an identity of a provider is one person, whose permission is taken anew', async (_t, { store }) => {
    const oidc = { issuer: 'https://id.example.com', subject: '1' }
    await newPerson(store, 'Ada')
    const wanted = { name: 'Ada', role: 'admin', apps: null, oidc } as const
    const first = await store.signInByOidc(wanted, newSession())
    assert.ok(first !== 'disabled')
    assert.equal(first.person.name, 'Ada 2', 'never matched by name')
    const second = await store.signInByOidc({ ...wanted, name: 'Other', role: 'reader' }, newSession())
    assert.ok(second !== 'disabled')
    assert.deepEqual([second.person.id, second.person.name, second.person.role], [first.person.id, 'Ada 2', 'reader'])
    const both = await Promise.all(
      [1, 2].map(() => store.signInByOidc({ ...wanted, oidc: { ...oidc, subject: '2' } }, newSession())),
    )
    assert.equal(new Set(both.map((each) => each !== 'disabled' && each.person.id)).size, 1)
    const { items } = await store.listAudit({ limit: 50 })
    const [updated, created] = ['person.update', 'person.create'].map((name) =>
      items.find(({ action, target }) => action === name && target === first.person.id),
    )
    assert.deepEqual([updated?.actor.name, updated?.actor.id], ['Ada 2', first.person.id])
    assert.deepEqual([created?.actor.name, created?.actor.id], ['Ada 2', first.person.id])
    assert.equal((await newCode(store, first.person.id)).made, false, 'the provider alone lets this person in')
    const passkey = { id: 'p1', person: first.person.id, publicKey: 'k', counter: 0, name: 'laptop' }
    assert.equal(await store.addPasskey(passkey, operator), false)
    await store.updatePerson(first.person.id, { disabled: true }, operator)
    assert.equal(await store.signInByOidc(wanted, newSession()), 'disabled')
  })

  it('the audit names the person of a sign-in', async (_t, { store }) => {
    const ada = await newPerson(store)
    const wanted = newSession()
    const session = await store.signInByCode((await newCode(store, ada.id)).hash, wanted)
    const [entry] = (await store.listAudit({ limit: 1 })).items
    const { requestId } = wanted
    const actor: Actor = { kind: 'person', id: ada.id, name: 'ada', via: 'console', requestId }
    assert.deepEqual(entry?.actor, actor)
    assert.deepEqual([entry?.action, entry?.target], ['session.create', session?.id])
  })
}
