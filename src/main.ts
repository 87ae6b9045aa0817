/** argv, signals and exit codes. The commands are in `cli/`, the parts of the service in `compose/`. */
import { fstatSync, readFileSync, writeFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { constants, userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { isatty } from 'node:tty'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { runCli } from './cli/program.ts'
import { composeCommands } from './compose/commands.ts'
import { toPrintable } from './domain/controls.ts'
import { LineOutput } from './observe/line-output.ts'
import { findProxyFaults, useProxies } from './services/proxies.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** Aborts when whatever read the output has gone. */
const readerGone = new AbortController()

/**
 * A command waits for a slow reader of its output, and fails if it cannot be written: a key that it made
 * would otherwise be lost without a word.
 */
function writeWhole(descriptor: 1 | 2, text: string): void {
  const kind = fstatSync(descriptor)
  const hasReader = kind.isFIFO() || kind.isSocket() || isatty(descriptor)
  const stream = descriptor === 1 ? process.stdout : process.stderr
  if (!hasReader)
    writeFileSync(descriptor, text) // Node's stream would drop what finds no room
  else
    stream
      .removeAllListeners('error')
      .on('error', () => readerGone.abort())
      .write(text)
}

/** From `untilStopped` on, the outputs of a service, which never wait. */
let lines: { readonly out: LineOutput; readonly err: LineOutput } | null = null

const out = (text: string) => (lines === null ? writeWhole(1, `${text}\n`) : lines.out.write(`${text}\n`))
const err = (text: string) => (lines === null ? writeWhole(2, `${text}\n`) : lines.err.write(`${text}\n`))

const onFatal = (error: Error) => {
  err(toPrintable(`postern: the database or its disk failed; stopping before more harm is done: ${error.message}`))
  if (error.name === 'DatabaseLost') process.kill(process.pid, 'SIGKILL') // to exit would close it
  process.exit(1)
}

const signals = ['SIGINT', 'SIGTERM'] as const

// For the first process of a container, a signal without a handler does nothing.
if (process.pid === 1)
  for (const signal of signals) process.once(signal, () => process.exit(128 + constants.signals[signal]))

/**
 * Longer than a clean stop takes when a client, a relay and a receiver of webhooks each use all of their
 * time.
 */
const stopMaxMs = 42_000

/**
 * Signals are caught from here on, so only `serve` and `dev` call it; any other command ends at once. The
 * hangup of a terminal stops the process as SIGTERM does. Without a terminal SIGHUP is ignored, as under
 * nohup: there is nothing to reload.
 */
function untilStopped(): Promise<void> {
  const [own, faults] = [new LineOutput(1), new LineOutput(2)]
  lines = { out: own, err: faults }
  own.subscribe((reason) => {
    if (reason !== null) err(`postern: log lines cannot be written to standard output: ${reason}. Mail is not affected`)
  })
  const hasTerminal = isatty(1) || isatty(2) // asked now: after its hangup it is none
  return new Promise((resolve) => {
    let stopping = false
    const stop = () => {
      if (stopping) process.exit(1) // a second signal ends the process at once
      stopping = true
      setTimeout(killSelf, stopMaxMs).unref()
      resolve()
    }
    for (const signal of signals) process.removeAllListeners(signal).on(signal, stop)
    process.on('SIGHUP', () => {
      if (hasTerminal && !stopping) stop()
    })
  })
}

/**
 * A start allocates far more than a service holds later, and V8 keeps that space until much mail comes. In
 * return a burst is accepted more slowly until the heap has grown again.
 */
function releaseMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: object) => void
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

/** `process.exit` waits for threads, and a thread may wait for a disk. */
function killSelf(): void {
  err(`postern: not everything has stopped after ${stopMaxMs / 1000} s; killing the process`)
  process.kill(process.pid, 'SIGKILL')
}

async function ask(question: string): Promise<string | null> {
  if (!process.stdin.isTTY) return null
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await terminal.question(question)
  } finally {
    terminal.close()
  }
}

async function readInput(charactersMax: number): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk
    if (text.length >= charactersMax) break
  }
  return text.slice(0, charactersMax)
}

/** Under sudo, the user who gave the command. */
function userName(): string {
  try {
    return process.env.SUDO_USER ?? userInfo().username
  } catch {
    return `uid ${process.getuid?.()}` // a container's user has no name
  }
}

const proxyFaults = findProxyFaults(process.env)
for (const fault of proxyFaults) err(`postern: ${fault}`)
if (proxyFaults.length > 0) process.exit(1)
useProxies(process.env)

const parts = composeCommands({ version, user: userName(), onFatal })

process.exitCode = await runCli(process.argv.slice(2), process.env, {
  ...parts,
  startService: async (config) => {
    const service = await parts.startService(config, lines?.out)
    setTimeout(flushCompileCache, 1000).unref() // a killed process would not write it at its end
    releaseMemory()
    return service
  },
  out,
  err,
  untilStopped,
  readerGone: readerGone.signal,
  screenRows: () => (isatty(1) ? process.stdout.rows : null),
  clearScreen: () => isatty(1) && writeWhole(1, '\x1b[H\x1b[2J'),
  ask,
  readInput,
})
