/**
 * Latency at fixed rates, from the time a request was due to its 202, and to the relay's 250 for its email.
 * Compared with sending directly, without a queue, over the same number of connections.
 */
import type { Scope } from '../test/support/temporary.ts'
import { lineChart, writeChart } from './chart.ts'
import { type LoopResult, percentile } from './loop.ts'
import { report, type Table } from './measure.ts'
import { makeBed, type Sink, startDirectSender, startLoader, startPostern, startSink, subjects } from './processes.ts'

const rates = [100, 1000]
const ms = 10_000
const connections = 20
const clients = 64

type Offer = (rate: number, serial: number) => Promise<LoopResult>
type Measured = {
  readonly name: string
  readonly rate: number
  readonly accept: LoopResult | null
  readonly deliverMs: readonly number[]
}

export async function run(scope: Scope): Promise<void> {
  const sink = await startSink(scope)
  const load = startLoader(scope)
  const direct = startDirectSender(scope)
  const offers: { name: string; offer: Offer; accepts: boolean }[] = [
    {
      name: 'sent directly',
      accepts: false,
      offer: (rate, serial) => direct({ port: sink.port, clients: connections, ms, rate, serial }),
    },
  ]
  for (const subject of subjects) {
    const bed = await makeBed(scope, subject)
    const relay = `smtp://127.0.0.1:${sink.port}?connections=${connections}`
    const { port } = await startPostern(scope, bed, { POSTERN_ROLES: 'api,worker', POSTERN_SMTP_URL: relay })
    offers.push({
      name: subject.name,
      accepts: true,
      offer: (rate, serial) => load({ ports: [port], keys: bed.keys, clients, ms, rate, serial }),
    })
  }
  const measured: Measured[] = []
  let serial = 0
  for (const { name, offer, accepts } of offers) {
    await offer(1000, 900_000) // warms up
    await settled(sink, 1)
    for (const rate of rates) {
      const accept = await offer(rate, serial)
      const deliverMs = await settled(sink, accept.begunAtMs, { rate, serial })
      measured.push({ name, rate, accept: accepts ? accept : null, deliverMs })
      serial += rate * 100
    }
  }
  report('latency', { 'Milliseconds from when each request was due': table(measured) }, measured.map(summary))
  writeChart('latency', chart(measured))
}

/** Waits until the sink takes no more mail. Returns the latency of each email since it was due. */
async function settled(sink: Sink, begunAtMs: number, offered?: { rate: number; serial: number }): Promise<number[]> {
  const latencies: number[] = []
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 500))
    const { taken } = await sink.report()
    if (taken.length === 0) return latencies
    for (const [n, atMs] of taken)
      if (offered !== undefined) latencies.push(atMs - (begunAtMs + ((n - offered.serial) * 1000) / offered.rate))
  }
}

const shares = [0.5, 0.9, 0.99, 0.999]

const summary = ({ name, rate, accept, deliverMs }: Measured) => ({
  name,
  rate,
  accept,
  delivered: deliverMs.length,
  deliverMs: Object.fromEntries(shares.map((share) => [share, percentile(deliverMs, share)])),
})

const one = (value: number | undefined) => (value === undefined ? '' : value.toFixed(1))

const table = (measured: readonly Measured[]): Table => ({
  columns: ['sender', 'per second', '202: p50', '202: p99', '250: p50', '250: p99', 'delivered'],
  rows: measured.map(({ name, rate, accept, deliverMs }) => [
    name,
    String(rate),
    one(accept?.p50Ms),
    one(accept?.p99Ms),
    one(percentile(deliverMs, 0.5)),
    one(percentile(deliverMs, 0.99)),
    String(deliverMs.length),
  ]),
})

function chart(measured: readonly Measured[]): string {
  const at = [0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999]
  return lineChart({
    title: 'From when it was due to the 250 of the relay',
    x: { label: 'share of the emails', ticks: at.map((share) => `${share * 100} %`) },
    y: { label: 'ms' },
    lines: measured.map(({ name, rate, deliverMs }) => ({
      name: `${name}, ${rate}/s`,
      values: at.map((share) => percentile(deliverMs, share)),
    })),
  })
}
