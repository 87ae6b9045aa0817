/** Tokens of the management API. */
import { hasEnded } from '../../../../domain/bearer.ts'
import { dayMs } from '../../../../domain/duration.ts'
import { listAll } from '../../../../management/list-all.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import { html, none } from '../../../../templates/html.ts'
import { newForm, readTexts } from '../form.ts'
import { age, button, confirmation, linkButton, mark, newSecret, section, table, time } from '../parts.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { describeScope, readSlugs } from './app-names.ts'
import { permissionFields, readRole, readScope, scopeField, wordFaults } from './permission-fields.ts'
import { settingsPage } from './settings.ts'

const lives = [
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', '1 year'],
] as const
const usualLife = '90'

const newTokenForm = newForm('token', {
  ...permissionFields,
  days: { label: 'Valid for', choices: lives, faults: ['expiresAt'] },
})

export const showTokens = (visit: Visit): Promise<PageAnswer> => tokensPage(visit, {})

type NewToken = { readonly name: string; readonly token: string; readonly expiresAt: string }

async function tokensPage(
  visit: Visit,
  { error = null, made }: { readonly error?: OperationError | null; readonly made?: NewToken },
): Promise<PageAnswer> {
  const items = await listAll(visit.get, 'token.list', {})
  const slugs = await readSlugs(visit)
  const rows = items.map(({ id, name, role, apps, createdAt, createdBy, expiresAt, revokedAt, lastUsedAt }) => {
    const ended = hasEnded({ revokedAt, expiresAt }, visit.now)
    const state = ended ? mark('off', revokedAt === null ? 'expired' : 'revoked') : html`until ${time(expiresAt)}`
    return [
      html`<b>${name}</b><br><code class="soft">${id}</code>`,
      html`${role}<br><span class="soft">${describeScope(apps, slugs)}</span>`,
      state,
      html`${age(createdAt, visit.now)}<br><span class="soft">by ${createdBy}</span>`,
      age(lastUsedAt, visit.now),
      ended ? none : linkButton(`/settings/tokens?revoke=${id}#confirm`, 'Revoke…', name),
    ]
  })
  const heads = ['Token', 'Role', 'Status', 'Created', 'Last used', '']
  const empty = 'No token yet. A token lets a program, or a command on another machine, call the management API.'
  // After a token was made, the form is for another one.
  const shown = newTokenForm.show({ role: 'reader', days: usualLife, ...(error && readTexts(visit.form)) }, error)
  const form = html`<form method="post" action="/settings/tokens" class="stack">
${shown.field('name')}
${shown.field('role')}
${scopeField(newTokenForm.id, slugs, { chosen: error && readScope(visit), error })}
${shown.field('days')}
<div class="actions"><button class="main">Create a token</button></div>
</form>`
  const revoked = items.find(({ id }) => id === visit.query.get('revoke'))
  return settingsPage(
    visit,
    'Tokens',
    html`${shown.problem}
${made === undefined ? none : newSecret(`Copy the token “${made.name}” now`, html`It is shown only this once; only its hash is kept. It works until ${time(made.expiresAt)}.`, made.token)}
${
  revoked === undefined
    ? none
    : confirmation(
        `Revoke the token “${revoked.name}”? Requests with it are refused at once. This cannot be undone.`,
        button(`/settings/tokens/${revoked.id}/revoke`, 'Revoke the token', { kind: 'danger' }),
        '/settings/tokens',
      )
}
${section('Management API tokens', table('Tokens', heads, rows, { empty }))}
${section('New token', form)}`,
    error,
  )
}

export async function createToken(visit: Visit): Promise<PageAnswer> {
  const { form, now } = visit
  const [days] = lives.find(([value]) => value === form.get('days')) ?? [usualLife]
  const apps = readScope(visit)
  const body = {
    name: (form.get('name') ?? '').trim(),
    role: readRole(visit) ?? 'reader',
    ...(apps && { apps: [...apps] }),
    expiresAt: new Date(now + Number(days) * dayMs).toISOString(),
  }
  const made = await visit.call('token.create', { body })
  return tokensPage(visit, made.ok ? { made: made.value } : { error: wordFaults(made.error, visit) })
}

export async function revokeToken(visit: Visit): Promise<PageAnswer> {
  await visit.get('token.revoke', { params: { token: visit.params.token ?? '' } })
  return { redirect: '/settings/tokens', notice: 'token_revoked' }
}
