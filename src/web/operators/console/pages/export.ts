/** The items of a list as a file. The audit records who exported them. */
import { toCsv } from '../../../../domain/csv.ts'
import type { CallInput } from '../../../../management/operations.ts'
import { type Html, html } from '../../../../templates/html.ts'
import { hiddenFields } from '../parts.ts'
import type { PageAnswer, Visit } from '../visit.ts'

type Exported = CallInput<'list.export'>['body']
type ListName = Exported['list']

/** Below a list. @param filters of the operation that lists it */
export const exportForm = (list: ListName, filters: object): Html =>
  html`<form method="post" action="/export" class="export"><span class="soft">Export this list:</span>
${hiddenFields({ list, filters: JSON.stringify(filters) })}<button class="small" name="format" value="csv">CSV</button>
<button class="small" name="format" value="json">JSON</button></form>`

export async function exportList(visit: Visit): Promise<PageAnswer> {
  const { form, now } = visit
  const list = (form.get('list') ?? '') as ListName
  const { items } = await visit.get('list.export', { body: { list, filters: readFilters(form.get('filters')) } })
  const name = `postern-${list}-${new Date(now).toISOString().slice(0, 19).replaceAll(':', '')}`
  // Excel takes a file for UTF-8 only if it begins so.
  return form.get('format') === 'json'
    ? { file: `${name}.json`, type: 'application/json', text: JSON.stringify(items, null, 2) }
    : { file: `${name}.csv`, type: 'text/csv; charset=utf-8', text: `\ufeff${toCsv(items)}` }
}

/** The operation checks them. */
function readFilters(text: string | null): NonNullable<Exported['filters']> {
  try {
    return JSON.parse(text ?? '{}')
  } catch {
    return {}
  }
}
