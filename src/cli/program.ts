/** The command line as a whole: commands, global options, and errors as exit codes. */
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/parse-config.ts'
import type { Environment } from '../config/reader.ts'
import { toPrintable } from '../domain/controls.ts'
import { addActivityCommands } from './activity.ts'
import { addAppCommands } from './app.ts'
import { addApplyCommand } from './apply.ts'
import { addBackupCommands } from './backup.ts'
import { addCheckLinkCommand } from './check-link.ts'
import type { CliDeps } from './context.ts'
import { addDevCommand } from './dev.ts'
import { addDoctorCommand } from './doctor.ts'
import { addDomainCommands } from './domain.ts'
import { addEmailCommands } from './email.ts'
import { addFeedbackCommands } from './feedback.ts'
import { readGlobalOptions } from './global-options.ts'
import { addHookCommands } from './hook.ts'
import { addKeyCommands } from './key.ts'
import { addLanguagesCommand } from './languages.ts'
import { CommandFailed, newOutput, type Output, UsageError } from './output.ts'
import { addConsoleCommands, addPersonCommands } from './person.ts'
import { addPreviewCommand } from './preview.ts'
import { addQueueCommands } from './queue.ts'
import { addSecretCommands } from './secret.ts'
import { addSendTestCommand } from './send-test.ts'
import { addServeCommands } from './serve.ts'
import { addStatusCommands } from './status.ts'
import { addSuppressionCommands } from './suppression.ts'
import { addTokenCommands } from './token.ts'
import { addWebhookCommands } from './webhook.ts'

/** 0 done, 1 refused or failed, 2 usage; 75 failed, and may succeed later (`feedback read`). */
export type ExitCode = 0 | 1 | 2 | 75

const examples = `
To begin:
  postern dev                     try it, with an inbox instead of a relay
  postern status                  see what needs attention
  postern console login           open the console in a browser
  postern doctor                  check a configuration before "postern serve"
  postern email list --to ADDRESS find out what happened to an email`

/** The process in which a command runs. */
export type CommandHost = Omit<CliDeps, 'env' | 'output'> & Omit<Output, 'json'>

/** Runs one command line (without the program's name). */
export async function runCli(
  argv: readonly string[],
  env: Environment,
  { out: writeOut, err: writeErr, ask, ...parts }: CommandHost,
): Promise<ExitCode> {
  const { out, err } = newOutput({ json: false, out: writeOut, err: writeErr })
  const written = { last: '' } // errors are printed once, by `explain`
  try {
    const line = readGlobalOptions(argv, env)
    const program = newProgram({
      ...parts,
      ask: (question) => ask(toPrintable(question)),
      env: line.env,
      output: { json: line.json, out, err },
    })
    everyCommand(program, (command) => {
      command
        .exitOverride()
        .configureHelp({ showGlobalOptions: true })
        .configureOutput({
          writeOut: (text) => out(text.trimEnd()),
          writeErr: (text) => (written.last = text),
        })
    })
    await program.parseAsync(line.args as string[], { from: 'user' })
    return 0
  } catch (error) {
    return explain(error, err, written.last)
  }
}

/** The global options are only described here: `readGlobalOptions` has taken them out of the line. */
function newProgram(deps: CliDeps): Command {
  const program = new Command('postern')
    .description('Queues authentication emails and delivers them before their links expire.')
    .version(`postern ${deps.version}`, '--version', 'print the version')
    .option('--json', 'print exactly one JSON document')
    .option('--env-file <file>', 'read the configuration from a file of NAME=value lines')
    .option('--url <url>', 'run the command through the management API at this URL (or POSTERN_URL)')
    .option('--token-file <file>', 'file with the management token for --url (or POSTERN_TOKEN_FILE)')
    .helpCommand(false)
    .addHelpText('after', examples)
  addDevCommand(program, deps)
  addServeCommands(program, deps)
  addDoctorCommand(program, deps)
  addStatusCommands(program, deps)
  addSecretCommands(program, deps)
  addAppCommands(program, deps)
  addApplyCommand(program, deps)
  addKeyCommands(program, deps)
  addCheckLinkCommand(program, deps)
  addLanguagesCommand(program, deps)
  addPreviewCommand(program, deps)
  addSendTestCommand(program, deps)
  addEmailCommands(program, deps)
  addFeedbackCommands(program, deps)
  addSuppressionCommands(program, deps)
  addDomainCommands(program, deps)
  addHookCommands(program, deps)
  addWebhookCommands(program, deps)
  addQueueCommands(program, deps)
  addActivityCommands(program, deps)
  addTokenCommands(program, deps)
  addConsoleCommands(program, deps)
  addPersonCommands(program, deps)
  addBackupCommands(program, deps)
  return program
}

function everyCommand(command: Command, apply: (command: Command) => void): void {
  apply(command)
  for (const inner of command.commands) everyCommand(inner, apply)
}

function explain(error: unknown, err: Output['err'], written: string): ExitCode {
  const say = (text: string) => err(`postern: ${text}`)
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0
    if (error.code === 'commander.help') {
      err(written.trimEnd()) // a group without its command
      return 2
    }
    say(describeUsage(error.message))
    return 2
  }
  if (error instanceof UsageError) {
    say(error.message)
    return 2
  }
  const expected = error instanceof CommandFailed || error instanceof ConfigError
  const { exitCode = 1, message, stack } = error as Error & { exitCode?: ExitCode }
  say(expected ? message : (hint(error) ?? stack ?? message))
  return exitCode
}

/**
 * `error: unknown command 'emial'\n(Did you mean email?)` → `unknown command "emial". Did you mean "email"?`
 */
function describeUsage(message: string): string {
  const [first = '', guess] = message.replace(/^error: /, '').split('\n')
  const meant = /Did you mean (?:one of )?(.+)\?/.exec(guess ?? '')?.[1]
  const text = first.replace(/'([^']*)'/g, '"$1"')
  return meant === undefined ? `${text}; --help shows the usage` : `${text}. Did you mean "${meant}"?`
}

const storeErrors = ['KeyDiffers', 'SchemaMismatch', 'StoreUnavailable', 'OwnerMismatch', 'BackupRefused']
const sqliteCannotOpen = 14
const sqliteDamaged = [11, 26]

/** Advice for an error that a person can act on; null for a bug. */
function hint(error: unknown): string | null {
  const { code, errcode, message, name } = error as Error & { code?: string; errcode?: number }
  if (storeErrors.includes(name)) return message
  if (['EACCES', 'EROFS', 'ENOSPC'].includes(code ?? '')) return message
  if (name === 'KeyMissing')
    return `${message}: POSTERN_SECRET_KEYS must hold the key this database was sealed with`
  if (errcode === undefined) return null
  if ((errcode & 0xff) === sqliteCannotOpen)
    return 'SQLite cannot open or make the database file that POSTERN_DATABASE_URL names: choose a folder on a disk, in which this user may write'
  if (sqliteDamaged.includes(errcode & 0xff))
    return `the database is damaged (${message}); restore a backup. It was not changed`
  return null
}
