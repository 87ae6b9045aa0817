/**
 * Changes of people, their sign-in codes, passkeys and sessions, as scripts that both engines run. A script
 * locks the person first, then the person's rows: disabling somebody must not wait in a circle with what that
 * person does.
 */

import { passkeysMax, sessionsMax } from '../../domain/bounds.ts'
import { newId, type PersonId, type SessionId } from '../../domain/id.ts'
import { type Action, type Actor, type AuditAction, differences } from '../../domain/operator/audit.ts'
import { type SignInHash, type SignInMethod, sessionIdleMs, sessionMaxMs } from '../../domain/operator/sign-in.ts'
import type {
  NewPasskey,
  NewPerson,
  NewSession,
  NewSignInCode,
  OidcIdentity,
  PersonChange,
  PersonRecord,
  SessionRecord,
} from '../people-store.ts'
import { recordAction } from './audit.ts'
import { toPerson } from './people-reads.ts'
import { lock, type Script, type ScriptContext } from './script.ts'

const toFacts = ({ name, role, apps, disabledAt }: PersonRecord) => ({
  name,
  role,
  apps,
  disabled: disabledAt !== null,
})

const personAction = (action: AuditAction, person: PersonId, change: Partial<Action> = {}): Action => ({
  ...{ action, app: null, target: person, before: null, after: null },
  ...change,
})

/** `given` is null for a person who comes by an OpenID provider, and is the actor. */
function* createPerson(
  context: ScriptContext,
  { name, role, apps, oidc }: NewPerson & { readonly oidc?: OidcIdentity },
  given: Actor | null,
): Script<PersonRecord | 'name_taken'> {
  const { nowMs, prefix } = context
  const id = newId('pe', nowMs)
  const actor = given ?? personActor(id, name, null)
  const [row] = yield {
    text: `insert into ${prefix}person (person_id, name, role, apps, oidc_issuer, oidc_subject, created_at, created_by)
      values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing returning *`,
    values: [
      ...[id, name, role, apps && JSON.stringify(apps)],
      ...[oidc?.issuer ?? null, oidc?.subject ?? null, nowMs, actor.name],
    ],
  }
  if (row === undefined) return 'name_taken'
  const person = toPerson(row)
  yield* recordAction(context, personAction('person.create', person.id, { after: toFacts(person) }), actor)
  return person
}

function* updatePerson(
  context: ScriptContext,
  id: PersonId,
  change: PersonChange,
  actor: Actor,
): Script<PersonRecord | null> {
  const { nowMs, prefix } = context
  const [row] = yield {
    text: `select * from ${prefix}person where person_id = $1 ${lock(context, 'for update')}`,
    values: [id],
  }
  if (row === undefined) return null
  const before = toPerson(row)
  const { disabled = before.disabledAt !== null, role = before.role } = change
  const next: PersonRecord = {
    ...before,
    role,
    apps: change.apps === undefined ? before.apps : change.apps,
    disabledAt: disabled ? (before.disabledAt ?? nowMs) : null,
  }
  const changed = differences(toFacts(before), toFacts(next))
  if (changed === null) return before
  yield {
    text: `update ${prefix}person set role = $2, apps = $3, disabled_at = $4 where person_id = $1`,
    values: [id, next.role, next.apps && JSON.stringify(next.apps), next.disabledAt],
  }
  if (disabled) yield { text: `delete from ${prefix}session where person_id = $1`, values: [id] }
  // A link was made for somebody who may do what the person could do then.
  yield* endCodes(context, id)
  yield* recordAction(context, personAction('person.update', id, changed), actor)
  return next
}

function* setLocalTimes({ prefix }: ScriptContext, id: PersonId, isOn: boolean): Script<void> {
  yield {
    text: `update ${prefix}person set local_times = ${isOn} where person_id = $1`,
    values: [id],
  }
}

/**
 * A person who signs in by codes and passkeys; null if it is disabled, or an OpenID provider decides about
 * it.
 */
function* findLocal(context: ScriptContext, id: PersonId): Script<PersonRecord | null> {
  const text = `select * from ${context.prefix}person
    where person_id = $1 and disabled_at is null and oidc_issuer is null ${lock(context, 'for update')}`
  const [row] = yield { text, values: [id] }
  return row === undefined ? null : toPerson(row)
}

function* createSignInCode(
  context: ScriptContext,
  { hash, person, expiresAt }: NewSignInCode,
  actor: Actor,
): Script<boolean> {
  const { nowMs, prefix } = context
  if ((yield* findLocal(context, person)) === null) return false
  yield* endCodes(context, person)
  yield {
    text: `insert into ${prefix}sign_in_code (code_hash, person_id, created_at, expires_at) values ($1, $2, $3, $4)`,
    values: [hash, person, nowMs, expiresAt],
  }
  yield* recordAction(context, personAction('sign_in.code', person), actor)
  return true
}

/**
 * A person has one code at most, which ends with the next one, with a sign-in, and with a change of access.
 */
function* endCodes({ prefix }: ScriptContext, person: PersonId): Script<boolean> {
  const text = `delete from ${prefix}sign_in_code where person_id = $1 returning 1`
  return (yield { text, values: [person] }).length > 0
}

function* endSignInCode(context: ScriptContext, person: PersonId, actor: Actor): Script<boolean> {
  if (!(yield* endCodes(context, person))) return false
  yield* recordAction(context, personAction('sign_in.end_code', person), actor)
  return true
}

function* signInByCode(context: ScriptContext, hash: SignInHash, session: NewSession): Script<SessionRecord | null> {
  const { nowMs, prefix } = context
  const [code] = yield {
    text: `select person_id from ${prefix}sign_in_code where code_hash = $1`,
    values: [hash],
  }
  const person = code === undefined ? null : yield* findLocal(context, code.person_id as PersonId)
  if (person === null) return null
  const text = `delete from ${prefix}sign_in_code where code_hash = $1 and expires_at > $2 returning person_id`
  const [used] = yield { text, values: [hash, nowMs] }
  return used === undefined ? null : yield* beginSession(context, person, { ...session, method: 'code' })
}

function* signInByPasskey(
  context: ScriptContext,
  passkey: string,
  counter: number,
  session: NewSession,
): Script<SessionRecord | null> {
  const { nowMs, prefix } = context
  const [owned] = yield {
    text: `select person_id from ${prefix}passkey where passkey_id = $1`,
    values: [passkey],
  }
  const person = owned === undefined ? null : yield* findLocal(context, owned.person_id as PersonId)
  if (person === null) return null
  const text = `update ${prefix}passkey set counter = $2, last_used_at = $3 where passkey_id = $1 returning person_id`
  const [used] = yield { text, values: [passkey, counter, nowMs] }
  return used === undefined ? null : yield* beginSession(context, person, { ...session, method: 'passkey' })
}

/** Names that a person of an OpenID provider gets when the name is taken. */
const namesTried = 20

function* signInByOidc(
  context: ScriptContext,
  wanted: NewPerson & { readonly oidc: OidcIdentity },
  session: NewSession,
): Script<SessionRecord | 'disabled'> {
  const { issuer, subject } = wanted.oidc
  const text = `select * from ${context.prefix}person
    where oidc_issuer = $1 and oidc_subject = $2 ${lock(context, 'for update')}`
  for (let tries = 1; tries <= namesTried; tries++) {
    const [row] = yield { text, values: [issuer, subject] }
    if (row !== undefined) {
      const { role, apps } = wanted
      const known = toPerson(row)
      if (known.disabledAt !== null) return 'disabled'
      const actor = personActor(known.id, known.name, session.requestId)
      const person = (yield* updatePerson(context, known.id, { role, apps }, actor)) ?? known
      return yield* beginSession(context, person, { ...session, method: 'oidc' })
    }
    const name = tries === 1 ? wanted.name : `${wanted.name} ${tries}`
    yield* createPerson(context, { ...wanted, name }, null)
  }
  throw new Error('no name is free for a person of the OpenID provider')
}

const personActor = (id: PersonId, name: string, requestId: string | null): Actor => ({
  kind: 'person',
  id,
  name,
  via: 'console',
  requestId,
})

/** Ends the person's code, sessions that are over, and the oldest ones beyond `sessionsMax`. */
function* beginSession(
  context: ScriptContext,
  person: PersonRecord,
  { hash, agent, method, requestId }: NewSession & { readonly method: SignInMethod },
): Script<SessionRecord> {
  const { nowMs, prefix } = context
  const id = newId('ses', nowMs)
  const expiresAt = nowMs + sessionMaxMs
  yield* endCodes(context, person.id)
  yield {
    text: `delete from ${prefix}session where person_id = $1 and (expires_at <= $2 or seen_at <= $3 or session_id in (
      select session_id from ${prefix}session where person_id = $1 order by session_id desc limit ${sessionsMax} offset ${sessionsMax - 1}))`,
    values: [person.id, nowMs, nowMs - sessionIdleMs],
  }
  yield {
    text: `insert into ${prefix}session (session_id, session_hash, person_id, method, agent, begun_at, seen_at, expires_at)
      values ($1, $2, $3, $4, $5, $6, $6, $7)`,
    values: [id, hash, person.id, method, agent, nowMs, expiresAt],
  }
  yield {
    text: `update ${prefix}person set last_seen_at = $2 where person_id = $1`,
    values: [person.id, nowMs],
  }
  const after = { person: person.name, method }
  const action: Action = { action: 'session.create', app: null, target: id, before: null, after }
  yield* recordAction(context, action, personActor(person.id, person.name, requestId))
  return { id, person, method, agent, createdAt: nowMs, seenAt: nowMs, expiresAt }
}

function* noteSessionUse({ nowMs, prefix }: ScriptContext, id: SessionId): Script<void> {
  const [row] = yield { text: `select person_id from ${prefix}session where session_id = $1`, values: [id] }
  const person = (row?.person_id ?? '') as string
  yield { text: `update ${prefix}person set last_seen_at = $2 where person_id = $1`, values: [person, nowMs] }
  yield { text: `update ${prefix}session set seen_at = $2 where session_id = $1`, values: [id, nowMs] }
}

function* endSession(context: ScriptContext, id: SessionId, actor: Actor): Script<boolean> {
  const text = `delete from ${context.prefix}session where session_id = $1 returning person_id`
  const [ended] = yield { text, values: [id] }
  if (ended === undefined) return false
  const after = { person: ended.person_id }
  yield* recordAction(context, { action: 'session.end', app: null, target: id, before: null, after }, actor)
  return true
}

function* addPasskey(context: ScriptContext, passkey: NewPasskey, actor: Actor): Script<boolean> {
  const { nowMs, prefix } = context
  const { id, person, publicKey, counter, name } = passkey
  if ((yield* findLocal(context, person)) === null) return false
  const own = yield { text: `select 1 from ${prefix}passkey where person_id = $1`, values: [person] }
  if (own.length >= passkeysMax) return false
  const [row] = yield {
    text: `insert into ${prefix}passkey (passkey_id, person_id, public_key, counter, name, created_at)
      values ($1, $2, $3, $4, $5, $6) on conflict do nothing returning passkey_id`,
    values: [id, person, publicKey, counter, name, nowMs],
  }
  if (row === undefined) return false
  yield* recordAction(context, personAction('passkey.add', person, { after: { name } }), actor)
  return true
}

function* removePasskey(context: ScriptContext, person: PersonId, id: string, actor: Actor): Script<boolean> {
  const text = `delete from ${context.prefix}passkey where passkey_id = $1 and person_id = $2 returning name`
  const [row] = yield { text, values: [id, person] }
  if (row === undefined) return false
  const before = { name: row.name }
  yield* recordAction(context, personAction('passkey.remove', person, { before }), actor)
  return true
}

export const peopleChanges = {
  createPerson,
  updatePerson,
  setLocalTimes,
  createSignInCode,
  endSignInCode,
  signInByCode,
  signInByPasskey,
  signInByOidc,
  noteSessionUse,
  endSession,
  addPasskey,
  removePasskey,
}
