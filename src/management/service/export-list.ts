/**
 * Exports a list, for reports and other programs: many pages of it in one answer. The audit says who exported
 * what.
 */
import { type TSchema, Type } from 'typebox'
import { listRefusals } from '../apps/refusals.ts'
import { listEmails } from '../emails/emails.ts'
import { checkSchema } from '../operation/check-schema.ts'
import { completeIds } from '../operation/complete-ids.ts'
import { chooseApps } from '../operation/find-target.ts'
import { operation } from '../operation/operation.ts'
import { done, invalid, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { listSuppressions } from '../suppressions/suppressions.ts'
import { listAudit } from './list-audit.ts'

/** A spreadsheet opens it. */
const exportedMax = 10_000
const pageMax = 200
/** Filters that match little read much for few items. */
const exportMs = 20_000

const lists = { emails: listEmails, refusals: listRefusals, suppressions: listSuppressions, audit: listAudit }

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
    list: Type.Enum(Object.keys(lists) as (keyof typeof lists)[]),
    filters: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: 'Those of the list, without `cursor` and `limit`.' }),
    ),
  }),
  answer: closed({
    items: Type.Array(Type.Record(Type.String(), Type.Unknown()), { description: 'As the list answers with them.' }),
    complete: Type.Boolean({
      description: `False if the list holds more than ${exportedMax}, or took more than ${exportMs / 1000} s to read.`,
    }),
  }),
  errors: ['not_found'],
  async run(context, { body: { filters: given = {}, list } }) {
    const filters = await completeIds(context, given)
    const { query: schema, run } = lists[list] as ListOperation
    const items: object[] = []
    const endMs = performance.now() + exportMs
    let cursor: string | null = null
    do {
      const query = { ...filters, limit: pageMax, ...(cursor !== null && { cursor }) }
      const checked = checkSchema(schema, query)
      if (!checked.ok) return invalid(checked.issues)
      const page: Result<Page> = await run(context, { params: {}, query, body: undefined }, null)
      if (!page.ok) return page
      items.push(...page.value.items)
      cursor = page.value.next
    } while (cursor !== null && items.length < exportedMax && performance.now() < endMs)
    // In the audit of the app, if it is one alone.
    const apps = await chooseApps(context, filters.app)
    const app = apps.ok && apps.value?.length === 1 ? (apps.value[0] ?? null) : null
    const action = { action: 'list.export', app, target: list, before: null, after: filters } as const
    await context.store.recordAction(action, context.access.actor)
    return done({ items: items.slice(0, exportedMax) as Record<string, unknown>[], complete: cursor === null })
  },
})
