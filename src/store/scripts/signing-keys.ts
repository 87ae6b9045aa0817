/** The keys that sign mail, by domain. */
import { type SigningAlgorithm, type SigningKeyState, signingKeysMax } from '../../domain/delivery/signing-key.ts'
import type { AppId } from '../../domain/id.ts'
import type { AuditAction } from '../../domain/operator/audit.ts'
import type { Row } from '../shared/rows.ts'
import type { SigningKeyRecord, SigningKeyStore } from '../signing-key-store.ts'
import { recordAction } from './audit.ts'
import { lock, readAll, readOne, type Script, type ScriptContext } from './script.ts'

type Parameter<Name extends keyof SigningKeyStore, Index extends 0 | 1> = Parameters<SigningKeyStore[Name]>[Index]

function* addSigningKey(
  context: ScriptContext,
  { app, algorithm, domain, publicKey, sealed, selector }: Parameter<'addSigningKey', 0>,
  actor: Parameter<'addSigningKey', 1>,
): Script<SigningKeyRecord | 'taken' | 'too_many'> {
  const { nowMs, prefix } = context
  const known = yield* lockKeys(context, domain)
  if (known.length >= signingKeysMax) return 'too_many'
  const insert = {
    text: `insert into ${prefix}signing_key (domain, selector, algorithm, state, public_key, sealed, created_at, changed_at)
      values ($1, $2, $3, 'pending', $4, $5, $6, $6) on conflict do nothing returning *`,
    values: [domain, selector, algorithm, publicKey, sealed, nowMs],
  }
  const added = yield* readOne(insert, toRecord)
  if (added === null) return 'taken'
  yield* record(context, 'domain.add_key', { app, before: null, after: added }, actor)
  return added
}

function* activateSigningKey(
  context: ScriptContext,
  { app, domain, selector }: Parameter<'activateSigningKey', 0>,
  actor: Parameter<'activateSigningKey', 1>,
): Script<SigningKeyRecord | null> {
  const known = yield* lockKeys(context, domain)
  const key = known.find((candidate) => candidate.selector === selector)
  if (key === undefined) return null
  if (key.state === 'active') return key
  for (const { algorithm, selector: other, state } of known)
    if (state === 'active' && algorithm === key.algorithm)
      yield* setState(context, { domain, selector: other }, 'retired')
  const activated = yield* setState(context, key, 'active')
  yield* record(context, 'domain.activate_key', { app, before: key, after: activated }, actor)
  return activated
}

function* removeSigningKey(
  context: ScriptContext,
  { app, domain, selector }: Parameter<'removeSigningKey', 0>,
  actor: Parameter<'removeSigningKey', 1>,
): Script<SigningKeyRecord | null> {
  const text = `delete from ${context.prefix}signing_key where domain = $1 and selector = $2 returning *`
  const removed = yield* readOne({ text, values: [domain, selector] }, toRecord)
  if (removed !== null) yield* record(context, 'domain.remove_key', { app, before: removed, after: null }, actor)
  return removed
}

function* resealSigningKey(
  { prefix }: ScriptContext,
  { domain, sealed, selector }: Parameter<'resealSigningKey', 0>,
  resealed: string,
): Script<void> {
  yield {
    text: `update ${prefix}signing_key set sealed = $4 where domain = $1 and selector = $2 and sealed = $3`,
    values: [domain, selector, sealed, resealed],
  }
}

function* setState(
  { nowMs, prefix }: ScriptContext,
  { domain, selector }: Pick<SigningKeyRecord, 'domain' | 'selector'>,
  state: SigningKeyState,
): Script<SigningKeyRecord> {
  const text = `update ${prefix}signing_key set state = $3, changed_at = $4
    where domain = $1 and selector = $2 returning *`
  const changed = yield* readOne({ text, values: [domain, selector, state, nowMs] }, toRecord)
  if (changed === null) throw new Error('a signing key was removed while it was locked')
  return changed
}

function* record(
  context: ScriptContext,
  action: AuditAction,
  {
    app,
    before,
    after,
  }: {
    readonly app: AppId
    readonly before: SigningKeyRecord | null
    readonly after: SigningKeyRecord | null
  },
  actor: Parameter<'addSigningKey', 1>,
): Script<void> {
  const key = after ?? before
  const target = `${key?.selector}._domainkey.${key?.domain}`
  const entry = { action, app, target, before: toFacts(before), after: toFacts(after) }
  yield* recordAction(context, entry, actor)
}

const toFacts = (key: SigningKeyRecord | null) => (key === null ? null : { algorithm: key.algorithm, state: key.state })

const listKeys = `order by created_at, selector`

function* lockKeys(context: ScriptContext, domain: string): Script<SigningKeyRecord[]> {
  const text = `select * from ${context.prefix}signing_key where domain = $1 ${listKeys} ${lock(context, 'for update')}`
  return yield* readAll({ text, values: [domain] }, toRecord)
}

/** RSA first: some verifiers look at the first signature of a message alone. */
function* findSigningKeys({ prefix }: ScriptContext, domain: string): Script<SigningKeyRecord[]> {
  const text = `select * from ${prefix}signing_key where domain = $1 and state = 'active' order by algorithm desc`
  return yield* readAll({ text, values: [domain] }, toRecord)
}

function* listSigningKeys({ prefix }: ScriptContext, domain: string | null): Script<SigningKeyRecord[]> {
  const text = `select * from ${prefix}signing_key ${domain === null ? '' : 'where domain = $1'} ${listKeys}`
  return yield* readAll({ text, values: domain === null ? [] : [domain] }, toRecord)
}

const toRecord = (row: Row): SigningKeyRecord => ({
  domain: row.domain as string,
  selector: row.selector as string,
  algorithm: row.algorithm as SigningAlgorithm,
  state: row.state as SigningKeyState,
  publicKey: row.public_key as string,
  sealed: row.sealed as string,
  createdAt: row.created_at as number,
  changedAt: row.changed_at as number,
})

export const signingKeyChanges = {
  addSigningKey,
  activateSigningKey,
  removeSigningKey,
  resealSigningKey,
}
export const signingKeyReads = { findSigningKeys, listSigningKeys }
