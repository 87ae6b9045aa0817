/** Shows the requests that were refused lately. */

import { Type } from 'typebox'
import type { KeyId } from '../../domain/id.ts'
import { recordEveryMs } from '../../domain/operator/activity.ts'
import { recipientPrefix } from '../../domain/operator/audit.ts'
import { refusalsMax } from '../../domain/request/refused-request.ts'
import { type RefusalCode, refusals } from '../../domain/request/rejection.ts'
import { chooseApps } from '../operation/find-target.ts'
import { cursorAfter, pageQuery, readCursor, readLimit } from '../operation/list-pages.ts'
import { operation } from '../operation/operation.ts'
import { periodQuery, readPeriod } from '../operation/period.ts'
import { done } from '../operation/result.ts'
import { appName, closed, recipientField } from '../operation/schema.ts'
import { newPageSchema, presentRefusal, RefusalResource } from '../resources.ts'

export const listRefusals = operation({
  method: 'GET',
  path: '/v1/refusals',
  role: 'reader',
  summary: `Lists refused requests, newest first: of each app the newest ${refusalsMax}, and ${refusalsMax} that were over a limit. They appear within ${recordEveryMs / 1000} seconds.`,
  query: closed({
    app: Type.Optional(appName()),
    code: Type.Optional(Type.Enum(Object.keys(refusals) as RefusalCode[])),
    key: Type.Optional(Type.String({ description: 'The id of the delivery key.' })),
    test: Type.Optional(
      Type.Enum(['true'], { description: 'Only requests with test keys, which are left out otherwise.' }),
    ),
    recipient: recipientField(),
    ...periodQuery('requests refused'),
    ...pageQuery,
  }),
  answer: newPageSchema(RefusalResource),
  errors: ['cursor_mismatch', 'not_found'],
  async run(context, { query }) {
    const { app, code, key, recipient, since, test, until } = query
    const named = { list: 'refusals', app, code, key, recipient, since, test, until } as const
    const before = readCursor(context, query, named)
    if (!before.ok) return before
    const period = readPeriod(query)
    if (!period.ok) return period
    const apps = await chooseApps(context, app)
    if (!apps.ok) return apps
    const page = await context.store.listRefusals({
      ...{ apps: apps.value, limit: readLimit(query), tests: test !== undefined },
      ...period.value,
      ...(code !== undefined && { code }),
      ...(key !== undefined && { key: key as KeyId }),
      ...(recipient !== undefined && { recipient: recipient.slice(recipientPrefix.length) }),
      ...(before.value !== null && { before: before.value }),
    })
    return done({ items: page.items.map(presentRefusal), next: cursorAfter(context, page.next, named) })
  },
})

export const showRefusal = operation({
  method: 'GET',
  path: '/v1/refusals/{request}',
  role: 'reader',
  target: 'refusal',
  summary: 'Shows a refused request by the `requestId` of its answer.',
  answer: RefusalResource,
  run: (_context, _input, refusal) => done(presentRefusal(refusal)),
})
