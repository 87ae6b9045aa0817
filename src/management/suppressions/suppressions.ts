/**
 * Suppressions: listed, found by an address, added, removed, or cleared after a mistake. The audit records
 * a search by the keyed hash of the address.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { type Static, Type } from 'typebox'
import { suppressionDaysMax, suppressionsMax } from '../../domain/bounds.ts'
import { formatCount } from '../../domain/counts.ts'
import { suppressionReasons } from '../../domain/delivery/states.ts'
import { classifyDestination, destinations } from '../../domain/delivery/suppression.ts'
import { dayMs } from '../../domain/duration.ts'
import type { AppId, SuppressionId } from '../../domain/id.ts'
import { recipientPrefix } from '../../domain/operator/audit.ts'
import { isAtLeast } from '../../domain/operator/management-token.ts'
import { parseEmailAddress } from '../../domain/request/email-address.ts'
import { parseTimestamp } from '../../domain/request/timestamp.ts'
import type { SuppressionQuery, SuppressionRecord } from '../../store/report-store.ts'
import { appNotFound, chooseApps, findTarget, suppressionNotFound } from '../operation/find-target.ts'
import { afterField, cursorAfter, pageQuery, readCursor, readLimit, readPlace } from '../operation/list-pages.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done, fail, invalid } from '../operation/result.ts'
import { appName, closed, orNull, recipientField, time, timestamp } from '../operation/schema.ts'
import { newPageSchema, present } from '../resources.ts'

const reason = () => Type.Enum([...suppressionReasons])
const destination = () =>
  Type.Enum([...destinations], { description: 'The large mail provider of the recipient, or `other`.' })

export const SuppressionResource = closed({
  id: Type.String(),
  app: orNull(Type.String({ description: 'The id of the app; null: mail of all apps.' })),
  reason: reason(),
  strikes: Type.Integer({ description: 'Bounces that count; a complaint counts twice.' }),
  at: time('When it began, or was last extended.'),
  until: time('For all mail but invitations.'),
  invitationsUntil: time(),
  destination: destination(),
  email: orNull(Type.String({ description: 'The last email that counted.' })),
  reply: orNull(Type.String({ description: 'The reply to it, without addresses and links.' })),
})
export type SuppressionResource = Static<typeof SuppressionResource>

export const presentSuppression = (record: SuppressionRecord): SuppressionResource =>
  present(SuppressionResource, record)

const suppressionFilters = {
  app: Type.Optional(appName()),
  reason: Type.Optional(reason()),
  destination: Type.Optional(destination()),
}

async function findOf({ store }: Context, recipient: string, apps: readonly AppId[] | null) {
  const found = await store.findSuppressions(recipient, ...(apps === null ? [] : [apps]))
  return found.map(presentSuppression)
}

export const listSuppressions = operation({
  method: 'GET',
  path: '/v1/suppressions',
  role: 'reader',
  summary:
    'Lists the recipients that get no mail for a while, newest first. A page may hold fewer items than `limit`, or none, and still have a `next`.',
  query: closed({ ...suppressionFilters, recipient: recipientField(), ...pageQuery }),
  answer: newPageSchema(SuppressionResource),
  errors: ['cursor_mismatch', 'not_found'],
  async run(context, { query }) {
    const { app, recipient, cursor: _cursor, limit: _limit, ...filters } = query
    const named = { list: 'suppressions', app, ...filters } as const
    const before = readCursor<SuppressionId>(context, query, named)
    if (!before.ok) return before
    const apps = await chooseApps(context, app)
    if (!apps.ok) return apps
    if (recipient !== undefined) {
      const found = await findOf(context, recipient.slice(recipientPrefix.length), apps.value)
      const items = found.filter(
        (item) =>
          item.reason === (filters.reason ?? item.reason) &&
          item.destination === (filters.destination ?? item.destination),
      )
      return done({ items, next: null })
    }
    const page = await context.store.listSuppressions({
      ...{ ...filters, apps: apps.value, limit: readLimit(query) },
      ...(before.value !== null && { before: before.value }),
    })
    return done({
      items: page.items.map(presentSuppression),
      next: cursorAfter(context, page.next, named),
    })
  },
})

export const findSuppressions = operation({
  method: 'POST',
  path: '/v1/suppressions/find',
  role: 'reader',
  summary:
    'Finds the suppressions of an address: of the apps of the access, and for all apps if it is for the whole service.',
  body: closed({ to: Type.String({ examples: ['ada@example.com'] }) }),
  answer: closed({ recipient: Type.String(), items: Type.Array(SuppressionResource) }),
  async run(context, { body: { to } }) {
    const { store, access } = context
    const address = parseEmailAddress(to, 'to')
    if (!address.ok) return invalid(address.issues)
    const recipient = store.nameRecipient(address.value)
    const items = await findOf(context, recipient, access.apps && [...access.apps])
    const target = `${recipientPrefix}${recipient}`
    const action = { action: 'suppression.find', app: null, target, before: null, after: null } as const
    await store.recordAction(action, access.actor)
    return done({ recipient: target, items })
  },
})

const usualDays = 30

/** Suppressions for all apps belong to an admin of the whole service. */
const refuseAllApps = ({ access }: Context) =>
  access.apps === null && isAtLeast(access.role, 'admin')
    ? null
    : fail('not_permitted', 'Suppressions for all apps need the role admin for the whole service.')

export const addSuppression = operation({
  method: 'POST',
  path: '/v1/suppressions',
  role: 'operator',
  summary: 'Suppresses a recipient: mail to it is accepted and not sent. One that is suppressed for longer stays so.',
  body: closed({
    to: Type.String({ examples: ['ada@example.com'] }),
    app: Type.Optional(
      Type.String({ description: 'The slug or id of an app (default: all apps, which needs an admin).' }),
    ),
    days: Type.Optional(
      Type.Integer({ minimum: 1, maximum: suppressionDaysMax, description: `For how long (default: ${usualDays}).` }),
    ),
  }),
  answer: SuppressionResource,
  errors: ['not_found', 'too_many_suppressions'],
  async run(context, { body: { to, app, days = usualDays } }) {
    const { store, access } = context
    const found = app === undefined ? refuseAllApps(context) : await findTarget('app', context, { app })
    if (found?.ok === false) return found
    const address = parseEmailAddress(to, 'to')
    if (!address.ok) return invalid(address.issues)
    const suppression = {
      app: found?.value.id ?? null,
      recipient: store.nameRecipient(address.value),
      destination: classifyDestination(address.value),
      until: store.now() + days * dayMs,
    }
    const made = await store.setSuppression(suppression, access.actor)
    if (made === null) return appNotFound(app ?? '')
    if (made !== 'too_many') return done(presentSuppression(made))
    const most = formatCount(suppressionsMax)
    return fail(
      'too_many_suppressions',
      `This app already has ${most} suppressions added by operators, which is the maximum. Remove some, or clear those with the reason "operator".`,
    )
  },
})

export const removeSuppression = operation({
  method: 'DELETE',
  path: '/v1/suppressions/{suppression}',
  role: 'operator',
  summary: 'Removes a suppression: mail to the recipient is sent again, and earlier bounces are forgotten.',
  answer: SuppressionResource,
  async run(context, _input, { app, id }) {
    const refused = app === null ? refuseAllApps(context) : null
    if (refused !== null) return refused
    const removed = await context.store.removeSuppression(id, context.access.actor)
    return removed === null ? suppressionNotFound(id) : done(presentSuppression(removed))
  },
})

/** How long one request clears. Repeated, it goes on. */
const clearMs = 5000

export const clearSuppressions = operation({
  method: 'POST',
  path: '/v1/suppressions/clear',
  role: 'operator',
  summary:
    'Removes the suppressions that match all filters, of which there must be one: after a provider has called living mailboxes missing.',
  body: closed({
    ...suppressionFilters,
    from: timestamp('Only those that began, or were last extended, at this time or later.'),
    to: timestamp('Only those before this time.'),
    after: afterField(),
  }),
  answer: closed({
    removed: Type.Integer(),
    next: orNull(
      Type.String({
        description: 'Where to go on, if there were too many for one request: pass it as `after`.',
      }),
    ),
  }),
  costly: true,
  errors: ['not_found', 'cursor_mismatch'],
  async run(context, { body: { after, app, from, to, ...filters } }) {
    const since = from === undefined ? null : parseTimestamp(from, 'from')
    const until = to === undefined ? null : parseTimestamp(to, 'to')
    const issues = [since, until].flatMap((time) => (time?.ok === false ? time.issues : []))
    if ([app, from, to, ...Object.values(filters)].every((filter) => filter === undefined))
      issues.push({ field: 'body', code: 'no_filter', message: 'Give at least one filter.' })
    if (issues.length > 0) return invalid(issues)
    const apps = await chooseApps(context, app)
    if (!apps.ok) return apps
    const place = readPlace(context, placeName, after)
    if (!place.ok) return place
    return done(
      await clear(context, place.value, {
        ...{ ...filters, apps: apps.value, allApps: refuseAllApps(context) === null },
        ...(since?.ok && { since: since.value }),
        ...(until?.ok && { until: until.value }),
      }),
    )
  },
})

/** Between two steps others write. */
const pauseMs = 20

const placeName = 'suppression.clear'

/**
 * One app after the other, since each has an index; of all apps, the whole table.
 * @param place the app and the suppression to go on after; empty at the beginning
 */
async function clear(
  { access, cursors, store }: Context,
  [atApp, atId]: readonly string[],
  { apps, ...query }: SuppressionQuery,
) {
  const endMs = performance.now() + clearMs
  let removed = 0
  for (const app of [...(apps ?? [''])].toSorted()) {
    if (atApp !== undefined && app < atApp) continue
    let after = app === atApp ? (atId as SuppressionId) : null
    do {
      if (performance.now() >= endMs) return { removed, next: cursors.seal(placeName, `${app} ${after ?? ''}`) }
      const ofApp = { ...query, apps: apps === null ? null : [app as AppId] }
      const step = await store.clearSuppressions(ofApp, { actor: access.actor, after })
      removed += step.removed
      after = step.next
      if (after !== null) await sleep(pauseMs)
    } while (after !== null)
  }
  return { removed, next: null }
}
