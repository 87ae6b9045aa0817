/** The account of the person who is signed in: what it may do, its sessions and its passkeys. */
import { type Html, html, none } from '../../../../templates/html.ts'
import { nameBrowser } from '../browser-name.ts'
import { newForm } from '../form.ts'
import { age, button, confirmation, facts, linkButton, section, table, time } from '../parts.ts'
import { type PageAnswer, PageFailed, type Visit } from '../visit.ts'
import { describeScope, readSlugs } from './app-names.ts'

const passkeyForm = newForm('passkey', {
  name: { label: 'Name of a new passkey', attributes: html`maxlength="60" autocomplete="off"` },
})

export async function showAccount(visit: Visit): Promise<PageAnswer> {
  const { query, session } = visit
  const slugs = await readSlugs(visit)
  const { apps, expiresAt, name, passkeys, role, sessions } = await visit.get('whoami', {})
  const rows = (passkeys ?? []).map(({ id, name, createdAt, lastUsedAt }) => [
    html`<b>${name}</b>`,
    age(createdAt, visit.now),
    age(lastUsedAt, visit.now),
    linkButton(`/account?remove=${encodeURIComponent(id)}#confirm`, 'Remove…'),
  ])
  const browsers = (sessions ?? [])
    .toReversed()
    .map(({ agent, createdAt, id, seenAt }) => [
      html`<b title="${agent}">${nameBrowser(agent)}</b>`,
      time(createdAt),
      age(seenAt, visit.now),
      id === session?.id ? 'this one' : button(`/account/sessions/${id}/end`, 'End'),
    ])
  const about = facts([
    ['Name', name],
    ['Role', role],
    ['Access to', describeScope(apps, slugs)],
    ['Session until', expiresAt === null ? null : time(expiresAt)],
  ])
  const isLocal = session?.person.localTimes ?? false
  const times =
    session === null
      ? none
      : section(
          'Times',
          html`<p>${isLocal ? 'Pages show UTC, and the time of this browser’s zone beside it.' : 'Pages show UTC. The time of this browser’s zone appears when you point at one.'}</p>
${button('/account/times', isLocal ? 'Show UTC alone' : 'Show local times, too', { fields: { local: isLocal ? 'no' : 'yes' } })}`,
        )
  const add = html`<form class="filters" id="new-passkey">
${passkeyForm.show({ name: nameBrowser(session?.agent ?? '') }).field('name')}
<button type="button" class="main" disabled>Add a passkey</button>
<p class="fault" role="alert"></p>
</form>
<noscript><p class="soft">Adding a passkey needs JavaScript, because browsers offer passkeys only to scripts.</p>
</noscript>`
  const heads = ['Passkey', 'Added', 'Last used', '']
  const empty =
    'No passkey yet. Until you add one, you can sign in only with a link from the command line or from another admin.'
  const removed = (passkeys ?? []).find(({ id }) => id === query.get('remove'))
  const body = html`<h1>Your account</h1>
${removed === undefined ? none : renderRemoval(removed, (passkeys ?? []).length === 1)}
${section('You', about)}${session === null ? none : section('Where you are signed in', table('Where you are signed in', ['Browser', 'Since', 'Last used', ''], browsers))}${times}${session === null || session.person.oidc !== null ? none : section('Passkeys', html`${table('Passkeys', heads, rows, { empty })}${add}`)}`
  return { title: 'Your account', body }
}

const renderRemoval = ({ id, name }: { readonly id: string; readonly name: string }, isLast: boolean): Html =>
  confirmation(
    `Remove the passkey “${name}”?${isLast ? ' It is your last one: after you sign out, you need a link from another admin or from the command line to sign in again.' : ''}`,
    button('/account/passkeys/remove', 'Remove the passkey', { fields: { passkey: id }, kind: 'danger' }),
    '/account',
  )

export async function removeOwnPasskey(visit: Visit): Promise<PageAnswer> {
  const passkey = visit.form.get('passkey') ?? ''
  const removed = await visit.call('account.remove_passkey', { params: { passkey } })
  if (!removed.ok && removed.error.code !== 'not_found') throw new PageFailed(removed.error)
  return { redirect: '/account', notice: 'passkey_removed' }
}

export async function endOwnSession(visit: Visit): Promise<PageAnswer> {
  const ended = await visit.call('account.end_session', { params: { session: visit.params.session ?? '' } })
  if (!ended.ok && ended.error.code !== 'not_found') throw new PageFailed(ended.error)
  return { redirect: '/account', notice: 'session_ended' }
}

export async function setTimes(visit: Visit): Promise<PageAnswer> {
  await visit.get('account.change', { body: { localTimes: visit.form.get('local') === 'yes' } })
  return { redirect: '/account', notice: 'times_changed' }
}
