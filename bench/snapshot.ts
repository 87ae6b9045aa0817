/**
 * A backup on PostgreSQL holds one snapshot for hours, and vacuum removes no dead row until it ends.
 * Claims and finishes 70,000 emails under one snapshot, and times the claims of each tenth.
 */
import pg from 'pg'
import type { Scope } from '../test/support/temporary.ts'
import { percentile } from './loop.ts'
import { count, report } from './measure.ts'
import { makeBed, subjectOf, useStore } from './processes.ts'
import { deliverAll, enqueueMany, sendersOf } from './senders.ts'

const emails = 70_000
const step = 7000
const claimed = 16

export async function run(scope: Scope): Promise<void> {
  const bed = await makeBed(scope, subjectOf('PostgreSQL'))
  const backup = new pg.Client(bed.env.POSTERN_DATABASE_URL)
  await backup.connect()
  const marks: { claimed: number; p50Ms: number; p99Ms: number }[] = []
  await useStore(bed, async (store) => {
    const senders = sendersOf(bed)
    await backup.query('begin isolation level repeatable read')
    await backup.query('select count(*) from postern.queue') // takes the snapshot
    for (let done = 0; done < emails; done += step) {
      await enqueueMany(store, senders, { emails: step, clients: 256 })
      const times: number[] = []
      for (let left = step; left > 0; ) {
        const begunMs = performance.now()
        const { claims } = await store.claimDue({ max: claimed, perApp: claimed, leases: [] })
        times.push(performance.now() - begunMs)
        left -= claims.length
        await deliverAll(store, claims)
      }
      marks.push({ claimed: done + step, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) })
    }
    await backup.query('commit')
  })
  await backup.end()
  report(
    'snapshot',
    {
      [`Claims of ${claimed} under one open snapshot on PostgreSQL`]: {
        columns: ['emails claimed and finished', 'p50 ms', 'p99 ms'],
        rows: marks.map((mark) => [count(mark.claimed), mark.p50Ms.toFixed(2), mark.p99Ms.toFixed(2)]),
      },
    },
    marks,
  )
}
