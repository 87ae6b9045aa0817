/**
 * Capacity: the highest steady rate at which every email is with the relay within a second at p99, found by
 * halving the range of a ladder of rates, 20 s each, in an open loop. Then that rate and multiples of it: how
 * many emails are accepted and delivered, and how long those of a quiet app take.
 */
import type { Scope } from '../test/support/temporary.ts'
import { type LoopResult, monotonicMs, percentile } from './loop.ts'
import { count, report, type Table } from './measure.ts'
import { makeBed, readMetric, type Subject, startLoader, startPostern, startSink, subjects } from './processes.ts'

const rates = Array.from({ length: 8 }, (_, step) => Math.round((1000 * 1.25 ** step) / 10) * 10)
const [lowest = 0] = rates
const ms = 20_000
const withinMs = 1000
const clients = 128
/** Enough that requests wait for the service, not for a connection. */
const clientsBeyond = 3000
const connections = 20
/** Far less than the share of each other app: an app that asks for more than its share has to wait. */
const quietRate = 4
const quietClients = 8
const multiples = [1, 1.5, 2, 3]
/** The load's recipients repeat after this many. */
const recipients = 1_000_000
/** Mail that is delivered later counts as never delivered. */
const settleMs = 30_000

type Step = {
  readonly rate: number
  readonly accept: LoopResult
  readonly acceptedPerSecond: number
  /** From when a request was due to the 250; infinite for an email that was not delivered by the end. */
  readonly deliverMs: readonly number[]
  readonly deliveredPerSecond: number
  readonly left: number
  readonly quiet: LoopResult
  readonly quietMs: readonly number[]
}
type Loads = Record<'load' | 'quietLoad', ReturnType<typeof startLoader>>

export async function run(scope: Scope): Promise<void> {
  const [load, quietLoad] = [startLoader(scope, { anyAnswer: true }), startLoader(scope, { anyAnswer: true })]
  const loads = { load, quietLoad }
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
      best === undefined ? `under ${lowest}` : count(best.rate),
      ...(best === undefined ? ['', ''] : [best.accept.p99Ms, percentile(best.deliverMs, 0.99)].map(shown)),
    ])
    const beyond: Step[] = []
    for (const multiple of multiples) {
      const step = await offer(loads, Math.round((best?.rate ?? lowest) * multiple), clientsBeyond)
      beyond.push(step)
      console.log(subject.name, JSON.stringify(summary(step)))
      overload.push([`${subject.name}, ${multiple} times`, ...describeOverload(step)])
    }
    measured[subject.name] = { steps: steps.map(summary), beyond: beyond.map(summary) }
    for (const end of ends.toReversed()) await end()
  }
  report(
    'capacity',
    {
      [`Accepted and delivered within ${withinMs} ms at p99`]: ladder(rows),
      'Offered that rate and multiples of it': overloadTable(overload),
    },
    measured,
  )
}

const shown = (value: number) => (Number.isFinite(value) ? value.toFixed(0) : 'more')

const ladder = (rows: string[][]): Table => ({
  columns: ['service', 'emails a second', '202: p99 ms', '250: p99 ms'],
  rows,
})
const overloadTable = (rows: string[][]): Table => ({
  columns: [
    'service',
    'offered a second',
    'accepted',
    'refused with 503',
    'delivered',
    'left in the queue',
    'quiet app, 202: p99 ms',
    'quiet app, 250: p99 ms',
  ],
  rows,
})

const describeOverload = (step: Step): string[] => [
  ...[step.rate, step.acceptedPerSecond, step.accept.answers['503'] ?? 0, step.deliveredPerSecond, step.left].map(
    count,
  ),
  ...[step.quiet.p99Ms, percentile(step.quietMs, 0.99)].map(shown),
]

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
  return async ({ load, quietLoad }: Loads, rate: number, callers = clients): Promise<Step> => {
    taken.clear()
    serial += recipients
    const quietSerial = serial + recipients / 2
    const quietly = quietLoad({
      ports: [port],
      keys: [quietKey],
      clients: quietClients,
      ms,
      rate: quietRate,
      serial: quietSerial,
    })
    const accept = await load({ ports: [port], keys, clients: callers, ms, rate, serial })
    const left = await readMetric(ops, 'postern_queue_depth')
    const tookMs = monotonicMs() - accept.begunAtMs
    const acceptedPerSecond = ((accept.answers['202'] ?? 0) * 1000) / tookMs
    const deliveredPerSecond = ((await collect()) * 1000) / tookMs
    const quiet = await quietly
    const waitUntilMs = performance.now() + settleMs
    while ((await readMetric(ops, 'postern_queue_depth')) > 0 && performance.now() < waitUntilMs)
      await new Promise((resolve) => setTimeout(resolve, 100))
    await collect()
    const [deliverMs, quietMs] = [delivered(accept, serial, rate), delivered(quiet, quietSerial, quietRate)]
    return { rate, accept, acceptedPerSecond, deliverMs, deliveredPerSecond, left, quiet, quietMs }
  }
}
