/**
 * Retention: how long the removal of three old days takes of 33 (`POSTERN_BENCH_EMAILS` records in all), with
 * its write-ahead log on PostgreSQL, and how long accepting takes beside it. Then reads of operators.
 */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { keepDays } from '../src/domain/bounds.ts'
import { dayMs } from '../src/domain/duration.ts'
import { runSql } from '../test/support/postgres.ts'
import type { Scope } from '../test/support/temporary.ts'
import { fillHistory, records } from './history.ts'
import { percentile } from './loop.ts'
import type { Choice } from './main.ts'
import { count, report, type Table } from './measure.ts'
import {
  type Bed,
  type Engine,
  makeBed,
  type Subject,
  startLoader,
  startPostern,
  startSink,
  subjects,
  useStore,
} from './processes.ts'

const days = keepDays + 3
const load = { clients: 64, rate: 500 }
/** As long as most removals take. */
const loadMs = 15_000
const pauseMs = 100
const goes = 25

export async function run(scope: Scope, choice: Choice): Promise<void> {
  const removed: string[][] = []
  const read: string[][] = []
  const measured: Record<string, unknown> = {}
  for (const subject of subjects.filter(
    ({ engine }) => choice.engine === undefined || engine.toLowerCase() === choice.engine,
  )) {
    const bed = await makeBed(scope, subject)
    await fillHistory(subject.engine, bed, days)
    const result = await measureRemoval(scope, subject, bed)
    const reads = await measureReads(bed)
    const { beside, alone, gone, seconds, walBytes } = result
    removed.push([
      subject.name,
      count(gone),
      seconds.toFixed(1),
      walBytes === null ? '' : (walBytes / 1e6).toFixed(0),
      beside.p99Ms.toFixed(1),
      alone.p99Ms.toFixed(1),
    ])
    read.push([subject.name, ...Object.values(reads).map((ms) => ms.toFixed(1))])
    measured[subject.name] = { ...result, reads }
  }
  const tables: Record<string, Table> = {
    [`Removal of what is older than ${keepDays} days, of ${count(records)} records of ${days} days`]: {
      columns: ['store', 'records removed', 'seconds', 'WAL MB', 'accept beside it, p99 ms', 'accept after it, p99 ms'],
      rows: removed,
    },
    'Reads of what is left, p50 ms': {
      columns: ['store', 'newest', 'of an app', 'failed', 'failed of an app', 'recipient', 'one email'],
      rows: read,
    },
  }
  report('retention', tables, measured)
}

/** The worker removes what is old as it starts. */
async function measureRemoval(scope: Scope, { engine }: Subject, bed: Bed) {
  const sink = await startSink(scope)
  const loader = startLoader(scope)
  const { port } = await startPostern(scope, bed, { POSTERN_ROLES: 'api' })
  let serial = 700_000_000
  const offer = (ms: number) => {
    const order = { ports: [port], keys: bed.keys, ...load, ms, serial }
    serial += (load.rate * ms) / 1000
    return loader(order)
  }
  const filledAt = Date.now()
  await offer(2000) // warms up
  const before = await readWal(engine, bed)
  const begunMs = performance.now()
  const [, beside, seconds] = await Promise.all([
    startPostern(scope, bed, { POSTERN_ROLES: 'worker', POSTERN_SMTP_URL: `smtp://127.0.0.1:${sink.port}` }),
    offer(loadMs),
    untilRemoved(bed).then(() => (performance.now() - begunMs) / 1000),
  ])
  const between = await readWal(engine, bed)
  const gone = records - (await countRecords(engine, bed, filledAt))
  const againMs = performance.now()
  const alone = await offer(loadMs)
  const after = await readWal(engine, bed)
  // As much of the log as the same time took without the removal.
  const share = (againMs - begunMs) / (performance.now() - againMs)
  const walBytes =
    before === null || between === null || after === null ? null : between - before - (after - between) * share
  return { beside, alone, gone, seconds, walBytes }
}

/** On PostgreSQL, days go as a whole. */
const untilRemoved = (bed: Bed): Promise<void> =>
  useStore(bed, async (store) => {
    const query = { limit: 1, until: Math.floor((Date.now() - keepDays * dayMs) / dayMs) * dayMs }
    while ((await store.listEmails(query)).items.length > 0) await sleep(pauseMs)
  })

async function countRecords(engine: Engine, { env }: Bed, beforeMs: number): Promise<number> {
  const url = env.POSTERN_DATABASE_URL ?? ''
  const text = (table: string) => `select count(*) as n from ${table} where accepted_at < ${beforeMs}`
  if (engine === 'PostgreSQL') return Number((await runSql<{ n: string }>(url, text('postern.history')))[0]?.n)
  const database = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true })
  const row = database.prepare(text('history')).get()
  database.close()
  return Number(row?.n)
}

async function readWal(engine: Engine, { env }: Bed): Promise<number | null> {
  if (engine === 'SQLite') return null
  const text = "select (pg_current_wal_lsn() - '0/0')::float8 as bytes"
  return (await runSql<{ bytes: number }>(env.POSTERN_DATABASE_URL ?? '', text))[0]?.bytes ?? null
}

const measureReads = (bed: Bed): Promise<Record<string, number>> =>
  useStore(bed, async (store) => {
    const limit = 50
    const app = (await store.listApps())[3]?.id
    const [email] = (await store.listEmails({ limit, state: 'failed' })).items.slice(-1)
    if (app === undefined || email === undefined) throw new Error('the bed has no records')
    const time = async (work: () => Promise<unknown>) => {
      const times: number[] = []
      for (let n = 0; n < goes; n++) {
        const begunMs = performance.now()
        await work()
        times.push(performance.now() - begunMs)
      }
      return percentile(times, 0.5)
    }
    return {
      newest: await time(() => store.listEmails({ limit })),
      ofApp: await time(() => store.listEmails({ limit, app })),
      failed: await time(() => store.listEmails({ limit, state: 'failed' })),
      failedOfApp: await time(() => store.listEmails({ limit, app, state: 'failed' })),
      recipient: await time(() => store.listEmails({ limit, recipient: email.recipient })),
      one: await time(() => store.findEmail(email.id)),
    }
  })
