/**
 * Deletes what an address has left behind: queued emails and records of all apps, and if asked its
 * suppressions. The answer says what is kept, for how long and why. The audit has an entry before anything is
 * deleted.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { type Static, Type } from 'typebox'
import { auditDays, stepMax, webhookDays } from '../../domain/bounds.ts'
import { recipientPrefix } from '../../domain/operator/audit.ts'
import { parseEmailAddress } from '../../domain/request/email-address.ts'
import { type Context, forAdmins, operation } from '../operation/operation.ts'
import { done, invalid } from '../operation/result.ts'
import { closed } from '../operation/schema.ts'
import { cancel } from './emails.ts'

const Kept = closed({
  what: Type.String(),
  days: Type.Integer({ description: 'For how long at most, in days.' }),
  why: Type.String(),
})

const Forgotten = closed({
  cancelled: Type.Integer({ description: 'Emails that were queued.' }),
  sending: Type.Integer({ description: 'Emails that a worker is sending now: repeat the request in a minute.' }),
  records: Type.Integer({ description: 'Records of finished emails, including those cancelled now.' }),
  refusals: Type.Integer({ description: 'Refused requests whose recipient was cleared.' }),
  suppressions: Type.Integer({ description: 'Suppressions that were removed, including ended ones.' }),
  complete: Type.Boolean({ description: 'False if there was too much for one request: repeat it.' }),
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
  }),
  answer: Forgotten,
  async run(context, { body: { to, suppressions = false } }) {
    const { store, access } = context
    const address = parseEmailAddress(to, 'to')
    if (!address.ok) return invalid(address.issues)
    const recipient = store.nameRecipient(address.value)
    const target = `${recipientPrefix}${recipient}`
    const action = { action: 'recipient.forget', app: null, target, before: null, after: { suppressions } } as const
    await store.recordAction(action, access.actor)
    const endMs = performance.now() + forgetMs
    const queued = await cancelQueued(context, recipient, endMs)
    const records = await deleteRecords(context, recipient, endMs)
    const refused = await clearRefusals(context, recipient, endMs)
    const removed = suppressions ? await store.removeSuppressionsOf(recipient, access.actor) : 0
    return done({
      cancelled: queued.count,
      sending: (await store.listEmails({ recipient, state: 'sending', limit: pageMax })).items.length,
      records: records.count,
      refusals: refused.count,
      suppressions: removed,
      complete: queued.complete && records.complete && refused.complete,
      kept: listKept(suppressions),
    })
  },
})

/** How long one request deletes. Repeated, it begins anew, and finds what it left. */
const forgetMs = 10_000
/** Between two steps others write. */
const pauseMs = 20
const pageMax = 200

type Step = { readonly count: number; readonly more: boolean }

/** Makes steps until there are no more, or the time has passed. */
async function repeat(endMs: number, step: () => Promise<Step>): Promise<{ count: number; complete: boolean }> {
  let count = 0
  while (performance.now() < endMs) {
    const made = await step()
    count += made.count
    if (!made.more) return { count, complete: true }
    await sleep(pauseMs)
  }
  return { count, complete: false }
}

/** An email whose state changes meanwhile is found when the request is repeated. */
async function cancelQueued(context: Context, recipient: string, endMs: number) {
  let count = 0
  let complete = true
  for (const state of ['queued', 'deferred'] as const) {
    let before = {}
    const found = await repeat(endMs, async () => {
      const page = await context.store.listEmails({ recipient, state, limit: pageMax, ...before })
      const changes = []
      for (const email of page.items) changes.push(await cancel(context, email))
      if (page.next !== null) before = { before: page.next }
      return { count: changes.filter((change) => change === 'done').length, more: page.next !== null }
    })
    count += found.count
    complete &&= found.complete
  }
  return { count, complete }
}

const deleteRecords = ({ store }: Context, recipient: string, endMs: number) =>
  repeat(endMs, async () => {
    const count = await store.deleteRecords(recipient)
    return { count, more: count === stepMax }
  })

function clearRefusals({ store }: Context, recipient: string, endMs: number) {
  let after: string | null = null
  return repeat(endMs, async () => {
    const { cleared, next } = await store.clearRefusedRecipient(recipient, after)
    after = next
    return { count: cleared, more: next !== null }
  })
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
  { what: 'limits and idempotency keys, as keyed hashes', days: 1, why: 'they stop floods and second copies' },
]

/** A suppression lasts 400 days at most, and its bounces count for 90 days more. */
const suppressionsKept = {
  what: 'suppressions, with a keyed hash of the address',
  days: 490,
  why: 'without them the address would be sent mail again',
}
