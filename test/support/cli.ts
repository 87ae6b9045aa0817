/**
 * The `postern` command. `postern` runs a line in this process, which takes a tenth of the time, or by the
 * program that `POSTERN_TEST_COMMAND` names; `spawnPostern` and `spawnServe` start a process.
 */
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runCli } from '../../src/cli/program.ts'
import { composeCommands } from '../../src/compose/commands.ts'
import { parseConfig } from '../../src/config/parse-config.ts'
import { newSecretKey } from '../../src/store/crypto/key-ring.ts'
import { testDatabaseUrl } from './database.ts'
import { freePort } from './ports.ts'
import { atEnd, type Scope, temporaryFolder } from './temporary.ts'
import { eventually } from './wait.ts'

const checkout = [process.execPath, fileURLToPath(new URL('../../bin/postern.js', import.meta.url))]

/**
 * The program under test: this checkout, or an installed one that `POSTERN_TEST_COMMAND` names (`node
 * postern.js`).
 */
export const command: readonly string[] = process.env.POSTERN_TEST_COMMAND?.split(' ') ?? checkout

type SpawnOptions = {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd?: string | undefined
}

export function spawnPostern(args: readonly string[], options: SpawnOptions): ChildProcessWithoutNullStreams {
  const [file = '', ...rest] = command
  return spawn(file, [...rest, ...args], options)
}

/** Whether commands go through the management API (`remote-command-line.test.ts`). */
export const viaApi = process.env.POSTERN_TEST_VIA_API === 'yes'

/** For tests of what no operation does. */
export const onlyHere = { skip: viaApi && 'skipped: nothing of it goes through the API' }

/** Commands that work on one machine, and words that are no command. */
const local = /^(dev|serve|migrate|doctor|secret|backup|restore|copy|emial|-.*)$/

const isOperation = (env: Variables, args: readonly string[]): boolean =>
  env.POSTERN_DATABASE_URL !== undefined && !local.test(args[0] ?? '') && !args.includes('--help')

const remotes = new Map<string, Promise<Variables>>()
/** The end of the file: `after` inside a test would be the end of that test. */
const ends: (() => unknown)[] = []
const untilEnd: Scope = { after: (end) => void ends.push(end) }
if (viaApi)
  after(async () => {
    for (const end of ends) await end()
  })

async function remoteOf(env: Variables): Promise<Variables> {
  const name = JSON.stringify([env.POSTERN_DATABASE_URL, env.POSTERN_SECRET_KEYS, env.POSTERN_LINKS_BASE_URL])
  const known = remotes.get(name) ?? startRemote(env)
  remotes.set(name, known)
  return known
}

const { version } = JSON.parse(readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8')) as {
  version: string
}

const parts = composeCommands({
  version,
  user: 'root',
  onFatal: (error) => {
    throw error
  },
})

/** Starts what `postern serve` starts, in this process. It prints nothing unless `env` has a log level. */
export async function serveHere(scope: Scope, env: Variables) {
  const service = await parts.startService(parseConfig({ POSTERN_LOG_LEVEL: 'silent', ...env }, 'serve'))
  atEnd(scope, () => service.stop())
  return service
}

/** A service for operators alone, and a token for it. The command gets nothing else. */
async function startRemote(env: Variables): Promise<Variables> {
  const listen = { POSTERN_CONSOLE_LISTEN: '127.0.0.1:0', POSTERN_OPS_LISTEN: '127.0.0.1:0' }
  const service = await serveHere(untilEnd, { ...env, ...listen, POSTERN_ROLES: 'console' })
  const made = await runHere(env, ['token', 'create', `test ${process.pid}`, '--role', 'admin'], '')
  const tokenFile = join(temporaryFolder(untilEnd), 'token')
  writeFileSync(tokenFile, made.out, { mode: 0o600 })
  return { POSTERN_URL: service.urls.console ?? '', POSTERN_TOKEN_FILE: tokenFile }
}

export type Ran = { readonly code: number | null; readonly out: string; readonly err: string }
export type Variables = Record<string, string>

const quiet = { PATH: process.env.PATH ?? '', NO_COLOR: '1' }

type RunOptions = {
  /** Runs the command in a process of its own, in this folder. */
  readonly cwd?: string | undefined
  /** The standard input. */
  readonly input?: string
  /** Typed when the command asks; without it there is no terminal. */
  readonly answer?: string
}

/**
 * Runs one command to its end: on the database, or, if `viaApi`, by the management API of a service beside
 * it.
 */
export async function postern(
  env: Variables,
  args: readonly string[],
  { cwd, input = '', answer }: RunOptions = {},
): Promise<Ran> {
  const remote = viaApi && isOperation(env, args) ? await remoteOf(env) : env
  const variables = { ...quiet, ...remote }
  const isHere = cwd === undefined && process.env.POSTERN_TEST_COMMAND === undefined
  return isHere ? runHere(variables, args, input, answer) : runProcess(variables, args, { cwd, input })
}

async function runHere(
  env: Variables,
  args: readonly string[],
  input: string,
  answer: string | null = null,
): Promise<Ran> {
  let [out, err] = ['', '']
  const code = await runCli(args, env, {
    ...parts,
    out: (text) => {
      out += `${text}\n`
    },
    err: (text) => {
      err += `${text}\n`
    },
    ask: async () => answer,
    readInput: async (charactersMax) => input.slice(0, charactersMax),
    clearScreen: () => {},
    readerGone: new AbortController().signal,
    screenRows: () => null,
    untilStopped: () => Promise.reject(new Error('start a process for it: spawnServe')),
  })
  return { code, out, err }
}

/** Runs one command in a process of its own. */
export async function runProcess(
  env: Variables,
  args: readonly string[],
  { cwd, input = '' }: RunOptions = {},
): Promise<Ran> {
  const child = spawnPostern(args, { env: { ...quiet, ...env }, cwd })
  child.stdin.on('error', () => {}) // the command may end without reading all of it
  child.stdin.end(input)
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => {
    out += chunk
  })
  child.stderr.on('data', (chunk) => {
    err += chunk
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out, err }
}

/** The ports of a dev mode beside others. */
export async function devListeners(): Promise<Variables> {
  const names = ['API', 'OPS', 'CONSOLE', 'AUTH_HOOKS']
  return {
    ...Object.fromEntries(names.map((name) => [`POSTERN_${name}_LISTEN`, '127.0.0.1:0'])),
    POSTERN_LINKS_LISTEN: `127.0.0.1:${await freePort()}`, // the base URL names the port
  }
}

/** Starts a command in a process of its own, which ends with the scope. */
export function startPostern(
  scope: Scope,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string> },
) {
  const child = spawnPostern(args, {
    cwd: options.cwd,
    env: { PATH: process.env.PATH ?? '', ...options.env },
  })
  atEnd(scope, () => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  return {
    child,
    output: () => output,
    ended: once(child, 'exit') as Promise<[number | null, string | null]>,
  }
}

/** Runs one command with `--json`, which must succeed. */
export async function posternJson<T>(env: Variables, args: readonly string[], options: RunOptions = {}): Promise<T> {
  const ran = await postern(env, [...args, '--json'], options)
  if (ran.code !== 0) throw new Error(`postern ${args.join(' ')}: ${ran.err}`)
  return JSON.parse(ran.out) as T
}

export type RunningPostern = {
  readonly api: string
  readonly ops: string
  readonly console: string
  /** Where auth servers post; undefined if the process listens for none. */
  readonly authHooks?: string
  readonly reports?: string
  readonly key: string
  readonly env: Variables
  readonly child: ChildProcess
  /** All output so far. */
  readonly output: () => string
}

/** A complete environment on a database of its own, with ports that the system chooses. */
export async function serveEnvironment(scope: Scope): Promise<Variables> {
  return {
    POSTERN_DATABASE_URL: await testDatabaseUrl(scope),
    POSTERN_SECRET_KEYS: newSecretKey('k1'),
    POSTERN_API_LISTEN: '127.0.0.1:0',
    POSTERN_OPS_LISTEN: '127.0.0.1:0',
    POSTERN_CONSOLE_LISTEN: '127.0.0.1:0',
    POSTERN_DNS_SERVERS: '127.0.0.1:1', // nothing answers there
  }
}

/** Makes an app and a key by the command line, and starts `postern serve`. */
export async function startServe(scope: Scope, more: Variables): Promise<RunningPostern> {
  const env = { ...(await serveEnvironment(scope)), ...more }
  return { key: await newAcme(env), ...(await spawnServe(scope, env)) }
}

/**
 * Like `startServe`, but in this process: for tests that need a running service and no process of its own.
 * The program that `POSTERN_TEST_COMMAND` names is started as a process all the same.
 */
export async function serveAcme(
  scope: Scope,
  more: Variables,
): Promise<Pick<RunningPostern, 'api' | 'console' | 'authHooks' | 'key' | 'env'>> {
  if (process.env.POSTERN_TEST_COMMAND !== undefined) return await startServe(scope, more)
  const env = { ...(await serveEnvironment(scope)), ...more }
  const key = await newAcme(env)
  const { api = '', console = '', authHooks } = (await serveHere(scope, env)).urls
  return { api, console, ...(authHooks !== undefined && { authHooks }), key, env }
}

/** Starts `postern serve` on known ports, with a standard output of the test's; waits until it answers. */
export async function spawnServeInto(
  scope: Scope,
  stdout: number | 'pipe',
  more: Variables,
  under: readonly string[] = [],
): Promise<Pick<RunningPostern, 'api' | 'ops' | 'key' | 'env' | 'child'> & { readonly errors: () => string }> {
  const [api, ops] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  const listen = { POSTERN_API_LISTEN: api, POSTERN_OPS_LISTEN: ops }
  const env = { ...(await serveEnvironment(scope)), ...listen, ...more }
  const key = await newAcme(env)
  const [file = '', ...args] = [...under, ...command, 'serve']
  const child = spawn(file, args, { env: { ...quiet, ...env }, stdio: ['ignore', stdout, 'pipe'] })
  atEnd(scope, () => child.kill('SIGKILL'))
  let errors = ''
  child.stderr?.on('data', (chunk) => {
    errors += chunk
  })
  const isReady = () => fetch(`http://${ops}/readyz`).then(({ status }) => status === 200)
  await eventually(() => isReady().catch(() => false))
  return { api: `http://${api}`, ops: `http://${ops}`, key, env, child, errors: () => errors }
}

/** Makes the app `acme` by the command line; a key of it. */
export async function newAcme(env: Variables): Promise<string> {
  const app = [
    'app',
    'create',
    'Acme',
    '--from',
    'Acme <auth@acme.test>',
    '--allow-url',
    'https://app.acme.test',
    '--key-per-minute',
    '1000000',
    '--daily',
    '1000000',
  ]
  await posternJson(env, app)
  return (await posternJson<{ key: string }>(env, ['key', 'create', 'acme'])).key
}

/**
 * Starts `postern serve` and waits until it says that it is ready.
 * @param under a command that runs it, such as `strace -f …`
 * @param program the command of another checkout
 */
export async function spawnServe(
  scope: Scope,
  env: Variables,
  { under = [], program = command }: { under?: readonly string[]; program?: readonly string[] } = {},
): Promise<Omit<RunningPostern, 'key'>> {
  const [file = '', ...args] = [...under, ...program, 'serve', '--json']
  const child = spawn(file, args, { env: { ...quiet, ...env } })
  atEnd(scope, () => child.kill('SIGKILL'))
  let output = ''
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const lines = createInterface(child.stdout)
  let document = ''
  type Ready = {
    api: string
    ops: string
    console: string
    authHooks?: string
    reports?: string
  }
  const started = new Promise<Ready>((resolve, reject) => {
    lines.on('line', (line) => {
      output += `${line}\n`
      // Log lines may come before. Earlier versions, which benchmarks compare with, printed the document on
      // several.
      if (line === '{' || document !== '') document += line
      if (line.startsWith('{"ready":')) resolve(JSON.parse(line))
      if (line === '}') resolve(JSON.parse(document))
    })
    child.once('exit', (code) => reject(new Error(`postern serve ended with ${code}: ${output}`)))
  })
  const { api, ops, console, authHooks, reports } = await started
  const others = { ...(authHooks && { authHooks }), ...(reports && { reports }) }
  return { api, ops, console, ...others, env, child, output: () => output }
}
