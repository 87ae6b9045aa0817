/**
 * The cost of a backlog: the time to accept and to claim, the size of the store and the memory of the
 * service, with 0, 10,000, 100,000 and 1,000,000 queued emails for as many recipients. Levels above
 * `POSTERN_BENCH_EMAILS` are left out.
 */
import { readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Store } from '../src/store/store.ts'
import { runSql } from '../test/support/postgres.ts'
import type { Scope } from '../test/support/temporary.ts'
import { lineChart, writeChart } from './chart.ts'
import { percentile } from './loop.ts'
import { count, report, type Table } from './measure.ts'
import {
  type Bed,
  type Engine,
  engines,
  makeBed,
  readMetric,
  startLoader,
  startPostern,
  subjectOf,
  useStore,
} from './processes.ts'
import { type BenchSender, deliverAll, enqueueMany, sendersOf } from './senders.ts'

const most = Number(process.env.POSTERN_BENCH_EMAILS ?? 1_000_000)
const levels = [0, 10_000, 100_000, 1_000_000].filter((level) => level <= most)
const base = 1
const clients = 64
/** Few compared with the smallest backlog. The median of `goes` runs counts. */
const accepted = { goes: 5, emails: 1500 }
const claims = 40
const claimed = 32
const served = { rate: 500, ms: 3000 }

type Level = {
  readonly queued: number
  readonly acceptUs: number
  readonly claimMs: number
  readonly storedMiB: number
  readonly memoryMiB: number
}

export async function run(scope: Scope): Promise<void> {
  const load = startLoader(scope)
  const measured = new Map<Engine, Level[]>()
  for (const engine of engines) {
    const bed = await makeBed(scope, subjectOf(engine))
    const own: Level[] = []
    measured.set(engine, own)
    for (const queued of levels) {
      const times = await useStore(bed, (store) => measureStore(store, sendersOf(bed), queued))
      const storedMiB = await storedBytes(engine, bed).then((bytes) => bytes / 2 ** 20)
      const memoryMiB = await measureMemory(bed, load, queued)
      own.push({ queued, ...times, storedMiB, memoryMiB })
    }
  }
  const tables = Object.fromEntries([...measured].map(([engine, own]) => [`A backlog on ${engine}`, table(own)]))
  report('backlog', tables, Object.fromEntries(measured))
  writeChart('backlog', chart(measured))
}

async function measureStore(store: Store, senders: readonly BenchSender[], queued: number) {
  const { depth } = await store.readQueueGauge()
  await enqueueMany(store, senders, { emails: Math.max(0, queued - depth), clients: 256 })
  const claimMs = await measureClaims(store)
  const times: number[] = []
  for (let go = 0; go < accepted.goes; go++) {
    const begunMs = performance.now()
    await enqueueMany(store, senders, { emails: accepted.emails, clients })
    times.push(performance.now() - begunMs)
  }
  return { claimMs, acceptUs: (percentile(times, 0.5) * 1000) / accepted.emails }
}

/** The median time of a claim in ms; NaN when nothing is queued. */
async function measureClaims(store: Store): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < claims; n++) {
    const begunMs = performance.now()
    const { claims: held } = await store.claimDue({ max: claimed, perApp: claimed, leases: [] })
    times.push(performance.now() - begunMs)
    if (held.length === 0) return Number.NaN
    await deliverAll(store, held)
  }
  return percentile(times, 0.5)
}

async function storedBytes(engine: Engine, { env }: Bed): Promise<number> {
  const address = env.POSTERN_DATABASE_URL ?? ''
  if (engine === 'PostgreSQL') {
    const [row] = await runSql<{ bytes: string }>(address, 'select pg_database_size(current_database()) as bytes')
    return Number(row?.bytes)
  }
  const folder = dirname(address.slice('sqlite:'.length))
  return readdirSync(folder).reduce((bytes, file) => bytes + statSync(join(folder, file)).size, 0)
}

/** Memory of `postern serve` in MiB under a steady load. Its relay is down, so the backlog stays. */
async function measureMemory(bed: Bed, load: ReturnType<typeof startLoader>, queued: number): Promise<number> {
  const ends: (() => unknown)[] = []
  const { port, ops } = await startPostern({ after: (end) => void ends.push(end) }, bed)
  await load({ ports: [port], keys: bed.keys, clients, ...served, serial: 500_000_000 + queued })
  const bytes = await readMetric(ops, 'process_resident_memory_bytes')
  for (const end of ends) await end()
  return bytes / 2 ** 20
}

const shown = (value: number): string => (Number.isNaN(value) ? '' : value.toFixed(2))

function table(own: readonly Level[]): Table {
  const { acceptUs = Number.NaN, claimMs = Number.NaN } = own[base] ?? {}
  return {
    columns: [
      'queued',
      'accept, µs each',
      'ratio',
      `claim of ${claimed}, ms`,
      'ratio',
      'stored MiB, with WAL',
      'RSS MiB',
    ],
    rows: own.map((level) => [
      count(level.queued),
      level.acceptUs.toFixed(0),
      (level.acceptUs / acceptUs).toFixed(2),
      shown(level.claimMs),
      shown(level.claimMs / claimMs),
      level.storedMiB.toFixed(0),
      level.memoryMiB.toFixed(0),
    ]),
  }
}

const chart = (measured: ReadonlyMap<Engine, readonly Level[]>): string =>
  lineChart({
    title: 'Accepting and claiming with a backlog',
    x: { label: 'emails queued', ticks: levels.map(count) },
    y: { label: 'ms' },
    lines: [...measured].flatMap(([engine, own]) => [
      { name: `claim of ${claimed}, ${engine}`, values: own.map((level) => level.claimMs) },
      { name: `10 accepted, ${engine}`, values: own.map((level) => level.acceptUs / 100) },
    ]),
  })
