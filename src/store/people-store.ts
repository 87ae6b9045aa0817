/**
 * The part of a store that serves the console: people, their sign-in codes, passkeys and sessions. The rules
 * of `store.ts` and `operator-store.ts` hold. Times are milliseconds since 1970.
 */

import type { AppId, PersonId, SessionId } from '../domain/id.ts'
import type { Actor } from '../domain/operator/audit.ts'
import type { Role } from '../domain/operator/management-token.ts'
import type { SessionHash, SignInHash, SignInMethod } from '../domain/operator/sign-in.ts'

/** A person at an OpenID provider. An address or name is no identity: it can be given to somebody else. */
export type OidcIdentity = { readonly issuer: string; readonly subject: string }

/** The role of a person, in some apps or (null) in the whole service. */
export type Permission = { readonly role: Role; readonly apps: readonly AppId[] | null }

export type PersonRecord = Permission & {
  readonly id: PersonId
  /** Unique. */
  readonly name: string
  readonly oidc: OidcIdentity | null
  readonly createdAt: number
  readonly createdBy: string
  /** Null unless the person is disabled. */
  readonly disabledAt: number | null
  readonly lastSeenAt: number | null
  /** Whether pages also show times of the person's own zone. */
  readonly localTimes: boolean
}

export type NewPerson = Permission & { readonly name: string }

/** Properties that are absent stay as they are. */
export type PersonChange = Partial<Permission> & { readonly disabled?: boolean }

export type NewSignInCode = {
  readonly hash: SignInHash
  readonly person: PersonId
  readonly expiresAt: number
}

export type SignInCodeRecord = {
  readonly person: PersonId
  readonly createdAt: number
  readonly expiresAt: number
}

/** A session that is about to begin. `agent`: the `User-Agent` of the browser, shortened. */
export type NewSession = { readonly hash: SessionHash; readonly agent: string; readonly requestId: string }

export type SessionRecord = {
  readonly id: SessionId
  readonly person: PersonRecord
  readonly method: SignInMethod
  readonly agent: string
  readonly createdAt: number
  readonly seenAt: number
  readonly expiresAt: number
}

export type PasskeyRecord = {
  /** The id of the credential, base64url. */
  readonly id: string
  readonly person: PersonId
  /** COSE, base64url. */
  readonly publicKey: string
  readonly counter: number
  readonly name: string
  readonly createdAt: number
  readonly lastUsedAt: number | null
}

export type NewPasskey = Pick<PasskeyRecord, 'id' | 'person' | 'publicKey' | 'counter' | 'name'>

export interface PeopleStore {
  createPerson(person: NewPerson, actor: Actor): Promise<PersonRecord | 'name_taken'>
  /**
   * Disabling a person ends its sessions and codes; another role or other apps, its codes. Null if there is
   * none.
   */
  updatePerson(id: PersonId, change: PersonChange, actor: Actor): Promise<PersonRecord | null>
  setLocalTimes(id: PersonId, isOn: boolean): Promise<void>
  findPerson(idOrName: string): Promise<PersonRecord | null>
  listPeople(): Promise<readonly PersonRecord[]>

  /**
   * Ends the person's earlier codes. False if there is no such person, it is disabled, or it signs in through
   * OpenID, where the provider manages access.
   */
  createSignInCode(link: NewSignInCode, actor: Actor): Promise<boolean>
  /** The codes that can still be used: at most one of each person. */
  listSignInCodes(): Promise<readonly SignInCodeRecord[]>
  /** False if the person has no code. */
  endSignInCode(person: PersonId, actor: Actor): Promise<boolean>
  /** Whether there is such a code; it may have expired. */
  isSignInCode(hash: SignInHash): Promise<boolean>
  /**
   * Uses a code up and begins a session; null if it is unknown, used or expired, or its person is disabled.
   */
  signInByCode(hash: SignInHash, session: NewSession): Promise<SessionRecord | null>
  /**
   * Begins a session by a passkey whose signature was verified; null if the passkey is gone, or its person is
   * disabled.
   */
  signInByPasskey(passkey: string, counter: number, session: NewSession): Promise<SessionRecord | null>
  /**
   * Begins a session of the person with this identity, who gets this permission; `disabled` if it is
   * disabled.
   */
  signInByOidc(
    person: NewPerson & { readonly oidc: OidcIdentity },
    session: NewSession,
  ): Promise<SessionRecord | 'disabled'>

  /** Also one that is over: see `isSessionAlive`. Null if it was ended. */
  findSession(hash: SessionHash): Promise<SessionRecord | null>
  /** Records that a session was used now. */
  noteSessionUse(id: SessionId): Promise<void>
  listSessions(): Promise<readonly SessionRecord[]>
  /** False if there is no such session. */
  endSession(id: SessionId, actor: Actor): Promise<boolean>

  /** False if the passkey is known already, or the person signs in by an OpenID provider. */
  addPasskey(passkey: NewPasskey, actor: Actor): Promise<boolean>
  findPasskey(id: string): Promise<PasskeyRecord | null>
  /** The passkeys of one person, or (null) of all. */
  listPasskeys(person: PersonId | null): Promise<readonly PasskeyRecord[]>
  /** False if there was none. */
  removePasskey(person: PersonId, id: string, actor: Actor): Promise<boolean>
  /**
   * Keeps the hash of a passkey's challenge, or of a form that was sent, until `expiresAt`. False if it is
   * kept already.
   */
  keepNonce(hash: string, expiresAt: number): Promise<boolean>
  /** True once, for a hash that is kept and has not expired. */
  takeNonce(hash: string): Promise<boolean>
}
