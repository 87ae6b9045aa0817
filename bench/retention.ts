/**
 * Retention: how long the removal of three old days takes (`POSTERN_BENCH_EMAILS` records in all), with its
 * write-ahead log on PostgreSQL, and how long accepting takes beside it. Then the reads of operators.
 */
import { DatabaseSync } from 'node:sqlite'
import { keepDays } from '../src/domain/bounds.ts'
import { runSql } from '../test/support/postgres.ts'
import type { Scope } from '../test/support/temporary.ts'
import { fillHistory, records, useStoreAgo } from './history.ts'
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
  subjects,
  useStore,
} from './processes.ts'

/** Days that are removed at once. */
const step = 3
const days = keepDays + 2 * step
const load = { clients: 64, rate: 500 }
const loadMs = 15_000
const goes = 25

export async function run(scope: Scope, choice: Choice): Promise<void> {
  const removed: string[][] = []
  const read: string[][] = []
  const measured: Record<string, unknown> = {}
  for (const subject of subjects.filter(
    ({ engine }) => choice.engine === undefined || engine.toLowerCase() === choice.engine,
  )) {
    const bed = await makeBed(scope, subject)
    await fillHistory(subject.engine, bed, { days, unmaintained: step + 1 })
    const result = await measureRemoval(scope, subject, bed)
    const reads = await measureReads(bed)
    const { alone, beside, gone, seconds, secondsBeside, walBytes } = result
    removed.push([
      subject.name,
      count(gone),
      seconds.toFixed(1),
      walBytes === null ? '' : (walBytes / 1e6).toFixed(0),
      secondsBeside.toFixed(1),
      alone.p99Ms.toFixed(1),
      beside.p99Ms.toFixed(1),
    ])
    read.push([subject.name, ...Object.values(reads).map((ms) => ms.toFixed(1))])
    measured[subject.name] = { ...result, reads }
  }
  const tables: Record<string, Table> = {
    [`Removal of ${step} old days, of ${count(records)} records of ${days} days, alone and beside ${load.rate} emails a second`]:
      {
        columns: [
          'store',
          'records removed',
          'seconds',
          'WAL MB',
          'seconds beside load',
          'accept alone, p99 ms',
          'accept beside it, p99 ms',
        ],
        rows: removed,
      },
    'Reads of what is left, p50 ms': {
      columns: ['store', 'newest', 'of an app', 'failed', 'failed of an app', 'recipient', 'one email'],
      rows: read,
    },
  }
  report('retention', tables, measured)
}

/** Three days by themselves, and then three more beside the load. */
async function measureRemoval(scope: Scope, { engine }: Subject, bed: Bed) {
  const walAtFirst = await readWal(engine, bed)
  const seconds = await remove(bed, step)
  const wal = await readWal(engine, bed)
  const gone = records - (await countRecords(engine, bed))
  const loader = startLoader(scope)
  const { port } = await startPostern(scope, bed, { POSTERN_ROLES: 'api' })
  let serial = 700_000_000
  const offer = (ms: number) => {
    const order = { ports: [port], keys: bed.keys, ...load, ms, serial }
    serial += (load.rate * ms) / 1000
    return loader(order)
  }
  await offer(2000) // warms up
  const alone = await offer(loadMs)
  const [beside, secondsBeside] = await Promise.all([offer(loadMs), remove(bed, 0)])
  return {
    alone,
    beside,
    gone,
    seconds,
    secondsBeside,
    walBytes: wal === null || walAtFirst === null ? null : wal - walAtFirst,
  }
}

/** Removes what is older than the retention was so many days ago. Returns the seconds. */
async function remove(bed: Bed, daysAgo: number): Promise<number> {
  const begunMs = performance.now()
  await useStoreAgo(bed, daysAgo, async (store) => {
    while ((await store.maintain()).more);
  })
  return (performance.now() - begunMs) / 1000
}

async function countRecords(engine: Engine, { env }: Bed): Promise<number> {
  const url = env.POSTERN_DATABASE_URL ?? ''
  if (engine === 'PostgreSQL')
    return Number((await runSql<{ n: string }>(url, 'select count(*) as n from postern.history'))[0]?.n)
  const database = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true })
  const row = database.prepare('select count(*) as n from history').get()
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
