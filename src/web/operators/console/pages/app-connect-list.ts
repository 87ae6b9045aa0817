/** The programs that send their mail to an app, over HTTP and over SMTP. */
import type { Answer } from '../../../../management/operations.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { age, mark, section, table } from '../parts.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { appHead, findApp } from './apps.ts'

export async function listAuthHooks(visit: Visit): Promise<PageAnswer> {
  const app = await findApp(visit)
  const { items, listens, takesMail } = await visit.get('auth_hook.list', { params: { app: app.slug } })
  const listSystems = (sends: 'http' | 'smtp', isHeard: boolean, setting: string) => {
    const name = sends === 'http' ? 'Auth server' : 'Program'
    const rows = items
      .filter((item) => item.sends === sends)
      .map(({ system, title, secrets }) => [
        html`<a href="/apps/${app.slug}/connect/${system}">${title}</a>`,
        renderState(secrets.toReversed(), visit.now),
      ])
    const silent = html`<div class="note"><p>This process does not listen for them: set <code>${setting}</code> where the service runs.</p></div>`
    return html`${isHeard ? none : silent}${table(`${name}s`, [name, 'Status'], rows)}`
  }
  const body = html`${appHead(app, 'Connect', visit)}
${section(
  'Over HTTP',
  html`<p>An auth server that posts its mail to a URL can post it to Postern, which checks, limits and retries it like the mail of the app itself.</p>
${listSystems('http', listens, 'POSTERN_AUTH_HOOKS_LISTEN')}`,
)}
${section(
  'Over SMTP',
  html`<p>A program that can only send over SMTP logs in to Postern, which takes the link from each message, discards the text, and sends its own email.</p>
${listSystems('smtp', takesMail, 'POSTERN_SUBMISSION_LISTEN')}`,
)}`
  return { title: `Auth servers of ${app.name}`, body, nav: 'apps' }
}

type Secret = Answer<'auth_hook.list'>['items'][number]['secrets'][number]

function renderState([newest]: readonly Secret[], now: number): Html {
  if (newest === undefined) return mark('quiet', 'not connected')
  return newest.lastUsedAt === null
    ? html`${mark('wait', 'no call yet')} <span class="soft">secret made ${age(newest.createdAt, now)}</span>`
    : html`${mark('quiet', 'in use')} <span class="soft">last call ${age(newest.lastUsedAt, now)}</span>`
}
