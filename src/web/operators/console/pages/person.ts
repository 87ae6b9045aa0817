/** One person: role and apps, the ways to sign in, and disabling. */
import { listAll } from '../../../../management/list-all.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { PersonResource } from '../../../../management/people/people-resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { checkbox, newForm, readTexts } from '../form.ts'
import { age, button, confirmation, facts, hiddenFields, linkButton, section, table, time } from '../parts.ts'
import { type PageAnswer, PageFailed, type Visit } from '../visit.ts'
import { readSlugs } from './app-names.ts'
import { makeOnce, onceField } from './change.ts'
import { personMark, renderInvitation } from './people.ts'
import { permissionFields, readRole, readScope, scopeField, wordFaults } from './permission-fields.ts'
import { settingsPage } from './settings.ts'

const { role, scope } = permissionFields
const accessForm = newForm('access', { role, scope })

type PersonPageState = {
  readonly error?: OperationError | null
  readonly invited?: Answer<'person.link'>
}

const toAddress = ({ id }: PersonResource): string => `/settings/people/${id}`

export const showPerson = (visit: Visit): Promise<PageAnswer> => personPage(visit, {})

async function personPage(visit: Visit, { error = null, invited }: PersonPageState): Promise<PageAnswer> {
  const people = await listAll(visit.get, 'person.list', {})
  const person = people.find(({ id }) => id === visit.params.person)
  if (person === undefined) throw new PageFailed({ code: 'not_found', message: 'There is no such person.' })
  const slugs = await readSlugs(visit)
  const isOwn = person.id === visit.access.actor.id
  const saved = person.apps?.map((app) => slugs.get(app) ?? app) ?? null
  const shown = accessForm.show({ role: person.role, ...(error && readTexts(visit.form)) }, error)
  const access = html`<form method="post" action="${toAddress(person)}" class="stack">
${shown.field('role')}
${scopeField(accessForm.id, slugs, { chosen: error && visit.form.has('scope') ? readScope(visit) : saved, error })}
<div class="actions"><button class="main">Save</button></div>
</form>`
  const body = html`<p class="crumbs"><a href="/settings/people">People</a> › ${person.name}</p>
<div class="title"><h2>${person.name}</h2>${personMark(person)}</div>
${shown.problem}${invited === undefined ? none : renderInvitation(invited)}${await renderConfirmation(person, visit)}
${isOwn ? html`<p class="soft">This is you. Only another admin can change your role and apps; your passkeys are in <a href="/account">your account</a>.</p>` : section('Role and apps', access)}
${section('Signing in', renderSignIn(person, visit, { isOwn }))}
${person.disabledAt === null ? none : await renderMade(person, visit)}${isOwn ? none : section(person.disabledAt === null ? 'Disable' : 'Enable', renderEnd(person))}`
  return settingsPage(visit, 'People', body, error)
}

function renderSignIn(person: PersonResource, { now }: Visit, { isOwn }: { readonly isOwn: boolean }): Html {
  const { name, passkeys, provider } = person
  const about = facts([
    ['Last seen', age(person.lastSeenAt, now)],
    ['Invited', html`${time(person.createdAt)} by ${person.createdBy}`],
    ['Signs in with', provider === null ? null : new URL(provider).host],
    [
      'Unused link',
      person.openLink && html`${time(person.openLink.createdAt)}, until ${time(person.openLink.expiresAt)}`,
    ],
  ])
  if (provider !== null || isOwn) return about
  const rows = passkeys.map((passkey) => [
    html`<b>${passkey.name}</b>`,
    age(passkey.createdAt, now),
    age(passkey.lastUsedAt, now),
    linkButton(`${toAddress(person)}?remove=${encodeURIComponent(passkey.id)}#confirm`, 'Remove…'),
  ])
  const end = person.openLink === null ? none : button(`${toAddress(person)}/link/end`, 'Cancel the unused link')
  const link = html`<p class="soft">A new link signs ${name} in once, for example if a passkey is lost. Earlier links end.</p>
<div class="actions"><form method="post" action="${toAddress(person)}/link">${onceField()}<button>New link</button></form>${end}</div>`
  return html`${about}${table('Passkeys', ['Passkey', 'Added', 'Last used', ''], rows, { empty: 'No passkey yet.' })}
${person.disabledAt === null ? link : none}`
}

/** Tokens and keys of a person who is disabled, which keep working. */
async function renderMade({ id, name }: PersonResource, { get }: Visit): Promise<Html> {
  const { tokens, keys } = await get('person.made', { params: { person: id } })
  if (tokens.length + keys.length === 0) return none
  const items = [
    ...tokens.map((token) => html`<li>the token ${token.name} (<a href="/settings/tokens">Tokens</a>)</li>`),
    ...keys.map((key) => html`<li>the delivery key ${key.name ?? key.id} of its app</li>`),
  ]
  return section('Still working', html`<p>${name} created these, and they were not revoked:</p><ul>${items}</ul>`)
}

const renderEnd = (person: PersonResource): Html =>
  person.disabledAt === null
    ? html`<p>Disabling signs ${person.name} out everywhere and refuses new sign-ins.</p>
${linkButton(`${toAddress(person)}?disable=yes#confirm`, 'Disable…')}`
    : html`<p>${person.name} can then sign in again, with a passkey or a new link.</p>
${button(toAddress(person), 'Enable', { fields: { disabled: 'no' } })}`

async function renderConfirmation(person: PersonResource, { get, query }: Visit): Promise<Html> {
  const passkey = person.passkeys.find(({ id }) => id === query.get('remove'))
  if (passkey !== undefined)
    return confirmation(
      `Remove ${person.name}'s passkey “${passkey.name}”?`,
      button(`${toAddress(person)}/passkeys/remove`, 'Remove the passkey', {
        fields: { passkey: passkey.id },
        kind: 'danger',
      }),
      toAddress(person),
    )
  if (!query.has('disable') || person.disabledAt !== null) return none
  const { tokens, keys } = await get('person.made', { params: { person: person.id } })
  const made = [
    ...tokens.map(({ id, name }) => checkbox(`revoke-${id}`, `Revoke the token ${name}`, true)),
    ...keys.map(({ id, name }) =>
      checkbox(`revoke-${id}`, `Revoke the delivery key ${name ?? id}: programs can no longer send with it`, false),
    ),
  ]
  const form = html`<form method="post" action="${toAddress(person)}" class="stack">
${hiddenFields({ disabled: 'yes' })}
${made.length === 0 ? none : html`<p>${person.name} created these, and they keep working unless you revoke them:</p>${made}`}
<button class="danger">Disable ${person.name}</button></form>`
  return confirmation(
    `Disable ${person.name}? All of their sessions and links stop working immediately.`,
    form,
    toAddress(person),
  )
}

export async function linkPerson(visit: Visit): Promise<PageAnswer> {
  const input = { params: { person: visit.params.person ?? '' }, body: {} }
  const made = await makeOnce(visit, () => visit.call('person.link', input))
  return personPage(visit, made.ok ? { invited: made.value } : { error: made.error })
}

export async function endLink(visit: Visit): Promise<PageAnswer> {
  const person = visit.params.person ?? ''
  const ended = await visit.call('person.end_link', { params: { person } })
  if (!ended.ok) return personPage(visit, { error: ended.error })
  return { redirect: `/settings/people/${encodeURIComponent(person)}`, notice: 'link_ended' }
}

/** Role and apps, or the status: the form says which. */
export async function changePerson(visit: Visit): Promise<PageAnswer> {
  const { form, params } = visit
  const person = params.person ?? ''
  const disabled = form.get('disabled')
  const apps = readScope(visit)
  const wanted = readRole(visit)
  const access = { ...(wanted && { role: wanted }), ...(form.has('scope') && { apps: apps && [...apps] }) }
  const body = disabled === null ? access : { disabled: disabled === 'yes' }
  const changed = await visit.call('person.change', { params: { person }, body })
  if (!changed.ok) return personPage(visit, { error: wordFaults(changed.error, visit) })
  if (disabled === 'yes') await revokeMade(visit, person)
  return {
    redirect: `/settings/people/${encodeURIComponent(person)}`,
    notice: disabled === null ? 'person_changed' : disabled === 'yes' ? 'person_disabled' : 'person_enabled',
  }
}

/** Revokes what the form names, as far as the person made it. */
async function revokeMade({ form, get }: Visit, person: string): Promise<void> {
  const { tokens, keys } = await get('person.made', { params: { person } })
  const isNamed = ({ id }: { readonly id: string }) => form.get(`revoke-${id}`) === 'yes'
  for (const { id } of tokens.filter(isNamed)) await get('token.revoke', { params: { token: id } })
  for (const { id } of keys.filter(isNamed)) await get('key.revoke', { params: { key: id } })
}

export async function removePasskey(visit: Visit): Promise<PageAnswer> {
  const { form, params } = visit
  const person = params.person ?? ''
  const passkey = form.get('passkey') ?? ''
  const removed = await visit.call('person.remove_passkey', { params: { person, passkey } })
  if (!removed.ok && removed.error.code !== 'not_found') throw new PageFailed(removed.error)
  return { redirect: `/settings/people/${encodeURIComponent(person)}`, notice: 'passkey_removed' }
}
