/** The JSON of people and sessions. */
import { type Static, Type } from 'typebox'
import { roles } from '../../domain/operator/management-token.ts'
import { signInMethods } from '../../domain/operator/sign-in.ts'
import type { PasskeyRecord, PersonRecord, SessionRecord, SignInCodeRecord } from '../../store/people-store.ts'
import type { Store } from '../../store/store.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { idSchema, iso, isoOrNull, present } from '../resources.ts'

export const PasskeyResource = closed({
  id: Type.String(),
  name: Type.String(),
  createdAt: time(),
  lastUsedAt: orNull(time()),
})

export const presentPasskey = (passkey: PasskeyRecord) => present(PasskeyResource, passkey)

const personFields = {
  id: idSchema('pe'),
  name: Type.String(),
  role: Type.Enum([...roles]),
  apps: orNull(Type.Array(idSchema('app'))),
  provider: orNull(Type.String({ description: 'The OpenID provider through which the person signs in.' })),
  passkeys: Type.Array(PasskeyResource),
  /** The link that can still sign the person in; null if there is none. */
  openLink: orNull(closed({ createdAt: time(), expiresAt: time() })),
  createdAt: time(),
  createdBy: Type.String(),
  disabledAt: orNull(time()),
  lastSeenAt: orNull(time()),
}
export const PersonResource = closed(personFields)
export type PersonResource = Static<typeof PersonResource>

/** `link` signs the person in, once; it stands in the answer that makes it and nowhere else. */
export const InvitedResource = closed({ ...personFields, link: Type.String(), linkExpiresAt: time() })

type OfPeople = {
  readonly passkeys: readonly PasskeyRecord[]
  readonly codes: readonly SignInCodeRecord[]
}

/** The passkeys and open links, of all people: they have few. */
export const readOfPeople = async (store: Pick<Store, 'listPasskeys' | 'listSignInCodes'>): Promise<OfPeople> => {
  const [passkeys, codes] = await Promise.all([store.listPasskeys(null), store.listSignInCodes()])
  return { passkeys, codes }
}

export const presentPerson = (
  { oidc, createdAt, disabledAt, lastSeenAt, localTimes: _, apps, ...person }: PersonRecord,
  { codes, passkeys }: OfPeople,
): PersonResource => ({
  ...person,
  apps: apps && [...apps],
  provider: oidc?.issuer ?? null,
  passkeys: passkeys.filter((passkey) => passkey.person === person.id).map(presentPasskey),
  openLink: presentLink(codes.find((code) => code.person === person.id)),
  createdAt: iso(createdAt),
  disabledAt: isoOrNull(disabledAt),
  lastSeenAt: isoOrNull(lastSeenAt),
})

const presentLink = (code: SignInCodeRecord | undefined) =>
  code === undefined ? null : { createdAt: iso(code.createdAt), expiresAt: iso(code.expiresAt) }

export const SessionResource = closed({
  id: idSchema('ses'),
  person: idSchema('pe'),
  name: Type.String({ description: 'The name of the person.' }),
  method: Type.Enum([...signInMethods]),
  agent: Type.String({ description: 'The browser, as given by its User-Agent header.' }),
  createdAt: time(),
  seenAt: time(),
  expiresAt: time(),
})
export type SessionResource = Static<typeof SessionResource>

export const presentSession = ({ person, ...session }: SessionRecord): SessionResource =>
  present(SessionResource, { ...session, person: person.id, name: person.name })
