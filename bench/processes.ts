/**
 * Starts the servers and the load of the benchmarks, each as a process of its own. Postern itself is
 * started from this checkout and, for comparison, from the one that `POSTERN_BENCH_BEFORE` names.
 */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { newSecretKey } from '../src/store/crypto/key-ring.ts'
import type { ClockOffset } from '../src/store/shared/clock.ts'
import type { Store } from '../src/store/store.ts'
import { type RunningPostern, spawnServe, type Variables } from '../test/support/cli.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { atEnd, type Scope, temporaryFolder } from '../test/support/temporary.ts'
import type { DirectOrder } from './direct-sender.ts'
import type { LoadOrder } from './http-load.ts'
import type { LoopResult } from './loop.ts'
import type { PeerOrder } from './peers/web-app.ts'
import type { ReportOrder } from './report-load.ts'
import { makeSenders, type Variety } from './senders.ts'
import type { SinkOrder, SinkReport } from './sink.ts'

function start(scope: Scope, file: URL, args: readonly string[] = []): ChildProcess {
  const child = fork(file, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  atEnd(scope, () => child.kill('SIGKILL'))
  return child
}

/** A process that carries out one order at a time and answers each. */
function startWorker<Order, Result>(scope: Scope, file: URL): (order: Order) => Promise<Result> {
  const child = start(scope, file)
  return async (order) => {
    child.send(order as object)
    const ended = once(child, 'exit').then(() => Promise.reject(new Error(`${file.pathname} ended`)))
    const [result] = (await Promise.race([once(child, 'message'), ended])) as [Result]
    return result
  }
}

/**
 * A process that loads servers over HTTP. Any answer other than 202 ends the benchmark, unless `anyAnswer`
 * lets it pass.
 */
export function startLoader(scope: Scope, { anyAnswer = false } = {}): (order: LoadOrder) => Promise<LoopResult> {
  const load = startWorker<LoadOrder, LoopResult>(scope, new URL('./http-load.ts', import.meta.url))
  return async (order) => {
    const result = await load(order)
    if (!anyAnswer && Object.keys(result.answers).join() !== '202')
      throw new Error(`answered ${JSON.stringify(result.answers)}`)
    return result
  }
}

/** A process that sends a prepared message over SMTP. */
export const startDirectSender = (scope: Scope): ((order: DirectOrder) => Promise<LoopResult>) =>
  startWorker(scope, new URL('./direct-sender.ts', import.meta.url))

/** A process that sends reports to the bounce listener. Each must be answered with 250. */
export function startReporter(scope: Scope): (order: ReportOrder) => Promise<LoopResult> {
  const send = startWorker<ReportOrder, LoopResult>(scope, new URL('./report-load.ts', import.meta.url))
  return async (order) => {
    const result = await send(order)
    if (Object.keys(result.answers).join() !== '250') throw new Error(JSON.stringify(result.answers))
    return result
  }
}

export type Sink = {
  readonly port: number
  /** Returns the mail taken since the last report, and sets the delay before each following 250. */
  readonly report: (delayMs?: number) => Promise<SinkReport>
}

/** A server that takes all mail; `https` is a mail API. */
export async function startSink(scope: Scope, kind: 'smtp' | 'smtps' | 'https' = 'smtp'): Promise<Sink> {
  const file = kind === 'https' ? new URL('./https-sink.ts', import.meta.url) : new URL('./sink.ts', import.meta.url)
  const child = start(scope, file, [kind])
  const [port] = (await once(child, 'message')) as [number]
  const report = async (delayMs = 0) => {
    child.send({ delayMs } satisfies SinkOrder)
    const [result] = (await once(child, 'message')) as [SinkReport]
    return result
  }
  return { port, report }
}

/** Starts a `node:http` server that parses the JSON and answers 202. Returns its port. */
export async function startBare(scope: Scope): Promise<number> {
  const child = start(scope, new URL('./bare-server.ts', import.meta.url))
  const [port] = (await once(child, 'message')) as [number]
  return port
}

/** The delivery keys of an application on another queue. */
export const peerKeys = Array.from({ length: 100 }, (_, n) => `postern_peer_${n}`)

/** Starts an application on another queue. Returns the port of its API. */
export async function startPeer(scope: Scope, file: URL, order: Omit<PeerOrder, 'keys'>): Promise<number> {
  const child = start(scope, file)
  child.send({ ...order, keys: peerKeys } satisfies PeerOrder)
  const [port] = (await once(child, 'message')) as [number]
  return port
}

export type BenchedService = Omit<RunningPostern, 'key'> & { readonly port: number }

export const engines = ['SQLite', 'PostgreSQL'] as const
export type Engine = (typeof engines)[number]

/** A checkout of Postern. */
type Checkout = { readonly label: '' | ', before'; readonly root: URL }

const here: Checkout = { label: '', root: new URL('../', import.meta.url) }
const before = process.env.POSTERN_BENCH_BEFORE
const checkouts: readonly Checkout[] =
  before === undefined ? [here] : [{ label: ', before', root: pathToFileURL(`${before}/`) }, here]

/** A subject of a benchmark: an engine and a checkout. */
export type Subject = { readonly name: string; readonly engine: Engine; readonly checkout: Checkout }

/** Both engines, of the checkout before too if there is one. */
export const subjects: readonly Subject[] = engines.flatMap((engine) =>
  checkouts.map((checkout) => ({ name: `Postern on ${engine}${checkout.label}`, engine, checkout })),
)

/** The subject of this checkout. */
export const subjectOf = (engine: Engine): Subject => ({ name: engine, engine, checkout: here })

/** A database with 100 apps whose limits are never reached: the environment for `postern serve`, and keys. */
export type Bed = { readonly checkout: Checkout; readonly env: Variables; readonly keys: readonly string[] }

const apps = 100

/** @param databaseUrl of an empty database; otherwise one is made */
export async function makeBed(scope: Scope, { engine, checkout }: Subject, databaseUrl?: string): Promise<Bed> {
  const env = {
    POSTERN_DATABASE_URL: databaseUrl ?? (await freshDatabaseUrl(scope, engine)),
    POSTERN_SECRET_KEYS: newSecretKey('bench'),
    POSTERN_API_LISTEN: '127.0.0.1:0',
    POSTERN_OPS_LISTEN: '127.0.0.1:0',
    POSTERN_ROLES: 'api,links,worker',
    POSTERN_SMTP_URL: 'smtp://127.0.0.1:1',
    POSTERN_QUEUE_MAX: '100000000',
    POSTERN_LOG_LEVEL: 'error',
  }
  const bed = { checkout, env, keys: [] }
  const keys = await useStore(bed, async (store) => {
    const senders = await makeSenders(store, apps)
    return senders.map((sender) => sender.key)
  })
  return { ...bed, keys }
}

/** An empty database. */
export const freshDatabaseUrl = async (scope: Scope, engine: Engine): Promise<string> =>
  engine === 'SQLite' ? `sqlite:${join(temporaryFolder(scope), 'postern.db')}` : (await startPostgres(scope)).url

type Senders = typeof import('./senders.ts')

/** Opens the store of a bed in this process, by its checkout's own code, and closes it after `work`. */
export async function useStore<T>(
  { checkout: { root }, env }: Bed,
  work: (store: Store, senders: Senders) => Promise<T>,
  clock?: ClockOffset,
): Promise<T> {
  const load = (path: string) => import(new URL(path, root).href)
  const { openStore }: typeof import('../src/compose/store.ts') = await load('src/compose/store.ts')
  const { parseConfig }: typeof import('../src/config/parse-config.ts') = await load('src/config/parse-config.ts')
  const senders: Senders = await load('bench/senders.ts')
  const store = await openStore(parseConfig(env, 'command'), {
    ...(clock !== undefined && { clock }),
    onFatal: (error) => {
      throw error
    },
  })
  try {
    return await work(store, senders)
  } finally {
    await store.close()
  }
}

/** Queues `emails`, for all apps or for one. */
export const fill = (
  bed: Bed,
  emails: number,
  { keys = bed.keys, ...variety }: { keys?: readonly string[] } & Variety = {},
): Promise<void> =>
  useStore(bed, (store, { enqueueMany, sendersOf }) =>
    enqueueMany(store, sendersOf({ keys }), { emails, clients: 256, ...variety }),
  )

/** The value of one metric of a service. */
export async function readMetric(ops: string, name: string): Promise<number> {
  const text = await (await fetch(`${ops}/metrics`)).text()
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length))
}

const execute = promisify(execFile)

/** The package of a checkout, made by its own `npm run build`. Its modules are those of the checkout. */
export async function builtFrom({ label, root }: Checkout): Promise<Checkout> {
  await execute('npm', ['run', 'build'], { cwd: root })
  return { label, root: new URL('dist/', root) }
}

/** The file and the first argument of the `postern` command of a checkout. */
export const programOf = ({ root }: Checkout): readonly [string, string] => [
  process.execPath,
  fileURLToPath(new URL('bin/postern.js', root)),
]

/** Starts `postern serve` as a process of its own. */
export async function startPostern(
  scope: Scope,
  bed: Pick<Bed, 'checkout' | 'env'>,
  more: Variables = {},
): Promise<BenchedService> {
  const running = await spawnServe(scope, { ...bed.env, ...more }, { program: programOf(bed.checkout) })
  return { ...running, port: Number(new URL(running.api ?? 'http://none:1').port) }
}
