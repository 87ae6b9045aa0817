/**
 * Idle: how much processor and memory the built package with all its listeners uses at rest and at low rates,
 * where most services are. PostgreSQL's processor time is that of its server. Each subject runs alone.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Variables } from '../test/support/cli.ts'
import type { Scope } from '../test/support/temporary.ts'
import { percentile } from './loop.ts'
import { report, type Table } from './measure.ts'
import { newMeter, residentMb, type Used } from './meter.ts'
import { builtFrom, makeBed, type Sink, startLoader, startPostern, startSink, subjects } from './processes.ts'

const rates = [1, 10, 100, 300, 1000]
const ms = 15_000
const restMs = 30_000
/** After the start and after each rate, before anything is measured. */
const settleMs = 3000

const allListeners: Variables = {
  POSTERN_ROLES: '', // all
  POSTERN_LINKS_LISTEN: '127.0.0.1:0',
  POSTERN_LINKS_BASE_URL: 'https://links.bench.test',
  POSTERN_CONSOLE_LISTEN: '127.0.0.1:0',
  POSTERN_AUTH_HOOKS_LISTEN: '127.0.0.1:0',
  POSTERN_REPORTS_LISTEN: '127.0.0.1:0',
  POSTERN_REPORTS_KEYS: 'basic:bench:0123456789abcdef',
  POSTERN_BOUNCE_LISTEN: '127.0.0.1:0',
  POSTERN_BOUNCE_ADDRESS: 'bounces@bench.test',
  POSTERN_SUBMISSION_LISTEN: '127.0.0.1:0',
}

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
    const built = { ...bed, checkout: await builtFrom(bed.checkout) }
    const { port, child } = await startPostern(own, built, {
      ...allListeners,
      POSTERN_SMTP_URL: `smtp://127.0.0.1:${sink.port}?connections=20`,
    })
    const pid = child.pid ?? 0
    const measure = await newMeter(own, subject.engine, bed, pid)
    await sleep(settleMs)
    const memoryMb = [residentMb(pid)]
    const { used: rest } = await measure(() => sleep(restMs))
    const rows: Row[] = []
    let serial = 0
    const offer = async (rate: number) => {
      serial += 100_000
      const { begunAtMs } = await load({ ports: [port], keys: bed.keys, clients: Math.min(64, rate), ms, rate, serial })
      await sleep(200) // the last outcomes
      return { begunAtMs, first: serial }
    }
    for (const rate of rates) {
      const { result, used } = await measure(() => offer(rate))
      rows.push({ rate, used, deliverMs: await delivered(sink, rate, result) })
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
