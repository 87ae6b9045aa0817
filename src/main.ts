/** argv, signals and exit codes; everything else is made in compose.ts and cli/. */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { runCli } from './cli/program.ts'
import { openOwnStore, startService } from './compose/service.ts'
import { parseConfig } from './config/parse-config.ts'

const argv = process.argv.slice(2)

/** Takes a global option out of the line; with a value where `valued`. */
function take(name: string, valued: boolean): string | undefined {
  const index = argv.findIndex((word) => word === name || word.startsWith(`${name}=`))
  if (index < 0) return undefined
  const [word = ''] = argv.splice(index, 1)
  if (word.includes('=')) return word.slice(name.length + 1)
  return valued ? argv.splice(index, 1)[0] : ''
}

function environment(): Record<string, string | undefined> {
  const file = take('--env-file', true)
  if (file === undefined) return process.env
  return { ...parseEnv(readFileSync(file, 'utf8')), ...process.env }
}

const onFatal = (error: Error) => {
  console.error(
    `postern: the database or its disk failed; stopping before more harm is done: ${error.message}`,
  )
  process.exit(1)
}

let stop: () => void = () => {}
const stopped = new Promise<void>((resolve) => {
  stop = resolve
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    stop()
    process.once(signal, () => process.exit(1)) // asked twice: at once
  })
}

const json = take('--json', false) !== undefined
process.exitCode = await runCli(argv, {
  env: environment(),
  output: { json, out: (text) => console.log(text), err: (text) => console.error(text) },
  parseConfig,
  openStore: (config) => openOwnStore(config, { onFatal }),
  startService: (config) => startService(config, { onFatal }),
  untilStopped: () => stopped,
})
