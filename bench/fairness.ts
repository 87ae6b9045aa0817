/**
 * Fairness: how much the flood of one app delays the sign-in mail of another, from the time its request was
 * due to the relay's 250. One app has 100,000 queued emails that drain at full speed. The other sends a few
 * per second, first without the flood, then during it. With a fast relay, with one that takes 500 ms, and
 * with a flood that waits for a transport which is down.
 */
import { parseConfig } from '../src/config/parse-config.ts'
import { hashDeliveryKey } from '../src/domain/app/delivery-key.ts'
import { sealTransport } from '../src/store/crypto/sealed-transport.ts'
import { operator } from '../test/support/operator.ts'
import type { Scope } from '../test/support/temporary.ts'
import { percentile } from './loop.ts'
import { report, type Table } from './measure.ts'
import {
  type Bed,
  fill,
  makeBed,
  readMetric,
  type Sink,
  startLoader,
  startPostern,
  startSink,
  subjects,
  useStore,
} from './processes.ts'

const flood = 100_000
/** Different in each run, because each serial is also an `Idempotency-Key`. */
const serials = { first: 200_000, step: 1000 }
const relays = [
  { name: 'at once', delayMs: 0, connections: 20, rate: 20, allowedMs: 25 },
  { name: 'after 500 ms', delayMs: 500, connections: 5, rate: 2, allowedMs: 100 },
  { name: 'at once, the flood by a transport that is down', delayMs: 0, connections: 20, rate: 20, allowedMs: 25 },
]
const ms = 8_000

type Load = ReturnType<typeof startLoader>
type Relay = (typeof relays)[number]

export async function run(scope: Scope): Promise<void> {
  const sink = await startSink(scope)
  const load = startLoader(scope)
  const rows: string[][] = []
  const measured: Record<string, unknown> = {}
  for (const subject of subjects) {
    for (const relay of relays) {
      const bed = await makeBed(scope, subject)
      const place = { sink, load }
      const quiet = await serve(bed, relay, { ...place, serial: serials.first })
      await fill(bed, flood, { keys: bed.keys.slice(0, 1) })
      if (relay === relays[2]) await useDeadTransport(bed)
      const flooded = await serve(bed, relay, { ...place, serial: serials.first + 2 * serials.step })
      if (flooded.left === 0) throw new Error('the flood ended before the other app did')
      const p99 = [quiet, flooded].map(({ latencies }) => percentile(latencies, 0.99))
      const [quietMs = 0, floodedMs = 0] = p99
      rows.push([
        `${subject.name}, replies ${relay.name}`,
        quietMs.toFixed(1),
        floodedMs.toFixed(1),
        (floodedMs - quietMs).toFixed(1),
        String(relay.allowedMs),
        `${flooded.latencies.length} of ${(relay.rate * ms) / 1000}`,
        String(flooded.others),
      ])
      measured[`${subject.name} ${relay.name}`] = { quiet, flooded }
    }
  }
  const table: Table = {
    columns: ['store and relay', 'quiet', 'flooded', 'difference', 'target', 'delivered', 'flood emails delivered'],
    rows,
  }
  report('fairness', { "p99 of one app's emails while another floods the queue (maximum if few), ms": table }, measured)
}

/** For the app of the flood, which is the first one. */
const useDeadTransport = (bed: Bed): Promise<void> =>
  useStore(bed, async (store) => {
    const { ring } = parseConfig(bed.env, 'command')
    const sealed = sealTransport(ring, 'down', 'smtp://127.0.0.1:1')
    await store.putTransport({ name: 'down', sealed, before: null, after: [] }, operator)
    const key = await store.findKeyByHash(hashDeliveryKey(bed.keys[0] ?? ''))
    const app = await store.findApp(key?.app ?? '')
    if (app !== null) await store.updateApp(app.id, { settings: { ...app.settings, transport: 'down' } }, operator)
  })

/** Sends for the other app at its rate. `others` counts the emails of the flood sent meanwhile. */
async function serve(bed: Bed, relay: Relay, { sink, load, serial }: { sink: Sink; load: Load; serial: number }) {
  const ends: (() => unknown)[] = []
  await sink.report(relay.delayMs)
  const { port, ops } = await startPostern({ after: (end) => void ends.push(end) }, bed, {
    POSTERN_ROLES: 'api,worker',
    POSTERN_TRANSPORTS_PRIVATE: 'yes',
    POSTERN_SMTP_URL: `smtp://127.0.0.1:${sink.port}?connections=${relay.connections}`,
  })
  const other = bed.keys.slice(1, 2)
  const order = { ports: [port], keys: other, clients: 8 }
  await load({ ...order, ms: 2000, rate: relay.rate, serial: serial + serials.step }) // warms up
  await sink.report(relay.delayMs)
  const { begunAtMs } = await load({ ...order, ms, rate: relay.rate, serial })
  await new Promise((resolve) => setTimeout(resolve, 2 * relay.delayMs + 500))
  const { taken } = await sink.report(0)
  const left = await readMetric(ops, 'postern_queue_depth')
  for (const end of ends) await end()
  const own = taken.filter(([n]) => n >= serial && n < serial + serials.step)
  const latencies = own.map(([n, atMs]) => atMs - (begunAtMs + ((n - serial) * 1000) / relay.rate))
  return { latencies, others: taken.length - own.length, left }
}
