/** The fields that give a permission: a name, a role and a scope. Tokens and people have them. */
import { type Role, roles } from '../../../../domain/operator/management-token.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import { type Html, html } from '../../../../templates/html.ts'
import { field, inForm, select } from '../parts.ts'
import type { Visit } from '../visit.ts'
import type { Slugs } from './app-names.ts'

const roleTexts: Readonly<Record<Role, string>> = {
  reader: 'reader: looks, changes nothing',
  operator: 'operator: keys, emails, links, branding',
  admin: 'admin: everything',
}
const roleChoices = roles.map((role) => [role, roleTexts[role]] as const)

/** Name, role and scope, for tokens and people. */
export function permissionFields({ form }: Visit, slugs: Slugs, refused: OperationError | null): Html {
  const error = inPermissionForm(refused)
  const apps = [
    ['', 'the whole service'],
    ...[...slugs.values()].map((slug) => [slug, slug] as const),
  ] as const
  return html`${field('name', { label: 'Name', value: form.get('name') ?? '', attributes: html`required maxlength="100"`, error })}
${select('role', roleChoices, { label: 'Role', value: form.get('role') ?? 'reader', error })}
${select('app', apps, { label: 'For', value: form.get('app') ?? '', error })}`
}

export const inPermissionForm = (error: OperationError | null): OperationError | null =>
  error && inForm(error, (field) => (field.startsWith('apps') ? 'app' : field))

export const readPermission = ({ form }: Visit) => ({
  role: roles.find((role) => role === form.get('role')) ?? 'reader',
  ...(form.get('app') ? { apps: [form.get('app') ?? ''] } : {}),
})
