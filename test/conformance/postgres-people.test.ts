/**
 * PostgreSQL alone: locks of people and their sessions, and who waits for whom when secrets are looked up.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/domain/id.ts'
import { hashToken, newToken } from '../../src/domain/operator/management-token.ts'
import {
  hashSessionSecret,
  hashSignInCode,
  newSessionSecret,
  newSignInCode,
} from '../../src/domain/operator/sign-in.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import type { Store } from '../../src/store/store.ts'
import { databaseAt } from '../support/database.ts'
import { operator } from '../support/operator.ts'
import { openClient, postgresUrl, runSql, schemaOf, startPostgres } from '../support/postgres.ts'
import { newRing } from '../support/service.ts'
import { atEnd, type Scope } from '../support/temporary.ts'
import { eventually } from '../support/wait.ts'

async function openAt(scope: Scope, url: string) {
  const address = databaseAt(url)
  assert.ok(address.engine === 'postgres')
  const store = await openPostgresStore({ address, ring: newRing(), queueMax: 1000 })
  atEnd(scope, () => store.close())
  return store
}

/** A person who signs in by a code at once. */
async function signInSomebody(store: Store) {
  const person = await store.createPerson({ name: newId('pe', 0), role: 'reader', apps: null }, operator)
  assert.ok(person !== 'name_taken')
  const hash = hashSignInCode(newSignInCode())
  await store.createSignInCode({ hash, person: person.id, expiresAt: store.now() + 60_000 }, operator)
  const begin = { hash: hashSessionSecret(newSessionSecret()), agent: 'test', requestId: 'req_test' }
  const session = await store.signInByCode(hash, begin)
  assert.ok(session !== null)
  return { person, session }
}

test('a person who is active can be disabled: neither waits for the other', async (t) => {
  const { url } = await startPostgres(t) // its own server, because deadlocks are counted by database
  const store = await openAt(t, url)
  for (let tries = 0; tries < 30; tries++) {
    const { person, session } = await signInSomebody(store)
    const code = hashSignInCode(newSignInCode())
    const link = { hash: code, person: person.id, expiresAt: store.now() + 60_000 }
    await store.createSignInCode(link, operator)
    const again = { hash: hashSessionSecret(newSessionSecret()), agent: 'test', requestId: 'req_test' }
    await Promise.all([
      store.noteSessionUse(session.id),
      store.updatePerson(person.id, { disabled: true }, operator),
      store.signInByCode(code, again),
    ])
    const left = (await store.listSessions()).filter((each) => each.person.id === person.id)
    assert.deepEqual(left, [])
  }
  const [row] = await runSql<{ deadlocks: number }>(
    url,
    'select deadlocks::int as deadlocks from pg_stat_database where datname = current_database()',
  )
  assert.equal(row?.deadlocks, 0)
})

test('a person who is disabled while the OpenID provider answers gets no session', async (t) => {
  const url = await postgresUrl(t)
  const store = await openAt(t, url)
  const schema = schemaOf(url)
  const wanted = {
    name: 'Ada',
    role: 'reader',
    apps: null,
    oidc: { issuer: 'https://id.test', subject: 'ada' },
  } as const
  const signIn = () =>
    store.signInByOidc(wanted, {
      hash: hashSessionSecret(newSessionSecret()),
      agent: 'test',
      requestId: 'req_test',
    })
  const first = await signIn()
  assert.ok(first !== 'disabled')
  const other = await openClient(t, url)
  const { id } = first.person
  await other.query(`begin; update "${schema}".person set disabled_at = 1 where person_id = '${id}'`)
  const again = signIn()
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%"${schema}".person%'`
  await eventually(async () => (await runSql(url, waiting)).length === 1)
  await other.query(`delete from "${schema}".session where person_id = '${id}'; commit`)
  assert.equal(await again, 'disabled')
  const [left] = await runSql<{ sessions: number }>(url, `select count(*)::int as sessions from "${schema}".session`)
  assert.equal(left?.sessions, 0)
})

test('a change that a deadlock ended is made once more', async (t) => {
  const url = await postgresUrl(t)
  const store = await openAt(t, url)
  const schema = schemaOf(url)
  const { person, session } = await signInSomebody(store)
  const other = await openClient(t, url)
  await other.query("set deadlock_timeout = '1min'; begin") // the store's transaction is the one that is ended
  await other.query(`select from "${schema}".session where session_id = '${session.id}' for update`)
  const disabled = store.updatePerson(person.id, { disabled: true }, operator) // locks the person, waits for the session
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%"${schema}".session%'`
  await eventually(async () => (await runSql(url, waiting)).length === 1)
  await other.query(`update "${schema}".person set last_seen_at = 1 where person_id = '${person.id}'; commit`)
  assert.ok((await disabled)?.disabledAt)
  assert.deepEqual(await store.listSessions(), [])
})

test('tokens and sessions that are made up keep none waiting that was found before', async (t) => {
  const url = await postgresUrl(t)
  const store = await openAt(t, url)
  const hash = hashToken(newToken())
  const expiresAt = store.now() + 60_000
  await store.createToken({ hash, name: 'own', role: 'reader', apps: null, expiresAt }, operator)
  assert.equal((await store.findTokenByHash(hash))?.name, 'own')
  const strangers = Promise.allSettled(Array.from({ length: 300 }, () => store.findTokenByHash(hashToken(newToken()))))
  const own = await store.findTokenByHash(hash)
  const answers = await strangers
  assert.equal(own?.name, 'own')
  assert.ok(
    answers.some(({ status }) => status === 'rejected'),
    'more strangers than may wait are refused',
  )
})

test('a token that was revoked is a stranger’s from the look-up that finds it so', async (t) => {
  const store = await openAt(t, await postgresUrl(t))
  const hash = hashToken(newToken())
  const expiresAt = store.now() + 60_000
  const token = await store.createToken({ hash, name: 'old', role: 'reader', apps: null, expiresAt }, operator)
  assert.ok(typeof token === 'object' && token !== null)
  const manyAsk = () =>
    Promise.allSettled(Array.from({ length: 300 }, () => store.findTokenByHash(hash))).then(
      (answers) => answers.filter(({ status }) => status === 'rejected').length,
    )
  assert.ok(await store.findTokenByHash(hash))
  assert.equal(await manyAsk(), 0)
  await store.revokeToken(token.id, operator)
  assert.ok((await store.findTokenByHash(hash))?.revokedAt)
  assert.ok((await manyAsk()) > 0)
})
