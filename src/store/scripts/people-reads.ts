/** Reads of people, passkeys and sessions, as scripts that both engines run. */
import type { PersonId, SessionId } from '../../domain/id.ts'
import type { Role } from '../../domain/operator/management-token.ts'
import type { SessionHash, SignInHash, SignInMethod } from '../../domain/operator/sign-in.ts'
import type { PasskeyRecord, PersonRecord, SessionRecord, SignInCodeRecord } from '../people-store.ts'
import type { Row } from '../shared/rows.ts'
import type { Script, ScriptContext } from './script.ts'

export const toPerson = (row: Row): PersonRecord => ({
  id: row.person_id as PersonId,
  name: row.name as string,
  role: row.role as Role,
  apps: row.apps === null ? null : JSON.parse(row.apps as string),
  oidc: row.oidc_issuer === null ? null : { issuer: row.oidc_issuer as string, subject: row.oidc_subject as string },
  createdAt: row.created_at as number,
  createdBy: row.created_by as string,
  disabledAt: row.disabled_at as number | null,
  lastSeenAt: row.last_seen_at as number | null,
  localTimes: Boolean(row.local_times),
})

function* findPerson({ prefix }: ScriptContext, idOrName: string): Script<PersonRecord | null> {
  const [row] = yield {
    text: `select * from ${prefix}person where person_id = $1 or name = $1`,
    values: [idOrName],
  }
  return row === undefined ? null : toPerson(row)
}

function* listPeople({ prefix }: ScriptContext): Script<PersonRecord[]> {
  return (yield { text: `select * from ${prefix}person order by person_id`, values: [] }).map(toPerson)
}

const toSession = (row: Row): SessionRecord => ({
  id: row.session_id as SessionId,
  person: toPerson(row),
  method: row.method as SignInMethod,
  agent: row.agent as string,
  createdAt: row.begun_at as number,
  seenAt: row.seen_at as number,
  expiresAt: row.expires_at as number,
})

/** No column of one table has a name of the other, except `person_id`, which is the same. */
const selectSessions = (prefix: string): string =>
  `select * from ${prefix}session join ${prefix}person using (person_id)`

function* findSession({ prefix }: ScriptContext, hash: SessionHash): Script<SessionRecord | null> {
  const [row] = yield { text: `${selectSessions(prefix)} where session_hash = $1`, values: [hash] }
  return row === undefined ? null : toSession(row)
}

function* listSessions({ prefix }: ScriptContext): Script<SessionRecord[]> {
  return (yield { text: `${selectSessions(prefix)} order by session_id`, values: [] }).map(toSession)
}

const toPasskey = (row: Row): PasskeyRecord => ({
  id: row.passkey_id as string,
  person: row.person_id as PersonId,
  publicKey: row.public_key as string,
  counter: row.counter as number,
  name: row.name as string,
  createdAt: row.created_at as number,
  lastUsedAt: row.last_used_at as number | null,
})

function* findPasskey({ prefix }: ScriptContext, id: string): Script<PasskeyRecord | null> {
  const [row] = yield { text: `select * from ${prefix}passkey where passkey_id = $1`, values: [id] }
  return row === undefined ? null : toPasskey(row)
}

function* listPasskeys({ prefix }: ScriptContext, person: PersonId | null): Script<PasskeyRecord[]> {
  const where = person === null ? '' : 'where person_id = $1'
  const text = `select * from ${prefix}passkey ${where} order by created_at`
  return (yield { text, values: person === null ? [] : [person] }).map(toPasskey)
}

function* listSignInCodes({ nowMs, prefix }: ScriptContext): Script<SignInCodeRecord[]> {
  const text = `select person_id, created_at, expires_at from ${prefix}sign_in_code where expires_at > $1`
  return (yield { text, values: [nowMs] }).map((row) => ({
    person: row.person_id as PersonId,
    createdAt: row.created_at as number,
    expiresAt: row.expires_at as number,
  }))
}

function* isSignInCode({ prefix }: ScriptContext, hash: SignInHash): Script<boolean> {
  const text = `select person_id from ${prefix}sign_in_code where code_hash = $1`
  return (yield { text, values: [hash] }).length > 0
}

export const peopleReads = {
  isSignInCode,
  listSignInCodes,
  findPerson,
  listPeople,
  findSession,
  listSessions,
  findPasskey,
  listPasskeys,
}
