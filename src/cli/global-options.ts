/** The global options, which may stand anywhere in the line, and the environment that they make. */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
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
 * @throws UsageError if the file of `--env-file` is missing or cannot be read
 */
export function readGlobalOptions(argv: readonly string[], env: Environment): CommandLine {
  const args = [...argv]
  const file = take(args, '--env-file', true)
  const url = take(args, '--url', true)
  const tokenFile = take(args, '--token-file', true)
  const json = take(args, '--json', false) !== undefined
  const whole = {
    ...(file !== undefined && readEnvFile(file)),
    ...env, // the variables of the process win over those of the file
    ...(url !== undefined && { POSTERN_URL: url }),
    ...(tokenFile !== undefined && { POSTERN_TOKEN_FILE: tokenFile }),
  }
  return { args, env: whole, json }
}

/** Takes an option out of the line. Its value, or '' for an option without one. */
function take(args: string[], name: string, hasValue: boolean): string | undefined {
  const index = args.findIndex((word) => word === name || word.startsWith(`${name}=`))
  if (index < 0) return undefined
  const [word = ''] = args.splice(index, 1)
  if (word.includes('=')) return word.slice(name.length + 1)
  return hasValue ? (args.splice(index, 1)[0] ?? '') : ''
}

function readEnvFile(file: string): Environment {
  if (file === '') throw new UsageError('--env-file needs a file')
  try {
    return parseEnv(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`cannot read the file of --env-file: ${(error as Error).message}`)
  }
}
