/** Shared by the cases about suppressions: one store for many of them, deliveries, reports, requests. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { latelyMinutes } from '../../src/domain/bounds.ts'
import type { DeliveryOutcome } from '../../src/domain/delivery/outcome.ts'
import type { ReportFinding, ReportSource } from '../../src/domain/delivery/report.ts'
import { parseReply } from '../../src/domain/delivery/smtp-reply.ts'
import type { Destination } from '../../src/domain/delivery/suppression.ts'
import { minuteMs } from '../../src/domain/duration.ts'
import type { EmailId } from '../../src/domain/id.ts'
import type { EmailAddress } from '../../src/domain/request/email-address.ts'
import type { Strike, SuppressionQuery, SuppressionRecord } from '../../src/store/report-store.ts'
import type { Store } from '../../src/store/store.ts'
import { operator } from '../support/operator.ts'
import { atEnd } from '../support/temporary.ts'
import { claim, day, delivered, newSender, request, type Sender, type Subject } from './subject.ts'

type SharedSubject = Subject & {
  /** An app of this case alone. */
  readonly newSender: (limits?: Parameters<typeof newSender>[2]) => Promise<Sender>
}

/**
 * Cases that share a store, since a new one takes longer than a case. Each begins with an empty queue,
 * without suppressions, and after the time that the mass-bounce brake looks at; its apps are its own.
 */
export type SharedCases = Readonly<Record<string, (subject: SharedSubject) => Promise<void>>>

export const share =
  (cases: SharedCases) =>
  async (t: TestContext, subject: Subject): Promise<void> => {
    const { advance, store } = subject
    const reopen = async (options?: Parameters<Subject['reopen']>[0]) => {
      const other = await subject.reopen(options)
      atEnd(t, () => other.close())
      return other
    }
    let serial = 0
    for (const [name, run] of Object.entries(cases))
      await t.test(name, async () => {
        advance((latelyMinutes + 20) * minuteMs) // the emails of the case before expire
        await claim(store) // takes back the leases of the case before
        while ((await store.maintain()).more);
        assert.equal((await store.readQueueGauge()).depth, 0)
        await clear(store)
        await run({ ...subject, reopen, newSender: (limits) => newSender(store, `acme-${++serial}`, limits) })
      })
  }

/** More than a process's estimate of the server's clock may be wrong, and than a case takes. */
export const clockMs = 10_000
export const hour = 3_600_000
export const reply = parseReply('550 5.1.1 no such user')
export const bounced = {
  kind: 'bounced',
  about: 'recipient',
  permanent: true,
  cause: 'no_mailbox',
  reply,
} as const
export const complained = { kind: 'complained' } as const
export const ada = 'ada@example.com'
export const bob = 'bob@example.com'

/** Emails to each of the recipients, which have all ended. */
export async function deliver(
  store: Store,
  sender: Sender,
  recipients: readonly string[],
  outcome: DeliveryOutcome = delivered,
): Promise<EmailId[]> {
  const results = await Promise.all(recipients.map((to) => store.enqueue(request(store, sender, { to }))))
  const claims = await claim(store, recipients.length)
  for (const isDone of await Promise.all(claims.map((lease) => store.recordOutcome(lease, outcome)))) assert.ok(isDone)
  return results.map((result) => {
    assert.ok(result.kind === 'queued')
    return result.emailId
  })
}

type From = { readonly source?: ReportSource; readonly destination?: Destination }

/** The effect of a report that is recorded; null if it is there already. */
export async function report(
  store: Store,
  email: EmailId | undefined,
  finding: ReportFinding,
  { source = 'mail', destination = 'other' }: From = {},
): Promise<Strike | null> {
  assert.ok(email)
  const result = await store.recordReport({ email, source, finding, destination })
  if (result.kind === 'already') return null
  assert.ok(result.kind === 'recorded', result.kind)
  return result.strike
}

export const list = async (store: Store, query: Partial<SuppressionQuery> = {}): Promise<SuppressionRecord[]> => [
  ...(await store.listSuppressions({ apps: null, limit: 1000, ...query })).items,
]

/** How many were removed. */
export async function clear(store: Store, query: SuppressionQuery = { apps: null }): Promise<number> {
  const { removed, next } = await store.clearSuppressions(query, { actor: operator, after: null })
  assert.equal(next, null)
  return removed
}

export const strikeRefused = (store: Store, email: EmailId | undefined): Promise<Strike> =>
  store.strikeRefused({ email: email as EmailId, destination: 'other', reply: reply.text })

export const nameOf = (store: Store, to: string): string => store.nameRecipient(to as EmailAddress)

export async function find(store: Store, to: string): Promise<SuppressionRecord> {
  const [found, ...more] = await store.findSuppressions(nameOf(store, to))
  assert.ok(found && more.length === 0)
  return found
}

/** Suppresses by an operator, of all apps without a sender. */
export async function suppress(store: Store, sender: Sender | null, to: string, forMs = day) {
  const until = store.now() + forMs
  const recipient = nameOf(store, to)
  const set = { app: sender?.app.id ?? null, recipient, destination: 'other', until } as const
  const made = await store.setSuppression(set, operator)
  assert.ok(made !== null && made !== 'too_many')
  return made
}

export type Asked = Parameters<typeof request>[2]
export const ask = async (store: Store, sender: Sender, more: Asked): Promise<string> =>
  (await store.enqueue(request(store, sender, more))).kind
