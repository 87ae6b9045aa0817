/**
 * Capacity: the highest steady rate at which every email is with the relay within a second at p99, found by
 * halving the range of a ladder of rates, 20 s each, in an open loop. Then half as much again as that rate:
 * how fast requests are answered, how fast mail is delivered, and how long an email of a quiet app takes.
 */
import type { Scope } from '../test/support/temporary.ts'
import { type LoopResult, monotonicMs, percentile } from './loop.ts'
import { count, report, type Table } from './measure.ts'
import { makeBed, readMetric, type Subject, startLoader, startPostern, startSink, subjects } from './processes.ts'

const rates = Array.from({ length: 7 }, (_, step) => Math.round((1500 * 1.25 ** step) / 10) * 10)
const ms = 20_000
const withinMs = 1000
const clients = 128
const connections = 20
const quietRate = 20
const beyond = 1.5
/** The load's recipients repeat after this many. */
const recipients = 1_000_000
/** Mail that is delivered later counts as never delivered. */
const settleMs = 30_000

type Step = {
  readonly rate: number
  readonly accept: LoopResult
  /** From when a request was due to the 250; infinite for an email that was not delivered by the end. */
  readonly deliverMs: readonly number[]
  readonly deliveredPerSecond: number
  readonly left: number
  readonly quietMs: readonly number[]
}
type Loads = Record<'load' | 'quietLoad', ReturnType<typeof startLoader>>

export async function run(scope: Scope): Promise<void> {
  const loads = { load: startLoader(scope), quietLoad: startLoader(scope) }
  const rows: string[][] = []
  const overload: string[][] = []
  const measured: Record<string, unknown> = {}
  for (const subject of subjects) {
    const ends: (() => unknown)[] = []
    const offer = await startSite({ after: (end) => void ends.push(end) }, subject)
    const steps: Step[] = []
    let [low, high] = [-1, rates.length]
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      const step = await offer(loads, rates[middle] ?? 0)
      steps.push(step)
      console.log(subject.name, JSON.stringify(summary(step)))
      if (percentile(step.deliverMs, 0.99) <= withinMs) low = middle
      else high = middle
    }
    const best = steps.find(({ rate }) => rate === rates[low])
    rows.push([
      subject.name,
      best === undefined ? `under ${rates[0]}` : count(best.rate),
      ...(best === undefined ? ['', ''] : [best.accept.p99Ms, percentile(best.deliverMs, 0.99)].map(shown)),
    ])
    const over = await offer(loads, Math.round((best?.rate ?? 1500) * beyond))
    overload.push([
      subject.name,
      count(over.rate),
      count(over.accept.perSecond),
      shown(over.accept.p99Ms),
      count(over.deliveredPerSecond),
      count(over.left),
      shown(percentile(over.quietMs, 0.99)),
    ])
    measured[subject.name] = { steps: steps.map(summary), over: summary(over) }
    for (const end of ends.toReversed()) await end()
  }
  report(
    'capacity',
    {
      [`Accepted and delivered within ${withinMs} ms at p99`]: ladder(rows),
      [`Offered ${beyond} times that rate`]: beyondTable(overload),
    },
    measured,
  )
}

const shown = (value: number) => (Number.isFinite(value) ? value.toFixed(0) : 'more')

const ladder = (rows: string[][]): Table => ({
  columns: ['service', 'emails a second', '202: p99 ms', '250: p99 ms'],
  rows,
})
const beyondTable = (rows: string[][]): Table => ({
  columns: [
    'service',
    'offered a second',
    'accepted',
    '202: p99 ms',
    'delivered',
    'left in the queue',
    'quiet app, 250: p99 ms',
  ],
  rows,
})

const shares = (values: readonly number[]) =>
  Object.fromEntries([0.5, 0.9, 0.99].map((share) => [share, percentile(values, share)]))

const summary = ({ deliverMs, quietMs, ...step }: Step) => ({
  ...step,
  deliverMs: shares(deliverMs),
  quietMs: shares(quietMs),
})

/** One running service with its sink. */
async function startSite(scope: Scope, subject: Subject) {
  const bed = await makeBed(scope, subject)
  const sink = await startSink(scope)
  const { port, ops } = await startPostern(scope, bed, {
    POSTERN_ROLES: 'api,worker',
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${sink.port}?connections=${connections}`,
  })
  const [quietKey = '', ...keys] = bed.keys
  let serial = 0
  const taken = new Map<number, number>()
  const collect = async () => {
    for (const [n, atMs] of (await sink.report()).taken) taken.set(n, atMs)
    return taken.size
  }
  const delivered = ({ begunAtMs }: LoopResult, first: number, rate: number): number[] =>
    Array.from({ length: Math.round((rate * ms) / 1000) }, (_, k) => {
      const atMs = taken.get((first + k) % recipients)
      return atMs === undefined ? Number.POSITIVE_INFINITY : atMs - (begunAtMs + (k * 1000) / rate)
    })

  /** Offers mail of 99 apps at `rate`, and of the quiet one. */
  return async ({ load, quietLoad }: Loads, rate: number): Promise<Step> => {
    taken.clear()
    serial += recipients
    const quietSerial = serial + recipients / 2
    const quietly = quietLoad({
      ports: [port],
      keys: [quietKey],
      clients: 8,
      ms,
      rate: quietRate,
      serial: quietSerial,
    })
    const accept = await load({ ports: [port], keys, clients, ms, rate, serial })
    const left = await readMetric(ops, 'postern_queue_depth')
    const tookMs = monotonicMs() - accept.begunAtMs
    const deliveredPerSecond = ((await collect()) * 1000) / tookMs
    const quiet = await quietly
    const waitUntilMs = performance.now() + settleMs
    while ((await readMetric(ops, 'postern_queue_depth')) > 0 && performance.now() < waitUntilMs)
      await new Promise((resolve) => setTimeout(resolve, 100))
    await collect()
    const [deliverMs, quietMs] = [delivered(accept, serial, rate), delivered(quiet, quietSerial, quietRate)]
    return { rate, accept, deliverMs, deliveredPerSecond, left, quietMs }
  }
}
