/**
 * Noise: accepting of one app, and its mail to the relay's 250, beside the floods of another tenant or of a
 * stranger, and beside each growing table of another tenant with 1,000,000 rows (`POSTERN_BENCH_ROWS`).
 *
 * The app sends 100 emails a second in an open loop: enough for a p99 in a few seconds, and a fiftieth of
 * what two cores can take, so that what is measured is the noise and not the load. A request that waits
 * for a late one counts from the time when it was due. Each case has a fresh process, and each stuffing a
 * fresh database. Figures above twice the quiet figure of the same engine and checkout are bold.
 */
import type { Scope } from '../test/support/temporary.ts'
import { type LoopResult, percentile } from './loop.ts'
import type { Choice } from './main.ts'
import { median, report, type Table } from './measure.ts'
import { describeAnswers, signalAfter } from './noise/callers.ts'
import { type Case, chooseCases, quiet } from './noise/cases.ts'
import { type Databases, openDatabases } from './noise/databases.ts'
import { during, type Prepared, prepare } from './noise/place.ts'
import { type Engine, engines, type Sink, startLoader, startSink, subjects } from './processes.ts'

const rows = Number(process.env.POSTERN_BENCH_ROWS ?? 1_000_000)
const load = { clients: 8, rate: 100 }
/** Ends before the first maintenance, a second after the start. */
const warmUp = { clients: 8, ms: 600, rate: 200 }
/** A service that has not answered everything by then is killed. */
const lateMs = 6000
/** How long accepted mail may take to the relay. */
const relayMs = 2000
const allowed = 2

type Figures = { readonly p50Ms: number; readonly p99Ms: number; readonly relayP99Ms: number }
type Measured = Figures & { readonly errors: string; readonly note: string }
type Row = {
  readonly title: string
  readonly subject: string
  readonly measured: Measured | string
}
type Tools = { readonly sink: Sink; readonly loader: ReturnType<typeof startLoader> }

export async function run(scope: Scope, { only, engine }: Choice): Promise<void> {
  const wanted = chooseCases(only)
  const tools = { sink: await startSink(scope), loader: startLoader(scope, { anyAnswer: true }) }
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  for (const name of engines.filter((each) => engine === undefined || each.toLowerCase() === engine)) {
    const results = await measureEngine(scope, name, { tools, wanted })
    tables[`100 requests a second to ${name}, beside`] = toTable(results)
    measured[name] = results
  }
  if (Object.keys(tables).length === 0) throw new Error(`unknown engine "${engine}"`)
  report('noise', tables, measured)
}

async function measureEngine(
  scope: Scope,
  engine: Engine,
  { tools, wanted }: { tools: Tools; wanted: readonly Case[] },
): Promise<Row[]> {
  const databases = await openDatabases(scope, engine)
  const sides: Prepared[] = []
  for (const subject of subjects.filter((each) => each.engine === engine))
    sides.push(await prepare(databases, subject, tools.sink))
  const results: Row[] = []
  const measureAll = async (stuffing: Case['stuffing'], some: readonly Case[]) => {
    for await (const row of measureStuffed({ databases, sides, tools }, stuffing, some)) {
      const { measured, subject, title } = row
      console.log(`${subject}, beside ${title}: ${typeof measured === 'string' ? measured : lineOf(measured)}`)
      results.push(row)
    }
  }
  // The quiet figure is the median of three, the last one at the end: the machine's speed varies.
  await measureAll(null, [quiet, quiet])
  for (const stuffing of new Set(wanted.map((each) => each.stuffing)))
    await measureAll(
      stuffing,
      wanted.filter((each) => each.stuffing === stuffing),
    )
  await measureAll(null, [quiet])
  return results
}

type Bench = { readonly databases: Databases; readonly sides: readonly Prepared[]; readonly tools: Tools }

/** The cases of one stuffing, one after the other; in each, the checkouts take turns. */
async function* measureStuffed(
  { databases, sides, tools }: Bench,
  stuffing: Case['stuffing'],
  some: readonly Case[],
): AsyncGenerator<Row> {
  const places: (Prepared & { url: string; isStuffed: boolean })[] = []
  for (const side of sides) {
    const url = await databases.copy(side.env.POSTERN_DATABASE_URL ?? '')
    const own = { app: side.acme, rows }
    const isStuffed = stuffing === null || (await databases.stuff(url, stuffing, own))
    places.push({ ...side, url, isStuffed })
  }
  for (const [index, each] of some.entries())
    for (const { isStuffed, url, ...side } of places) {
      const needsCopy = stuffing === null || each.isLast === true // a copy of little costs little
      const isCopied = needsCopy && index < some.length - 1
      const used = isCopied && isStuffed ? await databases.copy(url) : url
      const place = { ...side, env: { ...side.env, POSTERN_DATABASE_URL: used } }
      const measured = isStuffed
        ? await measure(place, each, tools).catch((error) => `failed: ${error.message}`)
        : 'this checkout has no such table'
      yield { title: each.title, subject: side.subject.name, measured }
      if (used !== url) await databases.drop(used)
    }
  for (const { url } of places) await databases.drop(url)
}

/** Each load has serials of its own, because each is also an `Idempotency-Key`. */
const serialsPerLoad = 1000
let loads = 0
const nextSerial = () => serialsPerLoad * ++loads

const measure = (prepared: Prepared, { before, flood, ms }: Case, { loader, sink }: Tools): Promise<Measured> =>
  during(prepared, async (place) => {
    const notes = [(await before?.(place)) ?? '']
    const order = { ports: [place.service.port], keys: [place.keys.shop] }
    await loader({ ...order, ...warmUp, serial: nextSerial() })
    await sink.report()
    const flooded = flood(place, signalAfter(ms))
    const giveUp = setTimeout(() => place.service.child.kill('SIGKILL'), ms + lateMs)
    const serial = nextSerial()
    const result = await loader({ ...order, ...load, ms, serial })
    notes.push(await flooded)
    const accepted = result.answers['202'] ?? 0
    const relayed = await waitForRelay(sink, { result, accepted, serial })
    clearTimeout(giveUp)
    // An email may be sent though its request was not answered with 202.
    const late = Math.max(0, accepted - relayed.length)
    const { 202: _, ...refused } = result.answers
    const errors = [describeAnswers(refused), late > 0 ? `${late} not relayed` : '']
    return {
      ...{ p50Ms: result.p50Ms, p99Ms: result.p99Ms },
      relayP99Ms: percentile([...relayed, ...Array<number>(late).fill(Number.POSITIVE_INFINITY)], 0.99),
      ...{ errors: errors.filter(Boolean).join(', '), note: notes.filter(Boolean).join('; ') },
    }
  })

/** From the time when each request was due to the 250 of its email. */
async function waitForRelay(
  sink: Sink,
  { accepted, result, serial }: { result: LoopResult; accepted: number; serial: number },
): Promise<number[]> {
  const latencies: number[] = []
  const endMs = performance.now() + relayMs
  for (;;) {
    for (const [n, atMs] of (await sink.report()).taken)
      if (n >= serial && n < serial + serialsPerLoad)
        latencies.push(atMs - (result.begunAtMs + ((n - serial) * 1000) / load.rate))
    if (latencies.length >= accepted || performance.now() > endMs) return latencies
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const figures = ['p50Ms', 'p99Ms', 'relayP99Ms'] as const

function toTable(results: readonly Row[]): Table {
  const quietOf = (subject: string) => {
    const own = results.filter((row) => row.subject === subject && row.title === quiet.title)
    const all = own.flatMap(({ measured }) => (typeof measured === 'string' ? [] : [measured]))
    return Object.fromEntries(figures.map((name) => [name, median(all.map((each) => each[name]))])) as Figures
  }
  const line = ({ measured, subject, title }: Row): string[] => {
    if (typeof measured === 'string') return [title, sideOf(subject), '', '', '', '', measured]
    const base = quietOf(subject)
    const cells = figures.map((name) => cellOf(measured[name], measured[name] / base[name]))
    return [title, sideOf(subject), ...cells, measured.errors, measured.note]
  }
  return {
    columns: ['beside', 'code', 'p50 ms', 'p99 ms', 'p99 to 250 ms', 'errors', 'note'],
    rows: results.map(line),
  }
}

const sideOf = (subject: string) => (subject.endsWith('before') ? 'before' : 'after')

const cellOf = (ms: number, times: number): string => {
  const cell = Number.isFinite(ms) ? `${ms.toFixed(1)} (${times.toFixed(1)}×)` : 'never'
  return times > allowed ? `**${cell}**` : cell
}

const lineOf = ({ errors, note, ...each }: Measured): string =>
  [...figures.map((name) => each[name].toFixed(1)), errors, note].filter(Boolean).join('; ')
