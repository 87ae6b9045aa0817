/**
 * The emails of test keys, for the tests of an app: they hold links that sign in, so their reader is an
 * operator. An address in a query is no person's: only those of `postern.test` are kept.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Type } from 'typebox'
import { testDomain } from '../../domain/app/test-side.ts'
import { inboxMax, inboxMs, inboxPageMax, inboxWaitDefaultS, inboxWaitMaxS } from '../../domain/bounds.ts'
import { minuteMs } from '../../domain/duration.ts'
import type { AppId } from '../../domain/id.ts'
import { issuesOf, parsed } from '../../domain/parsed.ts'
import { parseEmailAddress } from '../../domain/request/email-address.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import type { InboxQuery } from '../../store/inbox-store.ts'
import { type Context, operation } from '../operation/operation.ts'
import { done, fail, invalid, type Result } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { type InboxEmail, InboxEmailResource, presentInboxEmail, readAfter } from './inbox-email.ts'

const filters = {
  to: Type.Optional(Type.String({ description: 'The recipient.', examples: [`delivered+ada@${testDomain}`] })),
  type: Type.Optional(Type.Enum([...emailTypes])),
  after: Type.Optional(
    Type.String({
      maxLength: 40,
      description: 'Only emails after one with this `seq`, or kept at this time or later.',
    }),
  ),
}
type Filters = {
  readonly to?: string
  readonly type?: (typeof emailTypes)[number]
  readonly after?: string
}

function readQuery({ store }: Context, app: AppId, { after, to, type }: Filters): Result<Omit<InboxQuery, 'limit'>> {
  // A plus sign in a URL that was not encoded is read as a space, which no address has.
  const address = to === undefined ? null : parseEmailAddress(to.replaceAll(' ', '+'), 'to')
  const place = after === undefined ? parsed({}) : readAfter(after)
  if (address?.ok === false || !place.ok) return invalid(issuesOf([address ?? parsed(null), place]))
  return done({
    app,
    order: 'newest',
    ...(type !== undefined && { type }),
    ...(address !== null && { recipient: store.nameRecipient(address.value) }),
    ...place.value,
  })
}

async function read(context: Context, query: InboxQuery): Promise<InboxEmail[]> {
  const stored = await context.store.listInbox(query)
  return stored.flatMap(({ at, id, sealed, seq }) => {
    const text = context.openInboxEmail(id, sealed)
    return text === null ? [] : [{ ...(JSON.parse(text) as InboxEmail), receivedAt: at, seq }]
  })
}

export const listInbox = operation({
  method: 'GET',
  path: '/v1/apps/{app}/inbox',
  role: 'operator',
  summary: `Lists the emails that test keys of an app sent in the last ${inboxMs / minuteMs} minutes, newest first, with their links; the newest ${inboxMax} are kept.`,
  query: closed({
    ...filters,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: inboxPageMax, description: 'How many (default: 20).' })),
  }),
  answer: closed({ items: Type.Array(InboxEmailResource) }),
  async run(context, { query: { limit = 20, ...given } }, { id }) {
    const query = readQuery(context, id, given)
    if (!query.ok) return query
    return done({ items: (await read(context, { ...query.value, limit })).map(presentInboxEmail) })
  },
})

/** Requests that may wait at once, for one app and in this process: each asks the store again and again. */
const waitingMax = { app: 20, process: 200 }
const lookEveryMs = 250
/** Some may be sealed by a key that the ring lacks. */
const openedMax = 20

/** The apps of the requests that wait. */
const waiting: AppId[] = []

export const waitForEmail = operation({
  method: 'GET',
  path: '/v1/apps/{app}/inbox/wait',
  role: 'operator',
  summary: 'Answers with the oldest email of test keys that matches, now or when it is sent.',
  query: closed({
    ...filters,
    timeout: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: inboxWaitMaxS,
        description: `How many seconds to wait (default: ${inboxWaitDefaultS}).`,
      }),
    ),
  }),
  answer: InboxEmailResource,
  errors: ['no_such_email'],
  async run(context, { query: { timeout = inboxWaitDefaultS, ...given } }, { id }) {
    const query = readQuery(context, id, given)
    if (!query.ok) return query
    const ofApp = waiting.filter((app) => app === id).length
    if (ofApp >= waitingMax.app || waiting.length >= waitingMax.process)
      return fail(
        'too_many_requests',
        `${ofApp} requests are already waiting for emails of this app, ${waiting.length} for those of all apps. Try again when some have finished.`,
      )
    waiting.push(id)
    const email = await wait(context, { ...query.value, order: 'oldest', limit: openedMax }, timeout * 1000).finally(
      () => waiting.splice(waiting.indexOf(id), 1),
    )
    if (email !== null) return done(presentInboxEmail(email))
    return fail('no_such_email', `No matching email of a test key arrived within ${timeout} s.`)
  },
})

async function wait(context: Context, query: InboxQuery, timeoutMs: number): Promise<InboxEmail | null> {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    const [email] = await read(context, query)
    if (email !== undefined) return email
    const leftMs = endMs - performance.now()
    if (leftMs <= 0 || context.isStopping() || context.hasLeft()) return null
    await sleep(Math.min(lookEveryMs, leftMs))
  }
}
