/** Lists suppressions, and finds those of an address. The audit records a search by its keyed hash. */
import { type Static, Type } from 'typebox'
import { suppressionReasons } from '../../domain/delivery/states.ts'
import { destinations } from '../../domain/delivery/suppression.ts'
import type { AppId, SuppressionId } from '../../domain/id.ts'
import { parseEmailAddress } from '../../domain/request/email-address.ts'
import type { SuppressionRecord } from '../../store/report-store.ts'
import { chooseApps } from '../operation/find-target.ts'
import { cursorAfter, pageQuery, readCursor, readLimit } from '../operation/list-pages.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done, invalid } from '../operation/result.ts'
import { appName, closed, orNull, recipientField, recipientPrefix, time } from '../operation/schema.ts'
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

export const suppressionFilters = {
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
