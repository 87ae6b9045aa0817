/**
 * Emails: listed, found by an address, shown, retried and cancelled. The audit records a search by the
 * keyed hash of the address.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { type Static, Type } from 'typebox'
import { sideOf } from '../../domain/app/test-side.ts'
import { replySearchMax } from '../../domain/bounds.ts'
import { emailStates } from '../../domain/delivery/states.ts'
import type { AppId, EmailId } from '../../domain/id.ts'
import { recipientPrefix } from '../../domain/operator/audit.ts'
import { parseEmailAddress } from '../../domain/request/email-address.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { reportSources } from '../../services/services.ts'
import type { EmailChange, EmailQuery, EmailRecord, RetryStep } from '../../store/operator-store.ts'
import { explainEmail } from '../explain-email.ts'
import { chooseApps, findTarget } from '../operation/find-target.ts'
import { cursorAfter, mergePages, pageQuery, readCursor, readLimit } from '../operation/list-pages.ts'
import { type Context, operation } from '../operation/operation.ts'
import { periodQuery, readPeriod } from '../operation/period.ts'
import { done, type ErrorCode, fail, invalid, type Result } from '../operation/result.ts'
import { appName, closed, orNull, recipientField, time } from '../operation/schema.ts'
import { EmailResource, emailFields, iso, newPageSchema, presentEmail } from '../resources.ts'
import { presentSuppression, SuppressionResource } from '../suppressions/suppressions.ts'

const emailFilters = {
  app: Type.Optional(appName()),
  key: Type.Optional(Type.String({ description: 'The id of the delivery key it was sent with.' })),
  test: Type.Optional(Type.Enum(['true'], { description: 'Only emails of test keys, which are left out otherwise.' })),
  state: Type.Optional(Type.Enum([...emailStates])),
  type: Type.Optional(Type.Enum([...emailTypes])),
  reply: Type.Optional(
    Type.String({
      minLength: 3,
      maxLength: replySearchMax,
      description: 'Part of a reply, such as the queue id of the relay, or of the name of a relay; ignores case.',
    }),
  ),
  ...periodQuery('emails accepted'),
  ...pageQuery,
}

const Filters = Type.Object(emailFilters)
/** `recipient`: the name of a recipient in the store. */
type EmailFilters = Static<typeof Filters> & { readonly recipient?: string }

async function listPage(
  context: Context,
  filters: EmailFilters,
): Promise<Result<{ items: EmailResource[]; next: string | null }>> {
  const { app, key, state, test, type, since, until, reply, recipient } = filters
  const named = { list: 'emails', app, key, state, test, type, since, until, reply, recipient } as const
  const cursor = readCursor<EmailId>(context, filters, named)
  if (!cursor.ok) return cursor
  const period = readPeriod(filters)
  if (!period.ok) return period
  const chosen = await chooseSides(context, filters)
  if (!chosen.ok) return chosen
  const { apps, tests } = chosen.value
  const query: EmailQuery = {
    limit: readLimit(filters),
    tests,
    ...(key !== undefined && { key: key as NonNullable<EmailQuery['key']> }),
    ...(state !== undefined && { state }),
    ...(type !== undefined && { type }),
    ...period.value,
    ...(reply !== undefined && { reply }),
    ...(recipient !== undefined && { recipient }),
    ...(cursor.value !== null && { before: cursor.value }),
  }
  const { store } = context
  const page =
    apps === null
      ? await store.listEmails(query)
      : await mergePages(apps, query.limit, (id) => store.listEmails({ ...query, app: id }))
  return done({ items: page.items.map(presentEmail), next: cursorAfter(context, page.next, named) })
}

type Sides = { readonly apps: readonly AppId[] | null; readonly tests: boolean }

/** The apps whose emails are asked for, and which side of them: those of a key, unless the query says it. */
async function chooseSides(context: Context, { app, key, test }: EmailFilters): Promise<Result<Sides>> {
  const found = key === undefined ? null : await findTarget('key', context, { key })
  const tests = test !== undefined || (found?.ok === true && found.value.isTest)
  if (app === undefined && found !== null) return found.ok ? done({ apps: [found.value.app], tests }) : found
  const apps = await chooseApps(context, app)
  return apps.ok ? done({ apps: apps.value, tests }) : apps
}

export const listEmails = operation({
  method: 'GET',
  path: '/v1/emails',
  role: 'reader',
  summary: 'Lists emails, newest first. A page may hold fewer items than `limit`, or none, and still have a `next`.',
  query: closed({
    ...emailFilters,
    recipient: recipientField(),
  }),
  answer: newPageSchema(EmailResource),
  errors: ['cursor_mismatch', 'not_found'],
  run: (context, { query: { recipient, ...filters } }) =>
    listPage(context, {
      ...filters,
      ...(recipient && { recipient: recipient.slice(recipientPrefix.length) }),
    }),
})

export const findEmails = operation({
  method: 'POST',
  path: '/v1/emails/find',
  role: 'reader',
  summary:
    "Finds the emails to an address, newest first. Pass the answer's `recipient` to GET /v1/emails for further pages.",
  body: closed({ ...emailFilters, to: Type.String({ examples: ['ada@example.com'] }) }),
  answer: closed({ recipient: Type.String(), ...newPageSchema(EmailResource).properties }),
  errors: ['cursor_mismatch', 'not_found'],
  async run(context, { body: { to, ...filters } }) {
    const address = parseEmailAddress(to, 'to')
    if (!address.ok) return invalid(address.issues)
    const { store, access } = context
    const recipient = store.nameRecipient(address.value)
    const page = await listPage(context, { ...filters, recipient })
    if (!page.ok) return page
    const target = `${recipientPrefix}${recipient}`
    await store.recordAction({ action: 'email.find', app: null, target, before: null, after: null }, access.actor)
    return done({ recipient: target, ...page.value })
  },
})

const Attempt = closed({
  at: time(),
  outcome: Type.String(),
  relay: Type.Optional(Type.String()),
  source: Type.Optional(Type.Enum([...reportSources], { description: 'Set for a report: the way it came.' })),
  ambiguous: Type.Optional(Type.Boolean()),
  reply: Type.Optional(Type.String()),
  code: Type.Optional(orNull(Type.Integer())),
  enhanced: Type.Optional(orNull(Type.String())),
})
export const EmailDetail = closed({
  ...emailFields,
  explanation: Type.String(),
  trail: Type.Array(Attempt),
  suppressions: Type.Array(SuppressionResource, {
    description: 'The suppressions of its recipient that have not ended and concern its app.',
  }),
})
export type EmailDetail = Static<typeof EmailDetail>

const presentTrail = (email: EmailRecord): EmailDetail['trail'] =>
  email.trail.map(({ at, reply, ...attempt }) => ({
    at: iso(at),
    ...attempt,
    ...(reply && { reply: reply.text, code: reply.code, enhanced: reply.enhanced }),
  }))

export const showEmail = operation({
  method: 'GET',
  path: '/v1/emails/{email}',
  role: 'reader',
  summary: 'Shows what happened to one email, with each attempt. Its content is never shown.',
  answer: EmailDetail,
  async run({ access, store }, _input, email) {
    const [app, suppressions] = await Promise.all([
      store.findApp(email.app),
      store.findSuppressions(email.recipient, [email.app, null]),
    ])
    const disabledApp = app === null || app.status === 'active' ? null : app.slug
    // Others than the whole service see that a suppression for all apps is there, and not which.
    const seen = suppressions.filter((suppression) => access.apps === null || suppression.app !== null)
    return done({
      ...presentEmail(email),
      explanation: explainEmail(email, { disabledApp, suppressions, nowMs: store.now() }),
      trail: presentTrail(email),
      suppressions: seen.map(presentSuppression),
    })
  },
})

export const retryEmail = operation({
  method: 'POST',
  path: '/v1/emails/{email}/retry',
  role: 'operator',
  summary: 'Makes a deferred email due now.',
  answer: EmailResource,
  errors: ['email_finished', 'email_sending', 'email_not_deferred'],
  async run(context, { params }, { id }) {
    const change = await context.store.retryEmail(id, context.access.actor)
    if (change === 'done') context.onQueued()
    return answer(context, params.email, change)
  },
})

export const cancelEmail = operation({
  method: 'POST',
  path: '/v1/emails/{email}/cancel',
  role: 'operator',
  summary: 'Cancels a queued email and deletes its content.',
  answer: EmailResource,
  errors: ['email_finished', 'email_sending'],
  run: async (context, { params }, email) => answer(context, params.email, await cancel(context, email)),
})

export async function cancel(context: Context, email: EmailRecord): Promise<EmailChange> {
  const { id } = email
  const change = await context.store.cancelEmail(id, context.access.actor)
  const end = { emailId: id, appId: sideOf(email), state: 'cancelled', reason: 'by_operator' } as const
  if (change === 'done') context.emit({ kind: 'emails_ended', ended: [end] })
  return change
}

type Refused = Exclude<EmailChange, 'done' | 'not_found'>

const reasons: Record<Refused, [ErrorCode, string]> = {
  finished: ['email_finished', 'it is finished, and its content is deleted; ask the app to send a new email'],
  sending: [
    'email_sending',
    'a worker is sending it. Try again in a minute; if no process is sending, start one: it takes the email back',
  ],
  not_deferred: ['email_not_deferred', 'it is not deferred; it is already waiting for a worker'],
}

async function answer(context: Context, id: string, change: EmailChange): Promise<Result<EmailResource>> {
  const email = await findTarget('email', context, { email: id })
  if (!email.ok) return email
  if (change === 'done' || change === 'not_found') return done(presentEmail(email.value))
  const [code, reason] = reasons[change]
  return fail(code, `${id} was not changed: ${reason}.`)
}

/** How long one request goes through the queue. Repeated, it begins anew, and finds what it left. */
const retryAllMs = 5000

export const retryAll = operation({
  method: 'POST',
  path: '/v1/emails/retry',
  role: 'operator',
  costly: true,
  summary: 'Makes every deferred email of one app or of all apps due now, except those that may have killed workers.',
  body: closed({ app: Type.Optional(appName()) }),
  answer: closed({
    retried: Type.Integer(),
    complete: Type.Boolean({ description: 'False if the queue was too long for one request: repeat it.' }),
  }),
  errors: ['not_found'],
  async run(context, { body: { app } }) {
    const found = app === undefined ? null : await findTarget('app', context, { app })
    if (found?.ok === false) return found
    const { apps } = context.access
    return done(await walk(context, found !== null ? [found.value.id] : apps && [...apps]))
  },
})

async function walk({ store, access, onQueued }: Context, apps: readonly AppId[] | null) {
  const endMs = performance.now() + retryAllMs
  let [retried, after]: [number, EmailId | null] = [0, null]
  do {
    const beganMs = performance.now()
    const step: RetryStep = await store.retryDeferred(apps, after, retried === 0 ? access.actor : null)
    retried += step.retried
    after = step.next
    if (step.retried === 0) continue
    onQueued()
    await sleep(performance.now() - beganMs) // others write for as long
  } while (after !== null && performance.now() < endMs)
  return { retried, complete: after === null }
}
