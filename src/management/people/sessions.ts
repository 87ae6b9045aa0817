/** Sessions of the console: listed and ended. */
import { isSessionAlive } from '../../domain/operator/sign-in.ts'
import { cutList, pageQuery } from '../operation/list-pages.ts'
import { forAdmins, operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { newPageSchema } from '../resources.ts'
import { presentSession, SessionResource } from './people-resources.ts'

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
    const alive = (await store.listSessions()).filter((session) => isSessionAlive(session, store.now()))
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
