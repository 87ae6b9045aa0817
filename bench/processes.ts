/** What benchmarks start: servers and the load, each a process of its own. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { openStore } from '../src/compose.ts'
import { parseConfig } from '../src/config.ts'
import { newSecretKey } from '../src/store/key-ring.ts'
import { type RunningPostern, spawnServe, type Variables } from '../test/support/cli.ts'
import { atEnd, type Scope } from '../test/support/temporary.ts'
import type { LoadOrder, LoadResult } from './http-load.ts'
import { makeSenders } from './senders.ts'

function start(scope: Scope, file: URL): ChildProcess {
  const child = fork(file, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  atEnd(scope, () => child.kill('SIGKILL'))
  return child
}

/** A process that loads a server when told to. */
export function startLoader(scope: Scope): (order: LoadOrder) => Promise<LoadResult> {
  const child = start(scope, new URL('./http-load.ts', import.meta.url))
  return async (order) => {
    child.send(order)
    const [result] = (await once(child, 'message')) as [LoadResult]
    return result
  }
}

/** A `node:http` server that parses the JSON and answers 202; its port. */
export async function startBare(scope: Scope): Promise<number> {
  const [port] = (await once(start(scope, new URL('./bare-server.ts', import.meta.url)), 'message')) as [
    number,
  ]
  return port
}

export type BenchedService = Omit<RunningPostern, 'key'> & {
  readonly port: number
  readonly keys: readonly string[]
}

const apps = 100

/** `postern serve` on a database of its own with 100 apps that have no limits to speak of. */
export async function startPostern(
  scope: Scope,
  databaseUrl: string,
  more: Variables = {},
): Promise<BenchedService> {
  const env = {
    POSTERN_DATABASE_URL: databaseUrl,
    POSTERN_SECRET_KEYS: newSecretKey('bench'),
    POSTERN_API_LISTEN: '127.0.0.1:0',
    POSTERN_OPS_LISTEN: '127.0.0.1:0',
    POSTERN_SMTP_URL: 'smtp://127.0.0.1:1',
    POSTERN_QUEUE_MAX: '100000000',
    POSTERN_LOG_LEVEL: 'error',
    ...more,
  }
  const store = await openStore(parseConfig(env, 'command'), {
    onRuin: (error) => {
      throw error
    },
  })
  const senders = await makeSenders(store, apps)
  await store.close()
  const running = await spawnServe(scope, env)
  return { ...running, port: Number(new URL(running.api).port), keys: senders.map((sender) => sender.key) }
}
