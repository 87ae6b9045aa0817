/** People who may sign in: the list, invitations, and the page of one. */
import { listAll } from '../../../../management/list-all.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { Answer } from '../../../../management/operations.ts'
import type { PersonResource } from '../../../../management/people/people-resources.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { newForm, readTexts } from '../form.ts'
import { age, mark, newSecret, section, table } from '../parts.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { describeScope, readSlugs } from './app-names.ts'
import { makeOnce, onceField } from './change.ts'
import { permissionFields, readRole, readScope, scopeField, wordFaults } from './permission-fields.ts'
import { settingsPage } from './settings.ts'

const inviteForm = newForm('invite', permissionFields)

type PeoplePageState = {
  readonly error?: OperationError | null
  readonly invited?: Answer<'person.invite'>
}

export const showPeople = (visit: Visit): Promise<PageAnswer> => peoplePage(visit, {})

async function peoplePage(visit: Visit, { error = null, invited }: PeoplePageState): Promise<PageAnswer> {
  const items = await listAll(visit.get, 'person.list', {})
  const slugs = await readSlugs(visit)
  const rows = (isDisabled: boolean) =>
    items
      .filter(({ disabledAt }) => (disabledAt !== null) === isDisabled)
      .map((person) => [
        html`<a href="/settings/people/${person.id}">${person.name}</a>${
          person.id === visit.access.actor.id ? html` <span class="soft">(you)</span>` : none
        }`,
        html`${person.role}<br><span class="soft">${describeScope(person.apps, slugs)}</span>`,
        personMark(person),
        describeWays(person),
        age(person.lastSeenAt, visit.now),
      ])
  const disabled = rows(true)
  const shown = inviteForm.show({ role: 'reader', ...(error && readTexts(visit.form)) }, error)
  const form = html`<form method="post" action="/settings/people" class="stack">${onceField()}
${shown.field('name')}
${shown.field('role')}
${scopeField(inviteForm.id, slugs, { chosen: error && readScope(visit), error })}
<div class="actions"><button class="main">Invite</button></div>
</form>`
  const heads = ['Person', 'Role', 'Status', 'Signs in with', 'Last seen']
  const empty = 'Nobody has been invited yet.'
  return settingsPage(
    visit,
    'People',
    html`${shown.problem}${invited === undefined ? none : renderInvitation(invited)}
${section('People', html`${table('People', heads, rows(false), { empty })}${disabled.length === 0 ? none : html`<details><summary>Disabled (${disabled.length})</summary>${table('Disabled people', heads, disabled)}</details>`}`)}
${section('Invite somebody', form)}`,
    error,
  )
}

export function personMark({ disabledAt, lastSeenAt }: PersonResource): Html {
  if (disabledAt !== null) return mark('off', 'disabled')
  return lastSeenAt === null ? mark('wait', 'invited') : mark('quiet', 'active')
}

function describeWays({ passkeys, provider }: PersonResource): string {
  if (provider !== null) return new URL(provider).host
  return passkeys.length === 0 ? 'one-time links' : passkeys.map(({ name }) => name).join(', ')
}

export const renderInvitation = ({ name, link, linkExpiresAt }: Answer<'person.invite'>): Html =>
  newSecret(
    `Give this link to ${name}`,
    `${isLocalLink(link) ? 'This link works only on this machine or through SSH port forwarding, because POSTERN_CONSOLE_URL is not an https address. ' : ''}It signs ${name} in once, before ${linkExpiresAt.slice(0, 16).replace('T', ' ')} UTC, and is shown only this once. After adding a passkey, ${name} needs no further link.`,
    link,
  )

const isLocalLink = (link: string): boolean => new URL(link).protocol === 'http:'

export async function invitePerson(visit: Visit): Promise<PageAnswer> {
  const apps = readScope(visit)
  const body = {
    name: (visit.form.get('name') ?? '').trim(),
    role: readRole(visit) ?? 'reader',
    ...(apps && { apps: [...apps] }),
  }
  const invited = await makeOnce(visit, () => visit.call('person.invite', { body }))
  return peoplePage(visit, invited.ok ? { invited: invited.value } : { error: wordFaults(invited.error, visit) })
}
