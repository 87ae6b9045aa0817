/** Filters of emails, and the page that they choose. */
import { type Static, Type } from 'typebox'
import { emailStates } from '../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { parseTimestamp } from '../../domain/request/timestamp.ts'
import type { EmailQuery } from '../../store/operator-store.ts'
import { chooseApps, findTarget } from '../operation/find-target.ts'
import { cursorAfter, mergePages, pageQuery, readCursor, readLimit } from '../operation/list-pages.ts'
import type { Context } from '../operation/operation.ts'
import { done, invalid, type Result } from '../operation/result.ts'
import { appName, timestamp } from '../operation/schema.ts'
import { type EmailResource, presentEmail } from '../resources.ts'

export const emailFilters = {
  app: Type.Optional(appName()),
  key: Type.Optional(Type.String({ description: 'The id of the delivery key it was sent with.' })),
  state: Type.Optional(Type.Enum([...emailStates])),
  type: Type.Optional(Type.Enum([...emailTypes])),
  since: timestamp('Only emails accepted at this time or later.'),
  ...pageQuery,
}

const Filters = Type.Object(emailFilters)
/** `recipient`: the name of a recipient in the store. */
type EmailFilters = Static<typeof Filters> & { readonly recipient?: string }

export async function listPage(
  context: Context,
  filters: EmailFilters,
): Promise<Result<{ items: EmailResource[]; next: string | null }>> {
  const { app, key, state, type, since, recipient } = filters
  const named = { list: 'emails', app, key, state, type, since, recipient } as const
  const cursor = readCursor<EmailId>(context, filters, named)
  if (!cursor.ok) return cursor
  const after = since === undefined ? null : parseTimestamp(since, 'since')
  if (after?.ok === false) return invalid(after.issues)
  const apps = await chooseAppsOf(context, filters)
  if (!apps.ok) return apps
  const query: EmailQuery = {
    limit: readLimit(filters),
    ...(key !== undefined && { key: key as NonNullable<EmailQuery['key']> }),
    ...(state !== undefined && { state }),
    ...(type !== undefined && { type }),
    ...(after !== null && { since: after.value }),
    ...(recipient !== undefined && { recipient }),
    ...(cursor.value !== null && { before: cursor.value }),
  }
  const { store } = context
  const page =
    apps.value === null
      ? await store.listEmails(query)
      : await mergePages(apps.value, query.limit, (id) => store.listEmails({ ...query, app: id }))
  return done({ items: page.items.map(presentEmail), next: cursorAfter(context, page.next, named) })
}

/** The apps whose emails are asked for: that of the key, unless an app is named. */
async function chooseAppsOf(context: Context, { app, key }: EmailFilters): Promise<Result<readonly AppId[] | null>> {
  if (app !== undefined || key === undefined) return chooseApps(context, app)
  const found = await findTarget('key', context, { key })
  return found.ok ? done([found.value.app]) : found
}
