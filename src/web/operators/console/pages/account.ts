/** The account of the person who is signed in: what it may do, and its passkeys. */
import { html, none } from '../../../../templates/html.ts'
import { age, button, facts, field, section, table, time } from '../parts.ts'
import { type PageAnswer, PageFailed, type Visit } from '../visit.ts'
import { describeScope, readSlugs } from './app-names.ts'

export async function showAccount(visit: Visit): Promise<PageAnswer> {
  const { session } = visit
  const slugs = await readSlugs(visit)
  const { apps, expiresAt, name, passkeys, role } = await visit.get('whoami', {})
  const rows = (passkeys ?? []).map(({ id, name, createdAt, lastUsedAt }) => [
    html`<b>${name}</b>`,
    age(createdAt, visit.now),
    age(lastUsedAt, visit.now),
    button('/account/passkeys/remove', 'Remove', { fields: { passkey: id } }),
  ])
  const about = facts([
    ['Name', name],
    ['Role', role],
    ['For', describeScope(apps, slugs)],
    ['Session until', expiresAt === null ? null : time(expiresAt)],
  ])
  const add = html`<form class="filters" id="new-passkey">
${field('passkey-name', {
  label: 'Name of a new passkey',
  attributes: html`maxlength="60" placeholder="laptop"`,
  value: 'this device',
})}
<button type="button" class="main">Add a passkey</button>
<p class="fault" role="alert"></p>
</form>
<noscript><p class="soft">Adding a passkey needs JavaScript, because browsers offer passkeys to scripts alone.</p>
</noscript>`
  const heads = ['passkey', 'added', 'last used', 'change']
  const empty = 'No passkey yet: only links from the command line or an admin sign you in.'
  const body = html`<h1>Your account</h1>
${section('You', about)}${session === null || session.person.oidc !== null ? none : section('Passkeys', html`${table('Passkeys', heads, rows, { empty })}${add}`)}`
  return { title: 'Your account', body }
}

export async function removeOwnPasskey(visit: Visit): Promise<PageAnswer> {
  const passkey = visit.form.get('passkey') ?? ''
  const removed = await visit.call('account.remove_passkey', { params: { passkey } })
  if (!removed.ok && removed.error.code !== 'not_found') throw new PageFailed(removed.error)
  return { redirect: '/account', notice: 'passkey_removed' }
}
