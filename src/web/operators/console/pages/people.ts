/** People who may sign in. */

import { roles } from '../../../../domain/operator/management-token.ts'
import { listAll } from '../../../../management/operation/list-all.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { PersonResource } from '../../../../management/people/people-resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import {
  age,
  button,
  checkbox,
  confirmation,
  hiddenFields,
  mark,
  newSecret,
  section,
  table,
} from '../parts.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { describeScope, readSlugs } from './app-names.ts'
import { makeOnce, onceField } from './change.ts'
import { inPermissionForm, permissionFields, readPermission } from './permission-fields.ts'
import { settingsPage } from './settings.ts'

export const showPeople = (visit: Visit): Promise<PageAnswer> => peoplePage(visit, {})

type PeoplePageState = { readonly error?: OperationError | null; readonly invited?: Answer<'person.invite'> }

async function peoplePage(visit: Visit, { error = null, invited }: PeoplePageState): Promise<PageAnswer> {
  const items = await listAll(visit.get, 'person.list', {})
  const slugs = await readSlugs(visit)
  const rows = items.map((person) => [
    html`<b>${person.name}</b><br><code class="soft">${person.id}</code>`,
    html`${person.role}<br><span class="soft">${describeScope(person.apps, slugs)}</span>`,
    person.disabledAt === null ? mark('good', '●', 'active') : mark('off', '○', 'disabled'),
    renderWays(person),
    age(person.lastSeenAt, visit.now),
    person.id === visit.access.actor.id ? html`<span class="soft">this is you</span>` : renderActions(person),
  ])
  const heads = ['person', 'role', 'status', 'signs in by', 'last seen', 'change']
  const form = html`<form method="post" action="/settings/people" class="filters">
${permissionFields(visit, slugs, error)}
<button class="main">Invite</button>
</form>`
  const made = invited === undefined ? none : invitation(invited)
  const asked = await disabling(items, visit)
  const empty = 'Nobody has been invited yet.'
  return settingsPage(
    visit,
    'People',
    html`${made}${asked}${section('People', html`${table('People', heads, rows, { empty })}${form}`)}`,
    inPermissionForm(error),
  )
}

/** Asks before somebody loses access, and offers to end what the person made. */
async function disabling(people: readonly PersonResource[], { get, query }: Visit): Promise<Html> {
  const person = people.find(({ id }) => id === query.get('disable'))
  if (person === undefined) return none
  const { tokens, keys } = await get('person.made', { params: { person: person.id } })
  const made = [
    ...tokens.map(({ id, name }) => checkbox(`revoke-${id}`, `Revoke the token ${name}`, true)),
    ...keys.map(({ id, name }) =>
      checkbox(
        `revoke-${id}`,
        `Revoke the delivery key ${name ?? id}: its app then sends nothing with it`,
        false,
      ),
    ),
  ]
  const form = html`<form method="post" action="/settings/people/${person.id}" class="stack">
${hiddenFields({ disabled: 'yes' })}
${made.length === 0 ? none : html`<p>${person.name} made this, and it goes on:</p>${made}`}
<button class="danger">Disable ${person.name}</button></form>`
  const question = `Disable ${person.name}? All sessions and links of ${person.name} end at once.`
  return confirmation(question, form, '/settings/people')
}

const invitation = ({ name, link, linkExpiresAt }: Answer<'person.invite'>): Html =>
  newSecret(
    `Give this link to ${name}`,
    `${isLocalLink(link) ? 'It works on this machine alone, or through a forwarded port: POSTERN_CONSOLE_URL gives the console a name for others. ' : ''}It signs ${name} in once, until ${linkExpiresAt.slice(0, 16).replace('T', ' ')} UTC, and is shown this once. With a passkey added to the account, no further link is needed.`,
    link,
  )

const isLocalLink = (link: string): boolean => new URL(link).protocol === 'http:'

const renderWays = ({ passkeys, provider }: PersonResource): Html => {
  if (provider !== null) return html`${new URL(provider).host}`
  const names = passkeys.map(({ name }) => name).join(', ')
  return passkeys.length === 0 ? html`links alone` : html`passkeys: ${names}`
}

function renderActions({ id, disabledAt, role }: PersonResource): Html {
  const path = `/settings/people/${id}`
  if (disabledAt !== null) return button(path, 'Enable', { fields: { disabled: 'no' } })
  const others = roles.filter((other) => other !== role)
  return html`<div class="actions">
<form method="post" action="${path}/link">${onceField()}
<button>New link</button>
</form>
${others.map((other) => button(path, `Make ${other}`, { fields: { role: other } }))}<a class="button" href="/settings/people?disable=${id}#confirm">Disable…</a></div>`
}

export async function invitePerson(visit: Visit): Promise<PageAnswer> {
  const body = { name: (visit.form.get('name') ?? '').trim(), ...readPermission(visit) }
  const invited = await visit.call('person.invite', { body })
  return peoplePage(visit, invited.ok ? { invited: invited.value } : { error: invited.error })
}

export async function linkPerson(visit: Visit): Promise<PageAnswer> {
  const input = { params: { person: visit.params.person ?? '' }, body: {} }
  const made = await makeOnce(visit, () => visit.call('person.link', input))
  return peoplePage(visit, made.ok ? { invited: made.value } : { error: made.error })
}

export async function changePerson(visit: Visit): Promise<PageAnswer> {
  const { form, params } = visit
  const role = roles.find((known) => known === form.get('role'))
  const disabled = form.get('disabled')
  const body = { ...(role && { role }), ...(disabled !== null && { disabled: disabled === 'yes' }) }
  const person = params.person ?? ''
  await visit.get('person.change', { params: { person }, body })
  if (disabled === 'yes') await revokeMade(visit, person)
  return { redirect: '/settings/people', notice: 'person_changed' }
}

/** Revokes what the form names, as far as the person made it. */
async function revokeMade({ form, get }: Visit, person: string): Promise<void> {
  const { tokens, keys } = await get('person.made', { params: { person } })
  const isNamed = ({ id }: { readonly id: string }) => form.get(`revoke-${id}`) === 'yes'
  for (const { id } of tokens.filter(isNamed)) await get('token.revoke', { params: { token: id } })
  for (const { id } of keys.filter(isNamed)) await get('key.revoke', { params: { key: id } })
}
