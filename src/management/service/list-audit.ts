/** Lists the changes that operators made. */
import { Type } from 'typebox'
import { auditDays } from '../../domain/bounds.ts'
import type { AuditId } from '../../domain/id.ts'
import { type AuditAction, type AuditGroup, actionsIn, auditActions, auditGroups } from '../../domain/operator/audit.ts'
import { findTarget } from '../operation/find-target.ts'
import { cursorAfter, mergePages, pageQuery, readCursor, readLimit } from '../operation/list-pages.ts'
import { operation } from '../operation/operation.ts'
import { periodQuery, readPeriod } from '../operation/period.ts'
import { done, fail } from '../operation/result.ts'
import { appName, closed } from '../operation/schema.ts'
import { AuditResource, newPageSchema, presentAudit } from '../resources.ts'

export const listAudit = operation({
  method: 'GET',
  path: '/v1/audit',
  role: 'reader',
  summary: `Lists the changes that operators made in the last ${auditDays} days, newest first. Only an admin can list those of the whole service.`,
  query: closed({
    app: Type.Optional(appName()),
    actor: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description:
          'Part of the name of the person or token that made the change, or of `cli:` and a user name; ignores case.',
      }),
    ),
    action: Type.Optional(Type.Enum([...auditActions])),
    group: Type.Optional(Type.Enum([...auditGroups], { description: 'A group of related actions.' })),
    ...periodQuery('changes made'),
    ...pageQuery,
  }),
  answer: newPageSchema(AuditResource),
  errors: ['cursor_mismatch', 'not_found'],
  async run(context, { query }) {
    const { store, access } = context
    const { app, actor, action, group, since, until } = query
    const named = { list: 'audit', app, actor, action, group, since, until } as const
    const cursor = readCursor<AuditId>(context, query, named)
    if (!cursor.ok) return cursor
    const period = readPeriod(query)
    if (!period.ok) return period
    const actions = chooseActions(action, group)
    const found = app === undefined ? null : await findTarget('app', context, { app })
    if (found?.ok === false) return found
    if (found === null && access.apps === null && access.role !== 'admin')
      return fail('not_permitted', 'Only an admin may read the audit for the whole service; name an app.')
    const wanted = {
      limit: readLimit(query),
      ...(actor !== undefined && { actor }),
      ...(actions !== null && { actions }),
      ...period.value,
      ...(cursor.value !== null && { before: cursor.value }),
    }
    const apps = found === null ? access.apps : [found.value.id]
    const page =
      apps === null
        ? await store.listAudit(wanted)
        : await mergePages([...apps], wanted.limit, (id) => store.listAudit({ ...wanted, app: id }))
    return done({ items: page.items.map(presentAudit), next: cursorAfter(context, page.next, named) })
  },
})

/** Null: all of them. */
function chooseActions(action?: AuditAction, group?: AuditGroup): readonly AuditAction[] | null {
  if (group === undefined) return action === undefined ? null : [action]
  const actions = actionsIn(group)
  return action === undefined ? actions : actions.filter((name) => name === action)
}
