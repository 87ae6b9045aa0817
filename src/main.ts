/** argv, signals and exit codes. The commands are in `cli/`, the parts of the service in `compose/`. */
import { readFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { constants, userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { parseEnv } from 'node:util'
import { runCli } from './cli/program.ts'
import { parseConfig } from './config/parse-config.ts'

const argv = process.argv.slice(2)
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** Takes a global option out of the line, wherever it stands. Its value, or '' for an option without one. */
function take(name: string, valued: boolean): string | undefined {
  const index = argv.findIndex((word) => word === name || word.startsWith(`${name}=`))
  if (index < 0) return undefined
  const [word = ''] = argv.splice(index, 1)
  if (word.includes('=')) return word.slice(name.length + 1)
  return valued ? (argv.splice(index, 1)[0] ?? '') : ''
}

/** Variables of the process win over those of the file. */
function environment(): Record<string, string | undefined> {
  const file = take('--env-file', true)
  if (file === undefined) return process.env
  if (file === '') {
    console.error('postern: --env-file needs a file')
    process.exit(2)
  }
  try {
    return { ...parseEnv(readFileSync(file, 'utf8')), ...process.env }
  } catch (error) {
    console.error(`postern: cannot read the file of --env-file: ${(error as Error).message}`)
    process.exit(2)
  }
}

const onFatal = (error: Error) => {
  console.error(
    `postern: the database or its disk failed; stopping before more harm is done: ${error.message}`,
  )
  process.exit(1)
}

const signals = ['SIGINT', 'SIGTERM'] as const

// For the first process of a container, a signal without a handler does nothing.
if (process.pid === 1)
  for (const signal of signals) process.once(signal, () => process.exit(128 + constants.signals[signal]))

/** Signals are caught from here on, so only `serve` and `dev` call it; any other command ends at once. */
function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false
    const onSignal = () => {
      if (stopping) process.exit(1) // a second signal ends the process at once
      stopping = true
      resolve()
    }
    for (const signal of signals) process.removeAllListeners(signal).on(signal, onSignal)
  })
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

const databaseFiles = () => import('./compose/database-files.ts')

/** Under sudo, the user who gave the command. */
function userName(): string {
  try {
    return process.env.SUDO_USER ?? userInfo().username
  } catch {
    return `uid ${process.getuid?.()}` // a container's user has no name
  }
}

/** The options of the remote command line stand for their variables. */
function withRemote(env: Record<string, string | undefined>): Record<string, string | undefined> {
  const url = take('--url', true)
  const file = take('--token-file', true)
  return {
    ...env,
    ...(url !== undefined && { POSTERN_URL: url }),
    ...(file !== undefined && { POSTERN_TOKEN_FILE: file }),
  }
}

const json = take('--json', false) !== undefined
process.exitCode = await runCli(argv, {
  version,
  user: userName(),
  env: withRemote(environment()),
  output: { json, out: (text) => console.log(text), err: (text) => console.error(text) },
  parseConfig,
  // Loaded only by the commands that need them: "--help" starts in half the time.
  openStore: async (config, schemaUse) => {
    const { openStoreForCommand } = await import('./compose/store.ts')
    return openStoreForCommand(config, { onFatal, schemaUse })
  },
  backUp: async (config, file) => (await databaseFiles()).backUpDatabase(config, file),
  restore: async (config, file, options) => (await databaseFiles()).restoreDatabase(config, file, options),
  copy: async (config, target) => (await databaseFiles()).copyDatabase(config, target),
  operate: async (config, store) => {
    const { composeRunner } = await import('./compose/management.ts')
    return composeRunner(config, { store, version, user: userName() })
  },
  startService: async (config) => {
    const { startService } = await import('./compose/service.ts')
    const service = await startService(config, { onFatal, version })
    setTimeout(flushCompileCache, 1000).unref() // a killed process would not write it at its end
    return service
  },
  untilStopped,
  ask,
})
