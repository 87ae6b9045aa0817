/** Sessions of the console: who is signed in, and the end of a session. */
import { listAll } from '../../../../management/list-all.ts'
import type { SessionResource } from '../../../../management/people/people-resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { nameBrowser } from '../browser-name.ts'
import { age, button, confirmation, linkButton, section, table, time } from '../parts.ts'
import { type PageAnswer, PageFailed, type Visit } from '../visit.ts'
import { settingsPage } from './settings.ts'

const methods = { code: 'a one-time link', passkey: 'a passkey', oidc: 'the OpenID provider' } as const

export async function showSessions(visit: Visit): Promise<PageAnswer> {
  const { now, query, session } = visit
  const sessions = await listAll(visit.get, 'session.list', {})
  const byUse = sessions.toSorted((a, b) => (a.seenAt < b.seenAt ? 1 : -1))
  const rows = byUse.map(({ id, name, method, agent, createdAt, seenAt }) => [
    html`<b>${name}</b>${id === session?.id ? html` <span class="soft">(this one)</span>` : none}`,
    html`<span title="${agent}">${nameBrowser(agent)}</span>`,
    methods[method],
    time(createdAt),
    age(seenAt, now),
    linkButton(`/settings/sessions?end=${id}#confirm`, 'End…'),
  ])
  const heads = ['Person', 'Browser', 'Signed in with', 'Since', 'Last used', '']
  const others = sessions.filter(({ id }) => id !== session?.id)
  const endOthers =
    others.length === 0 ? none : html`<p>${linkButton('/settings/sessions?end=others#confirm', 'End all others…')}</p>`
  return settingsPage(
    visit,
    'Sessions',
    html`${renderConfirmation(sessions, query.get('end'))}
${section('Sessions', html`${table('Sessions', heads, rows, { empty: 'Nobody is signed in.' })}${endOthers}`)}`,
  )
}

function renderConfirmation(sessions: readonly SessionResource[], asked: string | null): Html {
  const ask = (question: string, label: string, id: string) =>
    confirmation(question, button(`/settings/sessions/${id}/end`, label, { kind: 'danger' }), '/settings/sessions')
  if (asked === 'others') return ask('End every session but this one?', 'End all others', 'others')
  const found = sessions.find(({ id }) => id === asked)
  if (found === undefined) return none
  return ask(`End ${found.name}'s session in ${nameBrowser(found.agent)}?`, 'End the session', found.id)
}

export async function endSession(visit: Visit): Promise<PageAnswer> {
  const asked = visit.params.session ?? ''
  const all = asked === 'others' ? await listAll(visit.get, 'session.list', {}) : []
  const ids = asked === 'others' ? all.map(({ id }) => id).filter((id) => id !== visit.session?.id) : [asked]
  for (const session of ids) {
    const ended = await visit.call('session.end', { params: { session } })
    if (!ended.ok && ended.error.code !== 'not_found') throw new PageFailed(ended.error)
  }
  return { redirect: '/settings/sessions', notice: asked === 'others' ? 'sessions_ended' : 'session_ended' }
}
