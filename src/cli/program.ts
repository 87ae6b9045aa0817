/** The command line as a whole: commands, global options, and errors as exit codes. */
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/parse-config.ts'
import { addAppCommands } from './app.ts'
import type { CliDeps } from './context.ts'
import { addDevCommand } from './dev.ts'
import { addDoctorCommand } from './doctor.ts'
import { addEmailCommands } from './email.ts'
import { addKeyCommands } from './key.ts'
import { CommandFailed, UsageError } from './output.ts'
import { addQueueCommands } from './queue.ts'
import { addSecretCommands } from './secret.ts'
import { addServeCommands } from './serve.ts'

/** 0 done, 1 refused or failed, 2 usage. */
export type ExitCode = 0 | 1 | 2

/** Runs one command line (without program name). */
export async function runCli(argv: readonly string[], deps: CliDeps): Promise<ExitCode> {
  const program = new Command('postern')
    .description('Queues authentication emails and delivers them before their links expire.')
    .option('--json', 'print exactly one JSON document')
    .option('--env-file <file>', 'read the configuration from a file of NAME=value lines')
    .helpCommand(false)
  addDevCommand(program, deps)
  addServeCommands(program, deps)
  addDoctorCommand(program, deps)
  addSecretCommands(program, deps)
  addAppCommands(program, deps)
  addKeyCommands(program, deps)
  addEmailCommands(program, deps)
  addQueueCommands(program, deps)
  const said = { last: '' } // errors are said once, by `explain`
  everyCommand(program, (command) => {
    command.exitOverride().configureOutput({
      writeOut: (text) => deps.output.out(text.trimEnd()),
      writeErr: (text) => (said.last = text),
    })
  })
  try {
    await program.parseAsync(argv as string[], { from: 'user' })
    return 0
  } catch (error) {
    return explain(error, deps, said.last)
  }
}

// The global options are taken before parsing, so that they may stand anywhere on the line.
function everyCommand(command: Command, apply: (command: Command) => void): void {
  apply(command)
  for (const inner of command.commands) everyCommand(inner, apply)
}

function explain(error: unknown, { output }: CliDeps, said: string): ExitCode {
  const say = (text: string) => output.err(`postern: ${text}`)
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0
    if (error.code === 'commander.help') {
      output.err(said.trimEnd()) // a group without its command
      return 2
    }
    say(`${error.message.replace(/^error: /, '')}; --help shows how`)
    return 2
  }
  if (error instanceof UsageError) {
    say(error.message)
    return 2
  }
  const expected = error instanceof CommandFailed || error instanceof ConfigError
  const { message, stack, code } = error as Error & { code?: string }
  if (code === 'EADDRINUSE')
    say(
      `${message}; something listens there already: another postern? POSTERN_API_LISTEN, POSTERN_LINKS_LISTEN, POSTERN_CONSOLE_LISTEN and POSTERN_OPS_LISTEN choose other addresses`,
    )
  else say(expected ? message : (hint(error) ?? stack ?? message))
  return 1
}

/** Errors of the store that a person can act on. */
function hint(error: unknown): string | null {
  const { name, message } = error as Error
  if (name === 'SchemaTooNew' || name === 'StoreUnavailable' || name === 'OwnerMismatch') return message
  if (name === 'KeyMissing')
    return `${message}: POSTERN_SECRET_KEYS must hold the key this database was sealed with`
  if (/unable to open database file/.test(message))
    return 'cannot open the database: does its folder exist, and may this user write there?'
  if (/not a database|malformed/.test(message))
    return `the database is damaged (${message}); restore a backup, it was left as it is`
  return null
}
