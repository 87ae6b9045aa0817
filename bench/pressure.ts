/**
 * Pressure on PostgreSQL, on Postern and on a web application with pg-boss, each with a server of its own: a
 * steady load before, during and after a long transaction, readers with old snapshots, a burst, more load,
 * a restart, killed backends, and no free connection. The cases are those of
 * github.com/hardbyte/postgresql-job-queue-benchmarking. `--only` names some.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { openClient, type PostgresServer, runSql, startCluster, startPostgres } from '../test/support/postgres.ts'
import type { Scope } from '../test/support/temporary.ts'
import { type LoopResult, monotonicMs, percentile } from './loop.ts'
import type { Choice } from './main.ts'
import { count, report, type Table } from './measure.ts'
import {
  makeBed,
  peerKeys,
  type Sink,
  startLoader,
  startPeer,
  startPostern,
  startSink,
  subjectOf,
} from './processes.ts'

const rate = 100
const clients = 256
const connections = 20
const beforeMs = 15_000
const afterMs = 20_000
/** Mail that is delivered later counts as lost. */
const settleMs = 60_000
const readers = 4

type Pressure = {
  readonly ms: number
  /** Times the usual rate. */
  readonly load?: number
  /** Runs for `ms` at most, and has ended what it began when it returns. */
  readonly press?: (scope: Scope, server: PostgresServer, ms: number) => Promise<void>
}

const pressures: Readonly<Record<string, Pressure>> = {
  'a transaction left open': { ms: 120_000, press: (scope, { url }, ms) => holdTransaction(scope, url, ms) },
  'readers with old snapshots': {
    ms: 120_000,
    press: async (scope, { url }, ms) => {
      const read = async (n: number) => {
        await sleep((n * ms) / 2 / readers)
        for (let round = 0; round < 2; round++) await holdTransaction(scope, url, ms / 4)
      }
      await Promise.all(Array.from({ length: readers }, (_, n) => read(n)))
    },
  },
  'a burst, 10 times the load': { ms: 10_000, load: 10 },
  '4 times the load': { ms: 60_000, load: 4 },
  'a restart of PostgreSQL': { ms: 20_000, press: restart },
  'all sessions killed each second': {
    ms: 20_000,
    press: async (_scope, { url }, ms) => {
      const others = "backend_type = 'client backend' and pid <> pg_backend_pid()"
      for (let n = 0; n < ms / 1000; n++) {
        await runSql(url, `select pg_terminate_backend(pid) from pg_stat_activity where ${others}`)
        await sleep(1000)
      }
    },
  },
  'no free connection': { ms: 20_000, press: holdConnections },
}

/** A transaction that has read, and written so that it has a number of its own, and then does nothing. */
async function holdTransaction(scope: Scope, url: string, ms: number): Promise<void> {
  const client = await openClient(scope, url)
  await client.query('begin isolation level repeatable read')
  await client.query('select pg_current_xact_id(), (select count(*) from pg_class)')
  await sleep(ms)
  await client.query('rollback')
  await client.end()
}

async function restart(scope: Scope, { folder, pid, port }: PostgresServer): Promise<void> {
  await sleep(2000)
  process.kill(pid, 'SIGINT') // a fast shutdown
  await sleep(3000)
  await startCluster(scope, folder, { port: String(port) })
}

async function holdConnections(scope: Scope, { url }: PostgresServer, ms: number): Promise<void> {
  const held: pg.Client[] = []
  try {
    for (;;) held.push(await openClient(scope, url))
  } catch {
    // none is left
  }
  await sleep(ms)
  await Promise.all(held.map((client) => client.end()))
}

const services = { Postern: startOurs, 'Fastify with pg-boss': startPgBoss } as const
type Site = { readonly port: number; readonly keys: readonly string[] }

async function startOurs(scope: Scope, url: string, sink: Sink): Promise<Site> {
  const bed = await makeBed(scope, subjectOf('PostgreSQL'), url)
  const { port } = await startPostern(scope, bed, {
    POSTERN_ROLES: 'api,worker',
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${sink.port}?connections=${connections}`,
  })
  return { port, keys: bed.keys }
}

async function startPgBoss(scope: Scope, databaseUrl: string, { port: sinkPort }: Sink): Promise<Site> {
  const file = new URL('./peers/pg-boss.ts', import.meta.url)
  const order = { databaseUrl, sinkPort, connections }
  const port = await startPeer(scope, file, { ...order, role: 'api' })
  await startPeer(scope, file, { ...order, role: 'worker' })
  return { port, keys: peerKeys }
}

/** A stretch of steady load. */
type Stretch = {
  readonly first: number
  readonly rate: number
  readonly ms: number
  readonly result: LoopResult
}
type Measured = {
  readonly accepted: readonly number[]
  readonly delivered: readonly number[]
  readonly p99Ms: readonly number[]
  readonly refused: number
  readonly deadRows: number
  readonly normalAfterS: number
  readonly lost: number
  readonly twice: number
}

export async function run(_scope: Scope, { only }: Choice): Promise<void> {
  const rows: string[][] = []
  const measured: Record<string, unknown> = {}
  const wanted = Object.entries(pressures).filter(([name]) => only === undefined || only.split(',').includes(name))
  for (const [name, pressure] of wanted)
    for (const [service, start] of Object.entries(services)) {
      const ends: (() => unknown)[] = []
      const result = await measure({ after: (end) => void ends.push(end) }, start, pressure)
      for (const end of ends.toReversed()) await end()
      console.log(name, service, JSON.stringify(result))
      measured[`${name}, ${service}`] = result
      rows.push([`${name}: ${service}`, ...cellsOf(result)])
    }
  report('pressure', { 'Before, during and after': { columns, rows } }, measured)
}

const columns: Table['columns'] = [
  'pressure, service',
  'accepted a second',
  'delivered a second',
  '250: p99 ms',
  'refused',
  'dead rows at most',
  'as usual after s',
  'lost',
  'twice',
]
const cellsOf = ({ accepted, deadRows, delivered, lost, normalAfterS, p99Ms, refused, twice }: Measured): string[] => [
  ...[accepted, delivered, p99Ms].map((values) =>
    values.map((each) => (Number.isNaN(each) ? 'none' : count(each))).join(', '),
  ),
  ...[refused, deadRows].map(count),
  Number.isFinite(normalAfterS) ? normalAfterS.toFixed(1) : 'never',
  ...[lost, twice].map(count),
]

async function measure(
  scope: Scope,
  start: (typeof services)[keyof typeof services],
  { load: times = 1, ms, press = () => sleep(ms) }: Pressure,
): Promise<Measured> {
  const server = await startPostgres(scope)
  const [sink, load] = [await startSink(scope), startLoader(scope, { anyAnswer: true })]
  const { keys, port } = await start(scope, server.url, sink)
  const offer = async (offered: number, forMs: number, first: number): Promise<Stretch> => {
    const order = { ports: [port], keys, clients, ms: forMs, rate: offered, serial: first }
    return { first, rate: offered, ms: forMs, result: await load(order) }
  }
  const watch = watchDeadRows(server.url)
  await offer(rate, 5000, 500_000) // until it is warm
  const before = await offer(rate, beforeMs, 0)
  const pressed = press(scope, server, ms).then(monotonicMs)
  const during = await offer(rate * times, ms, 100_000)
  const pressedUntilMs = await pressed
  const after = await offer(rate, afterMs, 200_000)
  const stretches = [before, during, after]
  const sum = (pick: (answers: LoopResult['answers']) => number) =>
    stretches.reduce((total, { result }) => total + pick(result.answers), 0)
  const queued = sum((answers) => answers['202'] ?? 0)
  const arrivals = await collect(sink, queued)
  const numbers = new Map(arrivals.toReversed()) // the first arrival of each
  const lateness = stretches.map((stretch) => readLateness(stretch, numbers))
  const p99Ms = lateness.map((each) => percentile([...each.values()], 0.99))
  const lateMs = Math.max(1000, 3 * (p99Ms[0] ?? 0))
  const late = lateness.flatMap((each) => [...each].filter(([, value]) => value > lateMs).map(([atMs]) => atMs))
  const lost = Math.max(0, queued - numbers.size)
  return {
    accepted: stretches.map(({ ms: forMs, result }) => ((result.answers['202'] ?? 0) * 1000) / forMs),
    delivered: stretches.map(({ ms: forMs, result: { begunAtMs } }) => {
      const inTime = arrivals.filter(([, atMs]) => atMs >= begunAtMs && atMs < begunAtMs + forMs)
      return (inTime.length * 1000) / forMs
    }),
    p99Ms,
    refused: sum((answers) => Object.values(answers).reduce((total, each) => total + each, 0)) - queued,
    deadRows: watch(),
    normalAfterS: lost > 0 ? Number.POSITIVE_INFINITY : Math.max(0, Math.max(...late, 0) - pressedUntilMs) / 1000,
    lost,
    twice: arrivals.length - numbers.size,
  }
}

/** How late each delivered email of a stretch was, by the time of its delivery. */
function readLateness({ first, ms, rate: offered, result }: Stretch, numbers: ReadonlyMap<number, number>) {
  const lateness = new Map<number, number>()
  for (let k = 0; k < (offered * ms) / 1000; k++) {
    const atMs = numbers.get(first + k)
    if (atMs !== undefined) lateness.set(atMs, atMs - (result.begunAtMs + (k * 1000) / offered))
  }
  return lateness
}

/** The emails that arrive until there are `expected`, without those that were sent to warm up. */
async function collect(sink: Sink, expected: number): Promise<(readonly [number, number])[]> {
  const arrivals: (readonly [number, number])[] = []
  for (const untilMs = monotonicMs() + settleMs; monotonicMs() < untilMs; await sleep(200)) {
    arrivals.push(...(await sink.report()).taken.filter(([n]) => n < 500_000))
    if (new Set(arrivals.map(([n]) => n)).size >= expected) break
  }
  return arrivals
}

/** Looks each second; returns a function that ends this and returns the highest count. */
function watchDeadRows(url: string): () => number {
  let most = 0
  const look = async () => {
    const sql = 'select sum(n_dead_tup)::integer as dead from pg_stat_user_tables'
    const rows = await runSql<{ dead: number }>(url, sql).catch(() => [])
    most = Math.max(most, rows[0]?.dead ?? 0)
  }
  const timer = setInterval(look, 1000)
  return () => {
    clearInterval(timer)
    return most
  }
}
