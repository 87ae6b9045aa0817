/**
 * Idle: how much processor and memory a service with all its listeners uses at rest and at low rates, where
 * most services are. PostgreSQL's processor time is that of its server. Each subject runs alone.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { openClient } from '../test/support/postgres.ts'
import type { Scope } from '../test/support/temporary.ts'
import { percentile } from './loop.ts'
import { report, type Table } from './measure.ts'
import {
  type Bed,
  type Engine,
  makeBed,
  type Sink,
  startLoader,
  startPostern,
  startSink,
  subjects,
} from './processes.ts'

const rates = [1, 10, 100, 300, 1000]
const ms = 15_000
const restMs = 30_000
/** After the start and after each rate, before anything is measured. */
const settleMs = 3000

/** Milliseconds of processor time, and transactions. */
type Used = { readonly node: number; readonly postgres: number; readonly commits: number }
type Row = { readonly rate: number; readonly used: Used; readonly deliverMs: readonly number[] }
type Measured = {
  readonly name: string
  /** Resident, at the start and after the load. */
  readonly memoryMb: readonly number[]
  readonly rest: Used
  readonly rows: readonly Row[]
}

export async function run(scope: Scope): Promise<void> {
  const load = startLoader(scope)
  const sink = await startSink(scope)
  const measured: Measured[] = []
  for (const subject of subjects) {
    const ends: (() => unknown)[] = []
    const own: Scope = { after: (end) => void ends.push(end) }
    const bed = await makeBed(own, subject)
    const { port, child } = await startPostern(own, bed, {
      POSTERN_ROLES: 'api,links,worker,console,reports,auth-hooks',
      POSTERN_LINKS_LISTEN: '127.0.0.1:0',
      POSTERN_LINKS_BASE_URL: 'https://links.bench.test',
      POSTERN_CONSOLE_LISTEN: '127.0.0.1:0',
      POSTERN_AUTH_HOOKS_LISTEN: '127.0.0.1:0',
      POSTERN_SMTP_URL: `smtp://127.0.0.1:${sink.port}?connections=20`,
    })
    const pid = child.pid ?? 0
    const readUsed = await meter(own, subject.engine, bed, pid)
    const measure = async (work: () => Promise<unknown>): Promise<Used> => {
      const [before] = [await readUsed(), await work()]
      const after = await readUsed()
      return {
        node: after.node - before.node,
        postgres: after.postgres - before.postgres,
        commits: after.commits - before.commits,
      }
    }
    await sleep(settleMs)
    const memoryMb = [residentMb(pid)]
    const rest = await measure(() => sleep(restMs))
    const rows: Row[] = []
    let serial = 0
    const offer = async (rate: number) => {
      serial += 100_000
      const { begunAtMs } = await load({ ports: [port], keys: bed.keys, clients: Math.min(64, rate), ms, rate, serial })
      await sleep(200) // the last outcomes
      return { begunAtMs, first: serial }
    }
    for (const rate of rates) {
      let offered = { begunAtMs: 0, first: 0 }
      const used = await measure(async () => {
        offered = await offer(rate)
      })
      rows.push({ rate, used, deliverMs: await delivered(sink, rate, offered) })
      await sleep(settleMs)
    }
    memoryMb.push(residentMb(pid))
    measured.push({ name: subject.name, memoryMb, rest, rows })
    for (const end of ends.toReversed()) await end()
  }
  report(
    'idle',
    {
      'Processor and memory at rest': restTable(measured),
      'Processor for an email, at low rates': rateTable(measured),
    },
    measured,
  )
}

const restTable = (measured: readonly Measured[]): Table => ({
  columns: ['service', 'Node, % of a core', 'PostgreSQL, % of a core', 'MB at the start', 'MB after the load'],
  rows: measured.map(({ name, memoryMb, rest }) => [
    name,
    ((rest.node * 100) / restMs).toFixed(2),
    ((rest.postgres * 100) / restMs).toFixed(2),
    ...memoryMb.map((mb) => mb.toFixed(0)),
  ]),
})

const rateTable = (measured: readonly Measured[]): Table => ({
  columns: ['service', 'emails a second', 'Node ms', 'PostgreSQL ms', 'commits', '250: p50 ms', '250: p99 ms'],
  rows: measured.flatMap(({ name, rows }) =>
    rows.map(({ rate, used, deliverMs }) => [
      name,
      String(rate),
      ...[used.node, used.postgres, used.commits].map((sum) => ((sum * 1000) / (rate * ms)).toFixed(2)),
      ...[0.5, 0.99].map((share) => percentile(deliverMs, share).toFixed(1)),
    ]),
  ),
})

/** How long each email took from when it was due. */
async function delivered(
  sink: Sink,
  rate: number,
  { begunAtMs, first }: { begunAtMs: number; first: number },
): Promise<number[]> {
  const { taken } = await sink.report()
  const isOffered = ([n]: readonly [number, number]) => n >= first && n < first + (rate * ms) / 1000
  return taken.filter(isOffered).map(([n, atMs]) => atMs - (begunAtMs + ((n - first) * 1000) / rate))
}

/** Reads what the process and the database server of a bed have used so far. */
async function meter(scope: Scope, engine: Engine, { env }: Bed, pid: number): Promise<() => Promise<Used>> {
  if (engine === 'SQLite') return async () => ({ node: cpuMs(pid), postgres: 0, commits: 0 })
  const client = await openClient(scope, env.POSTERN_DATABASE_URL ?? '')
  const { rows } = await client.query('show data_directory')
  const folder: string = rows[0].data_directory
  const server = Number(readFileSync(`${folder}/postmaster.pid`, 'utf8').split('\n')[0])
  return async () => {
    const { rows: counts } = await client.query(
      'select xact_commit::float8 as commits from pg_stat_database where datname = current_database()',
    )
    const processes = readdirSync('/proc')
      .map(Number)
      .filter((each) => readStat(each)?.parent === server)
    const postgres = [...processes, server].reduce((sum, each) => sum + cpuMs(each), 0)
    return { node: cpuMs(pid), postgres, commits: counts[0].commits }
  }
}

const tickMs = 10

/** Processor time of a process and of its children that have ended; null if there is none. */
function readStat(pid: number): { parent: number; ms: number } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, each) => sum + Number(each), 0)
    return { parent: Number(fields[1]), ms: ticks * tickMs }
  } catch {
    return null
  }
}

const cpuMs = (pid: number): number => readStat(pid)?.ms ?? 0

const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
