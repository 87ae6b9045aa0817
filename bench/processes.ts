/** Starts the servers and the load of the benchmarks, each as a process of its own. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { openStore } from '../src/compose/store.ts'
import { parseConfig } from '../src/config/parse-config.ts'
import { newSecretKey } from '../src/store/crypto/key-ring.ts'
import type { Store } from '../src/store/store.ts'
import { type RunningPostern, spawnServe, type Variables } from '../test/support/cli.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { atEnd, type Scope, temporaryFolder } from '../test/support/temporary.ts'
import type { DirectOrder } from './direct-sender.ts'
import type { LoadOrder } from './http-load.ts'
import type { LoopResult } from './loop.ts'
import { makeSenders } from './senders.ts'
import type { SinkOrder, SinkReport } from './sink.ts'

function start(scope: Scope, file: URL): ChildProcess {
  const child = fork(file, {
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
    const [result] = (await once(child, 'message')) as [Result]
    return result
  }
}

/** A process that loads servers over HTTP. Any answer other than 202 ends the benchmark. */
export function startLoader(scope: Scope): (order: LoadOrder) => Promise<LoopResult> {
  const load = startWorker<LoadOrder, LoopResult>(scope, new URL('./http-load.ts', import.meta.url))
  return async (order) => {
    const result = await load(order)
    if (Object.keys(result.answers).join() !== '202')
      throw new Error(`answered ${JSON.stringify(result.answers)}`)
    return result
  }
}

/** A process that sends a prepared message over SMTP. */
export const startDirectSender = (scope: Scope): ((order: DirectOrder) => Promise<LoopResult>) =>
  startWorker(scope, new URL('./direct-sender.ts', import.meta.url))

export type Sink = {
  readonly port: number
  /** Returns the mail taken since the last report, and sets the delay before each following 250. */
  readonly report: (delayMs?: number) => Promise<SinkReport>
}

/** An SMTP server that takes all mail. */
export async function startSink(scope: Scope): Promise<Sink> {
  const child = start(scope, new URL('./sink.ts', import.meta.url))
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

export type BenchedService = Omit<RunningPostern, 'key'> & { readonly port: number }

/** A database with 100 apps whose limits are never reached: the environment for `postern serve`, and keys. */
export type Bed = { readonly env: Variables; readonly keys: readonly string[] }

const apps = 100

export async function makeBed(scope: Scope, engine: Engine): Promise<Bed> {
  const env = {
    POSTERN_DATABASE_URL: await freshDatabaseUrl(scope, engine),
    POSTERN_SECRET_KEYS: newSecretKey('bench'),
    POSTERN_API_LISTEN: '127.0.0.1:0',
    POSTERN_OPS_LISTEN: '127.0.0.1:0',
    POSTERN_SMTP_URL: 'smtp://127.0.0.1:1',
    POSTERN_QUEUE_MAX: '100000000',
    POSTERN_LOG_LEVEL: 'error',
  }
  return useStore(env, async (store) => {
    const senders = await makeSenders(store, apps)
    return { env, keys: senders.map((sender) => sender.key) }
  })
}

export const engines = ['SQLite', 'PostgreSQL'] as const
export type Engine = (typeof engines)[number]

/** An empty database. */
export const freshDatabaseUrl = async (scope: Scope, engine: Engine): Promise<string> =>
  engine === 'SQLite'
    ? `sqlite:${join(temporaryFolder(scope), 'postern.db')}`
    : (await startPostgres(scope)).url

/** Opens the store that `env` names in this process, and closes it after `work`. */
export async function useStore<T>(env: Variables, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(parseConfig(env, 'command'), {
    onFatal: (error) => {
      throw error
    },
  })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/** The value of one metric of a service. */
export async function readMetric(ops: string, name: string): Promise<number> {
  const text = await (await fetch(`${ops}/metrics`)).text()
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length))
}

/** Starts `postern serve` as a process of its own. */
export async function startPostern(scope: Scope, bed: Bed, more: Variables = {}): Promise<BenchedService> {
  const running = await spawnServe(scope, { ...bed.env, ...more })
  return { ...running, port: Number(new URL(running.api ?? 'http://none:1').port) }
}
