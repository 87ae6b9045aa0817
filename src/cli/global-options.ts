/** The global options, which may stand anywhere in the line, and the environment that they make. */
import { parseEnvFile } from '../config/env-file.ts'
import { readPrivateFile } from '../config/private-file.ts'
import type { Environment } from '../config/reader.ts'
import { UsageError } from './output.ts'

export type CommandLine = {
  /** Without the global options. */
  readonly args: readonly string[]
  readonly env: Environment
  readonly json: boolean
}

/**
 * @param argv without the program's name
 * @throws UsageError if an option lacks its value, or the file of `--env-file` cannot be read, or others have
 * access to it
 */
export function readGlobalOptions(argv: readonly string[], env: Environment): CommandLine {
  const args = [...argv]
  const json = takeFlag(args, '--json')
  const file = takeValue(args, '--env-file')
  const url = takeValue(args, '--url')
  const tokenFile = takeValue(args, '--token-file')
  const whole = {
    // it holds the key ring, and passwords in URLs
    ...(file !== undefined && readEnvFile(file)),
    ...env, // the variables of the process win over those of the file
    ...(url !== undefined && { POSTERN_URL: url }),
    ...(tokenFile !== undefined && { POSTERN_TOKEN_FILE: tokenFile }),
  }
  return { args, env: whole, json }
}

const readEnvFile = (file: string): Environment =>
  parseEnvFile(readSecretFile(file, '--env-file'), (line, why) => {
    throw new UsageError(`--env-file, line ${line}: ${why}`)
  })

function takeFlag(args: string[], name: string): boolean {
  const index = args.indexOf(name)
  if (index >= 0) args.splice(index, 1)
  return index >= 0
}

/**
 * Takes an option with its value out of the line. Without a value it is refused: `--url "$UNSET"` would
 * otherwise change the database of this machine.
 */
function takeValue(args: string[], name: string): string | undefined {
  const index = args.findIndex((word) => word === name || word.startsWith(`${name}=`))
  if (index < 0) return undefined
  const [word = ''] = args.splice(index, 1)
  const value = word === name ? args.splice(index, 1)[0] : word.slice(name.length + 1)
  if (value === undefined || value === '' || value.startsWith('-')) throw new UsageError(`${name} needs a value`)
  return value
}

/**
 * A file that holds secrets.
 * @throws UsageError if it cannot be read, or others have access to it
 */
export function readSecretFile(file: string, option: string): string {
  try {
    return readPrivateFile(file, (why) => {
      throw new UsageError(`${option}: ${why}`)
    })
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`cannot read ${file} of ${option}: ${(error as Error).message}`)
  }
}
