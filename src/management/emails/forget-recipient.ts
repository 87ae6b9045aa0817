/**
 * Deletes what an address has left behind: queued emails and records of all apps, and if asked its
 * suppressions. The answer says what is kept, for how long and why. The audit has an entry before
 * anything is deleted, and one after.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Static, Type } from 'typebox'
import {
  auditDays,
  idempotencyHours,
  stepMax,
  suppressionDaysMax,
  suppressionMemoryDays,
  webhookDays,
} from '../../domain/bounds.ts'
import type { EmailId } from '../../domain/id.ts'
import { recipientPrefix } from '../../domain/operator/audit.ts'
import { parseEmailAddress } from '../../domain/request/email-address.ts'
import { afterField, readPlace } from '../operation/list-pages.ts'
import { type Context, forAdmins, operation } from '../operation/operation.ts'
import { done, invalid } from '../operation/result.ts'
import { closed, orNull } from '../operation/schema.ts'
import { cancel } from './emails.ts'

const Kept = closed({
  what: Type.String(),
  days: Type.Integer({ description: 'For how long at most, in days.' }),
  why: Type.String(),
})

const Forgotten = closed({
  cancelled: Type.Integer({ description: 'Emails that were queued.' }),
  left: Type.Integer({ description: 'Emails that were being sent meanwhile: repeat the request in a minute.' }),
  records: Type.Integer({ description: 'Records of finished emails, including those cancelled now.' }),
  refusals: Type.Integer({ description: 'Refused requests whose recipient was cleared.' }),
  suppressions: Type.Integer({ description: 'Suppressions that were removed, including ended ones.' }),
  next: orNull(
    Type.String({ description: 'Where to go on, if there was too much for one request: pass it as `after`.' }),
  ),
  kept: Type.Array(Kept, { description: 'The database still holds this about the address.' }),
})

export const forgetRecipient = operation({
  ...forAdmins,
  method: 'POST',
  path: '/v1/recipients/forget',
  costly: true,
  summary: 'Deletes what an address has left behind in all apps, and says what is kept and why.',
  body: closed({
    to: Type.String({ examples: ['ada@example.com'] }),
    suppressions: Type.Optional(
      Type.Boolean({ description: 'Also its suppressions: mail to it is sent again (default: false).' }),
    ),
    after: afterField(),
  }),
  answer: Forgotten,
  errors: ['cursor_mismatch'],
  async run(context, { body: { to, suppressions = false, after } }) {
    const { access, cursors, store } = context
    const address = parseEmailAddress(to, 'to')
    if (!address.ok) return invalid(address.issues)
    const recipient = store.nameRecipient(address.value)
    const placeName = `recipient.forget ${recipient}`
    const place = readPlace(context, placeName, after)
    if (!place.ok) return place
    const target = `${recipientPrefix}${recipient}`
    const action = { action: 'recipient.forget', app: null, target, before: null } as const
    const isFirst = after === undefined
    if (isFirst) await store.recordAction({ ...action, after: { begun: true, suppressions } }, access.actor)
    const removed = isFirst && suppressions ? await store.removeSuppressionsOf(recipient, access.actor) : 0
    const { counts, next } = await runSteps(context, recipient, place.value)
    // A backup that was made meanwhile lacks this entry, so its restore deletes what it still holds.
    if (next === null) await store.recordAction({ ...action, after: { done: true, suppressions } }, access.actor)
    return done({
      cancelled: counts.queued + counts.deferred,
      left: counts.left,
      records: counts.records,
      refusals: counts.refusals,
      suppressions: removed,
      next: next && cursors.seal(placeName, next),
      kept: listKept(suppressions),
    })
  },
})

/** One request deletes for so long, so that its answer comes in time for every client. */
const forgetMs = 10_000
/** Lets others write between two steps. */
const pauseMs = 20
const pageMax = 200

/** Changes some of what is there. `next`: where the next step begins; null at the end. */
type Step = (
  context: Context,
  recipient: string,
  place: string | null,
) => Promise<{ readonly count: number; readonly next: string | null }>

const cancelStep =
  (state: 'queued' | 'deferred'): Step =>
  async (context, recipient, place) => {
    const before = place === null ? {} : { before: place as EmailId }
    const page = await context.store.listEmails({ recipient, state, limit: pageMax, ...before })
    let count = 0
    for (const email of page.items) if ((await cancel(context, email)) === 'done') count += 1
    return { count, next: page.next }
  }

/** In this order: an email that is cancelled leaves a record. */
const steps = {
  queued: cancelStep('queued'),
  deferred: cancelStep('deferred'),
  records: async ({ store }, recipient) => {
    const count = await store.deleteRecords(recipient)
    return { count, next: count === stepMax ? '' : null }
  },
  refusals: async ({ store }, recipient, place) => {
    const { cleared, next } = await store.clearRefusedRecipient(recipient, place)
    return { count: cleared, next }
  },
  // Emails that a worker held, or that changed their state, while the other steps looked.
  left: async ({ store }, recipient, place) => {
    const page = await store.listEmails({
      recipient,
      limit: pageMax,
      ...(place !== null && { before: place as EmailId }),
    })
    return { count: page.items.length, next: page.next }
  },
} satisfies Record<string, Step>

/** @param place the name of a step, and where it goes on; empty at the beginning */
async function runSteps(context: Context, recipient: string, [atName, atPlace]: readonly string[]) {
  const endMs = performance.now() + forgetMs
  const counts = { queued: 0, deferred: 0, records: 0, refusals: 0, left: 0 }
  const entries = Object.entries(steps) as [keyof typeof steps, Step][]
  const at = entries.findIndex(([name]) => name === atName)
  for (const [name, step] of entries.slice(Math.max(0, at))) {
    let place: string | null = (name === atName && atPlace) || null
    do {
      if (performance.now() >= endMs) return { counts, next: `${name} ${place ?? ''}` }
      const { count, next } = await step(context, recipient, place)
      counts[name] += count
      place = next
      if (place !== null) await sleep(pauseMs)
    } while (place !== null)
  }
  return { counts, next: null }
}

const listKept = (withoutSuppressions: boolean): Static<typeof Kept>[] => [
  ...(withoutSuppressions ? [] : [suppressionsKept]),
  {
    what: 'audit entries with a keyed hash of the address',
    days: auditDays,
    why: 'they show who searched for it, and this deletion',
  },
  {
    what: 'webhooks that an app has not received, with the address encrypted',
    days: webhookDays,
    why: 'the app must know that its email failed',
  },
  {
    what: 'limits and idempotency keys, as keyed hashes',
    days: idempotencyHours / 24,
    why: 'they stop floods and second copies',
  },
]

const suppressionsKept = {
  what: 'suppressions, with a keyed hash of the address',
  days: suppressionDaysMax + suppressionMemoryDays,
  why: 'without them the address would be sent mail again',
}
