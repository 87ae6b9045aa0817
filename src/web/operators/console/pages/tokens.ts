/** Tokens of the management API. */
import { hasEnded } from '../../../../domain/bearer.ts'
import { listAll } from '../../../../management/operation/list-all.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import { html, none } from '../../../../templates/html.ts'
import { age, button, mark, newSecret, section, table, time } from '../parts.ts'
import type { PageAnswer, Visit } from '../visit.ts'
import { describeScope, readSlugs } from './app-names.ts'
import { inPermissionForm, permissionFields, readPermission } from './permission-fields.ts'
import { settingsPage } from './settings.ts'

export const showTokens = (visit: Visit): Promise<PageAnswer> => tokensPage(visit, {})

type NewToken = { readonly name: string; readonly token: string }

async function tokensPage(
  visit: Visit,
  { error = null, made }: { readonly error?: OperationError | null; readonly made?: NewToken },
): Promise<PageAnswer> {
  const items = await listAll(visit.get, 'token.list', {})
  const slugs = await readSlugs(visit)
  const rows = items.map(
    ({ id, name, role, apps, createdAt, createdBy, expiresAt, revokedAt, lastUsedAt }) => {
      const ended = hasEnded({ revokedAt, expiresAt }, visit.now)
      const state = ended
        ? mark('off', '–', revokedAt === null ? 'expired' : 'revoked')
        : html`${mark('good', '●', 'active')} until ${time(expiresAt)}`
      return [
        html`<b>${name}</b><br><code class="soft">${id}</code>`,
        html`${role}<br><span class="soft">${describeScope(apps, slugs)}</span>`,
        state,
        html`${age(createdAt, visit.now)}<br><span class="soft">by ${createdBy}</span>`,
        age(lastUsedAt, visit.now),
        ended ? none : button(`/settings/tokens/${id}/revoke`, 'Revoke'),
      ]
    },
  )
  const heads = ['token', 'role', 'status', 'created', 'last used', 'change']
  const empty =
    'No token yet. A token lets a program, or a command on another machine, call the management API.'
  const form = html`<form method="post" action="/settings/tokens" class="filters">
${permissionFields(visit, slugs, error)}
<button class="main">Create a token</button>
</form>`
  return settingsPage(
    visit,
    'Tokens',
    html`${made === undefined ? none : newSecret(`Copy the token ${made.name} now`, 'It is shown this once; only its hash is kept. It works for 90 days.', made.token)}
${section('Tokens of the management API', html`${table('Tokens', heads, rows, { empty })}${form}`)}`,
    inPermissionForm(error),
  )
}

export async function createToken(visit: Visit): Promise<PageAnswer> {
  const body = { name: (visit.form.get('name') ?? '').trim(), ...readPermission(visit) }
  const made = await visit.call('token.create', { body })
  return tokensPage(visit, made.ok ? { made: made.value } : { error: made.error })
}

export async function revokeToken(visit: Visit): Promise<PageAnswer> {
  await visit.get('token.revoke', { params: { token: visit.params.token ?? '' } })
  return { redirect: '/settings/tokens', notice: 'token_revoked' }
}
