/**
 * Exports a list, for reports and other programs: many pages of it in one answer. The audit says who exported
 * what.
 */
import { type TSchema, Type } from 'typebox'
import { listRefusals } from '../apps/refusals.ts'
import { listEmails } from '../emails/emails.ts'
import { checkSchema } from '../operation/check-schema.ts'
import { operation } from '../operation/operation.ts'
import { done, invalid, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { listSuppressions } from '../suppressions/suppressions.ts'
import { listAudit } from './list-audit.ts'

/** A spreadsheet opens it, and the answer stays below 10 MB. */
const exportedMax = 10_000
const pageMax = 200

const lists = { emails: listEmails, refusals: listRefusals, suppressions: listSuppressions, audit: listAudit }
export const exportedLists = Object.keys(lists) as (keyof typeof lists)[]

type Page = { readonly items: readonly object[]; readonly next: string | null }
/** All lists have this in common; `checkSchema` checks the filters of each. */
type ListOperation = {
  readonly query: TSchema
  run(context: object, input: object, target: null): Promise<Result<Page>> | Result<Page>
}

export const exportList = operation({
  method: 'POST',
  path: '/v1/export',
  role: 'reader',
  costly: true,
  summary: `Answers with the newest ${exportedMax} items of a list, and writes an audit entry.`,
  body: closed({
    list: Type.Enum(exportedLists),
    filters: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: 'Those of the list, without `cursor` and `limit`.' }),
    ),
  }),
  answer: closed({
    items: Type.Array(Type.Record(Type.String(), Type.Unknown()), { description: 'As the list answers with them.' }),
    complete: Type.Boolean({ description: `False if the list holds more than ${exportedMax}.` }),
  }),
  errors: ['not_found'],
  async run(context, { body: { filters = {}, list } }) {
    const { query: schema, run } = lists[list] as ListOperation
    const items: object[] = []
    let cursor: string | null = null
    do {
      const query = { ...filters, limit: pageMax, ...(cursor !== null && { cursor }) }
      const checked = checkSchema(schema, query)
      if (!checked.ok) return invalid(checked.issues)
      const page: Result<Page> = await run(context, { params: {}, query, body: undefined }, null)
      if (!page.ok) return page
      items.push(...page.value.items)
      cursor = page.value.next
    } while (cursor !== null && items.length < exportedMax)
    const action = { action: 'list.export', app: null, target: list, before: null, after: filters } as const
    await context.store.recordAction(action, context.access.actor)
    return done({ items: items.slice(0, exportedMax) as Record<string, unknown>[], complete: cursor === null })
  },
})
