/** The questions of the page of keys, before a key is replaced, revoked, or used from other addresses. */
import { describeDuration } from '../../../../domain/duration.ts'
import type { OperationError } from '../../../../management/operation/result.ts'
import type { AppResource, KeyResource } from '../../../../management/resources.ts'
import { type Html, html } from '../../../../templates/html.ts'
import { newForm } from '../form.ts'
import { button, confirmation, linkButton } from '../parts.ts'
import type { Visit } from '../visit.ts'
import { onceField } from './change.ts'

export const isReplaced = ({ id }: KeyResource, keys: readonly KeyResource[]): boolean =>
  keys.some(({ replaces }) => replaces === id)

export const networksField = {
  label: 'Addresses that may use it',
  faults: ['networks'],
  attributes: html`maxlength="1000" placeholder="all, or 192.0.2.0/24" autocomplete="off"`,
}

/** Null for all addresses. */
export function readNetworks(form: URLSearchParams): string[] | null {
  const networks = (form.get('networks') ?? '').split(/[\s,]+/).filter((network) => network !== '')
  return networks.length === 0 ? null : networks
}

const networksForm = newForm('key-networks', { networks: networksField })

function askNetworks(
  { id, name, networks }: KeyResource,
  path: string,
  { error, form }: { readonly error: OperationError | undefined; readonly form: URLSearchParams },
): Html {
  const shown = networksForm.show({ networks: form.get('networks') ?? networks?.join(', ') ?? '' }, error)
  return confirmation(
    `Which addresses may use the key ${name ?? id}? Requests from others are refused. If the field is empty, all may use it.`,
    html`${shown.problem}<form method="post" action="${path}/${id}/networks" class="filters">
${shown.field('networks')}
<button class="main">Save the addresses</button></form>`,
    path,
  )
}

export const graces = [
  ['0', 'At once, because it has leaked'],
  ['3600', 'After 1 hour'],
  ['86400', 'After 1 day'],
  ['604800', 'After 7 days'],
] as const

const replaceForm = newForm('replace', {
  grace: { label: 'The old key stops working', choices: graces, faults: ['graceSeconds'] },
})

type Asked = {
  /** The key whose networks were refused. */
  readonly changed: string | undefined
  readonly error: OperationError | undefined
  readonly items: readonly KeyResource[]
  readonly visit: Visit
}

/** The question of the page: what is to be done with a key. */
export function renderKeyQuestion(
  { slug }: AppResource,
  confirmed: KeyResource,
  { changed, error, items, visit: { form, now, query } }: Asked,
): Html {
  const { hook, id, lastUsedAt, name } = confirmed
  const path = `/apps/${slug}/keys`
  const used =
    lastUsedAt === null
      ? 'It has never been used.'
      : `It was last used ${describeDuration(now - Date.parse(lastUsedAt))} ago.`
  const replaceBy = (
    grace: string,
  ) => html`<form method="post" action="${path}/${id}/replace" class="filters">${onceField()}
${replaceForm.show({ grace }).field('grace')}
<button class="main">Replace the key</button>
</form>`
  if ((query.get('networks') ?? changed) === id) return askNetworks(confirmed, path, { error, form })
  if (query.get('revoke') === id) {
    const revoke = button(`${path}/${id}/revoke`, 'Revoke the key', { kind: 'danger' })
    const refused = 'Requests with a revoked key are refused at once, and this cannot be undone.'
    if (isReplaced(confirmed, items))
      return confirmation(`Revoke the old key ${name ?? id}? ${used} ${refused}`, revoke, path)
    // That of an auth server is replaced where the server is connected.
    const replace = hook === null ? replaceBy('0') : linkButton(`/apps/${slug}/connect/${hook}`, 'Replace it there…')
    return confirmation(
      `Revoke the key ${name ?? id}, or replace it? ${used} ${refused} If it has leaked, replace it, and choose how long the app has to change to the new key.`,
      html`${replace}${revoke}`,
      path,
    )
  }
  return confirmation(
    `Replace the key ${name ?? id}? ${used} A new key with the same name is created and shown once.`,
    replaceBy('86400'),
    path,
  )
}
