/** The fields that give a permission: a name, a role and a scope. Tokens and people have them. */
import { type Role, roles } from '../../../../domain/operator/management-token.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import { type Html, html, none } from '../../../../templates/html.ts'
import { checkbox } from '../form.ts'
import type { Visit } from '../visit.ts'
import type { Slugs } from './app-names.ts'

const roleTexts: Readonly<Record<Role, string>> = {
  reader: 'reader: read only',
  operator: 'operator: keys, emails, links, branding',
  admin: 'admin: everything',
}
const roleChoices = roles.map((role) => [role, roleTexts[role]] as const)

export const permissionFields = {
  name: {
    label: 'Name',
    attributes: html`required maxlength="100" autocomplete="off"`,
    faults: ['name_taken'],
  },
  role: { label: 'Role', choices: roleChoices },
  scope: { label: 'Access to', faults: ['apps'] },
} as const

/** The slugs of the apps; null for the whole service. */
type Scope = readonly string[] | null

/** The whole service, or some apps, whose names are shown once they are wanted: that needs no script. */
export function scopeField(
  formId: string,
  slugs: Slugs,
  { chosen, error }: { readonly chosen: Scope; readonly error: OperationError | null },
): Html {
  const [id, names] = [`${formId}-scope`, [...slugs.values()]]
  const fault = (error?.issues ?? []).find(({ field }) => field.startsWith('apps'))
  const choice = (value: 'all' | 'apps', label: string) =>
    html`<div class="check"><input type="radio" id="${id}-${value}" name="scope" value="${value}"${
      (value === 'all') === (chosen === null) ? html` checked` : none
    }><label for="${id}-${value}">${label}</label></div>`
  return html`<fieldset class="field scope" id="${id}"${fault === undefined ? none : html` aria-describedby="${id}-fault" aria-invalid="true" tabindex="-1"`}>
<legend>Access to</legend>
${choice('all', 'the whole service')}
${names.length === 0 ? none : choice('apps', 'some apps')}
<div class="apps">${names.map((slug) => checkbox('app', slug, chosen?.includes(slug) ?? false, slug))}</div>
${fault === undefined ? none : html`<span class="fault" id="${id}-fault">${fault.message}</span>`}</fieldset>`
}

export const readScope = ({ form }: Visit): Scope => (form.get('scope') === 'apps' ? form.getAll('app') : null)

/** An error of such a form: that no app was chosen is said in the words of the form. */
export function wordFaults(error: OperationError, visit: Visit): OperationError {
  if (readScope(visit)?.length !== 0) return error
  const issues = (error.issues ?? []).map((issue) =>
    issue.field === 'apps' ? { ...issue, message: 'Choose at least one app.' } : issue,
  )
  return { ...error, issues }
}

export const readRole = ({ form }: Visit): Role | undefined => roles.find((role) => role === form.get('role'))
