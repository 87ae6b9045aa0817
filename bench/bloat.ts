/**
 * Passes 1,000,000 emails through the queue on PostgreSQL, with a claiming worker that keeps up. Reports
 * the size of each table and its indexes, and the time of a claim, after each tenth.
 * `POSTERN_BENCH_EMAILS` sets the number of emails.
 */

import type { Store } from '../src/store/store.ts'
import { runSql } from '../test/support/postgres.ts'
import type { Scope } from '../test/support/temporary.ts'
import { count, median, report } from './measure.ts'
import { type Bed, makeBed, subjectOf, useStore } from './processes.ts'
import { deliverAll, enqueueNext, sendersOf } from './senders.ts'

const emails = Number(process.env.POSTERN_BENCH_EMAILS ?? 1_000_000)
const ahead = 5000
const steps = 10

const sizes = `select c.relname, pg_table_size(c.oid) as "table", pg_indexes_size(c.oid) as indexes, n_dead_tup as dead
  from pg_class c join pg_stat_user_tables s on s.relid = c.oid
  where schemaname = 'postern' and c.relname in ('queue', 'queue_depth', 'usage_day', 'rate_bucket', 'idempotency', 'history')
  order by c.relname`

type Size = { relname: string; table: string; indexes: string; dead: string }

export async function run(scope: Scope): Promise<void> {
  const bed = await makeBed(scope, subjectOf('PostgreSQL'))
  await useStore(bed, (store) => measure(store, bed))
}

async function measure(store: Store, bed: Bed): Promise<void> {
  const url = bed.env.POSTERN_DATABASE_URL ?? ''
  const senders = sendersOf(bed)
  const written = async () =>
    Number((await runSql<{ n: string }>(url, "select pg_current_wal_lsn() - '0/0' as n"))[0]?.n)
  const marks: { finished: number; claimMs: number; perSecond: number; walBytes: number; sizes: Size[] }[] =
    []
  for (let step = 1; step <= steps; step++) {
    const before = await written()
    const begunMs = performance.now()
    const claimMs = await pass(store, Math.ceil(emails / steps), () => enqueueNext(store, senders))
    const perSecond = (emails / steps / (performance.now() - begunMs)) * 1000
    const walBytes = ((await written()) - before) / (emails / steps)
    marks.push({
      finished: (emails / steps) * step,
      claimMs,
      perSecond,
      walBytes,
      sizes: await runSql<Size>(url, sizes),
    })
  }
  const tables = marks[0]?.sizes.map((size) => size.relname) ?? []
  const mebibytes = (size: Size | undefined) =>
    `${(Number(size?.table) / 2 ** 20).toFixed(1)} + ${(Number(size?.indexes) / 2 ** 20).toFixed(1)}`
  report(
    'bloat',
    {
      'MiB of table + indexes, and the median claim of 64, after so many emails': {
        columns: ['finished', 'a second', 'claim ms', 'WAL bytes an email', ...tables],
        rows: marks.map(({ finished, claimMs, perSecond, walBytes, sizes: each }) => [
          count(finished),
          count(perSecond),
          claimMs.toFixed(2),
          count(walBytes),
          ...tables.map((name) => mebibytes(each.find((size) => size.relname === name))),
        ]),
      },
    },
    marks,
  )
}

/** Passes `howMany` emails through, at most `ahead` of them queued. Returns the median claim time. */
async function pass(store: Store, howMany: number, enqueue: () => Promise<void>): Promise<number> {
  const state = { sent: 0, finished: 0 }
  const producers = Array.from({ length: 128 }, async () => {
    while (state.sent < howMany) {
      state.sent += 1
      await enqueue()
      while (state.sent - state.finished > ahead) await new Promise((resolve) => setImmediate(resolve))
    }
  })
  const times: number[] = []
  const work = (async () => {
    while (state.finished < howMany) {
      const begunMs = performance.now()
      const { claims } = await store.claimDue({ max: 64, perApp: 64, leases: [] })
      if (claims.length > 0) times.push(performance.now() - begunMs)
      await deliverAll(store, claims)
      state.finished += claims.length
    }
  })()
  await Promise.all([...producers, work])
  return median(times)
}
