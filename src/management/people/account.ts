/** The account of the person who asks, and the sessions of all people. */
import { Type } from 'typebox'
import type { PersonId } from '../../domain/id.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import { roles } from '../../domain/operator/management-token.ts'
import { isSessionAlive } from '../../domain/operator/sign-in.ts'
import type { SessionRecord } from '../../store/people-store.ts'
import type { Store } from '../../store/store.ts'
import { cutList, pageQuery } from '../operation/list-pages.ts'
import { always, forAdmins, operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { isoOrNull, newPageSchema } from '../resources.ts'
import { PasskeyResource, presentPasskey, presentSession, SessionResource } from './people-resources.ts'

/** Null for tokens and the command line. */
const findPersonId = ({ kind, id }: Actor): PersonId | null => (kind === 'person' ? (id as PersonId) : null)

const listAlive = async (store: Store): Promise<SessionRecord[]> =>
  (await store.listSessions()).filter((session) => isSessionAlive(session, store.now()))

const listSessionsOf = async (store: Store, person: PersonId): Promise<SessionRecord[]> =>
  (await listAlive(store)).filter((session) => session.person.id === person)

export const whoami = operation({
  method: 'GET',
  path: '/v1/whoami',
  role: 'reader',
  summary: 'Shows who is making the request, and what they may do.',
  answer: closed({
    name: Type.String(),
    role: Type.Enum([...roles]),
    apps: orNull(
      Type.Array(Type.String(), {
        description: 'The ids of the apps it is limited to; null for the whole service.',
      }),
    ),
    expiresAt: orNull(Type.String({ format: 'date-time' })),
    passkeys: orNull(Type.Array(PasskeyResource, { description: 'Null unless a person makes the request.' })),
    sessions: orNull(Type.Array(SessionResource, { description: 'Null unless a person makes the request.' })),
    version: Type.String({ description: 'The version of Postern.' }),
  }),
  async run({ access, store, version }) {
    const { actor, apps, expiresAt, role } = access
    const person = findPersonId(actor)
    return done({
      name: actor.name,
      role,
      apps: apps === null ? null : [...apps],
      expiresAt: isoOrNull(expiresAt),
      passkeys: person === null ? null : (await store.listPasskeys(person)).map(presentPasskey),
      sessions: person === null ? null : (await listSessionsOf(store, person)).map(presentSession),
      version,
    })
  },
})

export const changeAccount = operation({
  method: 'PATCH',
  path: '/v1/account',
  role: 'reader',
  audited: false,
  summary: 'Changes what pages show to you: times of your own zone beside UTC.',
  body: closed({ localTimes: Type.Boolean() }),
  answer: closed({ localTimes: Type.Boolean() }),
  errors: ['not_found'],
  async run({ store, access: { actor } }, { body: { localTimes } }) {
    const person = findPersonId(actor)
    if (person === null) return fail('not_found', 'Only people who sign in to the console have an account.')
    await store.setLocalTimes(person, localTimes)
    return done({ localTimes })
  },
})

export const removeOwnPasskey = operation({
  method: 'DELETE',
  path: '/v1/account/passkeys/{passkey}',
  role: 'reader',
  summary: 'Removes one of your own passkeys. Sessions started with it continue.',
  takesAway: always,
  answer: closed({ passkeys: Type.Array(PasskeyResource) }),
  errors: ['not_found'],
  async run({ store, access: { actor } }, { params: { passkey } }) {
    const person = findPersonId(actor)
    if (person === null || !(await store.removePasskey(person, passkey, actor)))
      return fail('not_found', 'You have no such passkey.')
    return done({ passkeys: (await store.listPasskeys(person)).map(presentPasskey) })
  },
})

export const endOwnSession = operation({
  method: 'DELETE',
  path: '/v1/account/sessions/{session}',
  role: 'reader',
  summary: 'Ends one of your own sessions; takes effect for its next request.',
  takesAway: always,
  answer: SessionResource,
  errors: ['not_found'],
  async run({ store, access: { actor } }, { params: { session: id } }) {
    const person = findPersonId(actor)
    const session = person === null ? undefined : (await listSessionsOf(store, person)).find((own) => own.id === id)
    if (session === undefined || !(await store.endSession(session.id, actor)))
      return fail('not_found', 'You have no such session; it may have ended already.')
    return done(presentSession(session))
  },
})

export const listSessions = operation({
  ...forAdmins,
  method: 'GET',
  path: '/v1/sessions',
  summary: 'Lists the active sessions of the console, oldest first.',
  query: closed(pageQuery),
  answer: newPageSchema(SessionResource),
  errors: ['cursor_mismatch'],
  async run(context, { query }) {
    const { store } = context
    const alive = await listAlive(store)
    return cutList(context, alive.map(presentSession), query, { list: 'sessions' })
  },
})

export const endSession = operation({
  ...forAdmins,
  method: 'DELETE',
  path: '/v1/sessions/{session}',
  summary: 'Ends a session of the console; takes effect for its next request.',
  answer: SessionResource,
  errors: ['not_found'],
  async run({ store, access }, { params: { session: id } }) {
    const session = (await store.listSessions()).find((known) => known.id === id)
    if (session === undefined || !(await store.endSession(session.id, access.actor)))
      return fail('not_found', `There is no session "${id}"; it may have ended already.`)
    return done(presentSession(session))
  },
})
