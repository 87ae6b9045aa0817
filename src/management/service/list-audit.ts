/** Lists the changes that operators made. */
import { Type } from 'typebox'
import type { AuditId } from '../../domain/id.ts'
import { auditActions } from '../../domain/operator/audit.ts'
import { findTarget } from '../operation/find-target.ts'
import { cursorAfter, mergePages, pageQuery, readCursor, readLimit } from '../operation/list-pages.ts'
import { operation } from '../operation/operation.ts'
import { done, fail } from '../operation/result.ts'
import { appName, closed } from '../operation/schema.ts'
import { AuditResource, newPageSchema, presentAudit } from '../resources.ts'

export const listAudit = operation({
  method: 'GET',
  path: '/v1/audit',
  role: 'reader',
  target: 'none',
  summary:
    'Lists the changes that operators made, newest first, for 400 days. For the whole service it needs an admin.',
  query: closed({
    app: Type.Optional(appName()),
    actor: Type.Optional(
      Type.String({ description: 'The name of the token, or `cli:` and the user, that made the change.' }),
    ),
    action: Type.Optional(Type.Enum([...auditActions])),
    ...pageQuery,
  }),
  answer: newPageSchema(AuditResource),
  errors: ['cursor_mismatch', 'not_found'],
  async run(context, { query }) {
    const { store, access } = context
    const { app, actor, action } = query
    const named = { list: 'audit', app, actor, action } as const
    const cursor = readCursor<AuditId>(context, query, named)
    if (!cursor.ok) return cursor
    const found = app === undefined ? null : await findTarget('app', context, { app })
    if (found?.ok === false) return found
    if (found === null && access.apps === null && access.role !== 'admin')
      return fail(
        'not_permitted',
        'Only the role admin may read the audit of the whole service; name an app.',
      )
    const wanted = {
      limit: readLimit(query),
      ...(actor !== undefined && { actor }),
      ...(action !== undefined && { action }),
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
