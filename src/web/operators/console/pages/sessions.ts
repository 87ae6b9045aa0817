/** Sessions of the console: who is signed in, and the end of a session. */
import { listAll } from '../../../../management/operation/list-all.ts'
import { html, none } from '../../../../templates/html.ts'
import { age, button, section, table, time } from '../parts.ts'
import { type PageAnswer, PageFailed, type Visit } from '../visit.ts'
import { settingsPage } from './settings.ts'

const methods = { code: 'a one-time code', passkey: 'a passkey', oidc: 'the OpenID provider' } as const

export async function showSessions(visit: Visit): Promise<PageAnswer> {
  const sessions = await listAll(visit.get, 'session.list', {})
  const byUse = sessions.toSorted((a, b) => (a.seenAt < b.seenAt ? 1 : -1))
  const rows = byUse.map(({ id, name, method, agent, createdAt, seenAt }) => [
    html`<b>${name}</b>${id === visit.session?.id ? html` <span class="soft">(this one)</span>` : none}`,
    methods[method],
    html`${time(createdAt)}`,
    age(seenAt, visit.now),
    html`<span class="soft">${agent}</span>`,
    button(`/settings/sessions/${id}/end`, 'End'),
  ])
  const heads = ['person', 'signed in by', 'since', 'last used', 'browser', 'change']
  return settingsPage(
    visit,
    'Sessions',
    section('Sessions', table('Sessions', heads, rows, { empty: 'Nobody is signed in.' })),
  )
}

export async function endSession(visit: Visit): Promise<PageAnswer> {
  const ended = await visit.call('session.end', { params: { session: visit.params.session ?? '' } })
  if (!ended.ok && ended.error.code !== 'not_found') throw new PageFailed(ended.error)
  return { redirect: '/settings/sessions', notice: 'session_ended' }
}
