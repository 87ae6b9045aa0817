/** Clients that post steadily, and a check of each email that was answered 202. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EmailId } from '../../src/domain/id.ts'
import type { Store } from '../../src/store/store.ts'
import { reportCounts } from './row-reporter.ts'
import { validBody } from './service.ts'
import type { Received } from './smtp.ts'
import { atEnd, type Scope } from './temporary.ts'
import { eventually } from './wait.ts'

export type Load = {
  /** Ids of the emails answered 202. */
  readonly acknowledged: Set<EmailId>
  /** Answer counts by status; 0 for a connection that failed. */
  readonly statuses: Map<number, number>
  /** Stops the clients. */
  stop(): Promise<void>
  /** Resolves when every client has ended. */
  readonly done: Promise<void>
}

type LoadOptions = {
  /** API for a client's next post. */
  readonly api: (client: number) => string
  readonly key: string
  readonly clients: number
  /** Posts per client. Without it, until stopped. */
  readonly each?: number
  /** Repeats a post with one Idempotency-Key until it is answered 202. */
  readonly insist?: boolean
}

/** Starts to post. The clients stop at the end of the test, also of one that failed. */
export function startLoad(
  scope: Scope,
  { api, key, clients, each = Number.POSITIVE_INFINITY, insist = false }: LoadOptions,
): Load {
  const state = { on: true }
  const acknowledged = new Set<EmailId>()
  const statuses = new Map<number, number>()
  const post = async (client: number, body: string, more: Record<string, string>): Promise<boolean> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more }
    try {
      const response = await fetch(`${api(client)}/v1/email`, { method: 'POST', headers, body })
      await response.arrayBuffer()
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      const id = response.headers.get('email-id') as EmailId | null
      if (response.status === 202 && id !== null) acknowledged.add(id)
      if (response.status === 503) await sleep(20)
      return response.status === 202
    } catch {
      statuses.set(0, (statuses.get(0) ?? 0) + 1)
      await sleep(20) // its process was killed: not acknowledged
      return false
    }
  }
  const run = async (client: number) => {
    for (let i = 0; i < each && state.on; i++) {
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
      const body = JSON.stringify(validBody({ to: `c${client}n${i}@example.com`, expiresAt }))
      const headers: Record<string, string> = insist ? { 'idempotency-key': `c${client}n${i}` } : {}
      while (!(await post(client, body, headers)) && insist && state.on);
    }
  }
  const done = Promise.all(Array.from({ length: clients }, (_, client) => run(client))).then(() => {})
  const stop = () => {
    state.on = false
    return done
  }
  atEnd(scope, stop)
  return { acknowledged, statuses, stop, done }
}

export type Account = {
  readonly store: Store
  readonly received: readonly Received[]
  readonly acknowledged: ReadonlySet<EmailId>
  /** How often the fault occurred. */
  readonly tried?: number
}

/**
 * Waits until nothing is queued. Then every acknowledged email must be delivered, with at most one
 * extra copy for each attempt that is ambiguous or ended without a record.
 */
export async function assertAllDelivered(
  t: TestContext,
  { store, received, acknowledged, tried = 1 }: Account,
): Promise<void> {
  // An email that was claimed at many kills waits up to five minutes between two attempts.
  await eventually(async () => (await store.readQueueGauge()).depth === 0, 900_000)
  const copies = new Map<string, number>()
  for (const { raw } of received) {
    const id = /^X-Entity-Ref-ID: (\w+)/m.exec(raw)?.[1] ?? ''
    copies.set(id, (copies.get(id) ?? 0) + 1)
  }
  const counted = { delivered: 0, duplicates: 0 }
  for (const id of acknowledged) {
    const record = await store.findEmail(id)
    const count = copies.get(id) ?? 0
    const trail = record?.trail ?? []
    const unclear = trail.filter(({ outcome, ambiguous }) => outcome === 'lost' || ambiguous === true).length
    assert.ok(count <= 1 + unclear, `${id}: ${count} copies, ${unclear} unclear attempts`)
    counted.duplicates += Math.max(0, count - 1)
    assert.equal(record?.state, 'delivered', id)
    assert.ok(count >= 1, `${id} was acknowledged and never received`)
    counted.delivered += 1
  }
  t.diagnostic(`of ${acknowledged.size} acknowledged: ${JSON.stringify(counted)}`)
  reportCounts(t, { tried, lost: 0, duplicated: counted.duplicates })
}
