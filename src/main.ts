/** argv, signals and exit codes. The commands are in `cli/`, the parts of the service in `compose/`. */
import { readFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { constants, userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { runCli } from './cli/program.ts'
import { composeCommands } from './compose/commands.ts'
import { toPrintable } from './domain/controls.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

const onFatal = (error: Error) => {
  console.error(
    toPrintable(
      `postern: the database or its disk failed; stopping before more harm is done: ${error.message}`,
    ),
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

const parts = composeCommands({ version, user: userName(), onFatal })

process.exitCode = await runCli(process.argv.slice(2), process.env, {
  ...parts,
  startService: async (config) => {
    const service = await parts.startService(config)
    setTimeout(flushCompileCache, 1000).unref() // a killed process would not write it at its end
    return service
  },
  out: (text) => console.log(text),
  err: (text) => console.error(text),
  untilStopped,
  ask,
  readInput,
})
