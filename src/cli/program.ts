/** The command line as a whole: commands, global options, and errors as exit codes. */
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/parse-config.ts'
import type { Environment } from '../config/reader.ts'
import { toPrintable } from '../domain/controls.ts'
import { activityCommand, refusalCommands } from './activity.ts'
import { appCommands } from './app.ts'
import { webhookCommands } from './app-webhook.ts'
import { applyCommand } from './apply.ts'
import { authHookCommands } from './auth-hook.ts'
import { backupCommand, copyCommand, restoreCommand } from './backup.ts'
import { addCommand, type CommandGroup, type CommandSpec } from './command.ts'
import type { CliDeps } from './context.ts'
import { devCommand } from './dev.ts'
import { doctorCommand } from './doctor.ts'
import { domainCommands } from './domain.ts'
import { emailCommands } from './email.ts'
import { exportCommand, importCommand } from './export.ts'
import { forgetCommand } from './forget.ts'
import { readGlobalOptions } from './global-options.ts'
import { inboxCommands } from './inbox.ts'
import { keyCommands } from './key.ts'
import { CommandFailed, newOutput, type Output, UsageError } from './output.ts'
import { consoleCommands, personCommands, sessionCommands } from './person.ts'
import { queueCommand, usageCommand } from './queue.ts'
import { reportCommands } from './report.ts'
import { secretCommands } from './secret.ts'
import { migrateCommand, serveCommand } from './serve.ts'
import { aboutCommand, auditCommand, statusCommand, whoamiCommand } from './status.ts'
import { suppressionCommands } from './suppression.ts'
import { tokenCommands } from './token.ts'
import { transportCommands } from './transport.ts'
import { checkLinkCommand, languagesCommand, previewCommand, sendTestCommand } from './try-email.ts'

/** All commands, by the task that they are for. */
export const tasks: Readonly<Record<string, readonly (CommandSpec | CommandGroup)[]>> = {
  'Run the service': [devCommand, serveCommand, doctorCommand, migrateCommand, secretCommands],
  'See what happens': [
    ...[statusCommand, emailCommands, refusalCommands, queueCommand, activityCommand],
    ...[usageCommand, suppressionCommands, reportCommands, auditCommand, exportCommand],
  ],
  'Set up an app': [
    ...[appCommands, keyCommands, domainCommands, transportCommands, authHookCommands, webhookCommands, applyCommand],
  ],
  'Try an email': [checkLinkCommand, previewCommand, sendTestCommand, inboxCommands, languagesCommand],
  'Give people access': [consoleCommands, personCommands, sessionCommands, tokenCommands, whoamiCommand],
  'Keep the database': [aboutCommand, backupCommand, restoreCommand, copyCommand, importCommand, forgetCommand],
}

/** 0 done, 1 refused or failed, 2 usage; 75 failed, and may succeed later (`report read`). */
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
  const written = { text: '' } // errors are printed once, by `explain`
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
          writeErr: (text) => (written.text += text),
        })
    })
    await program.parseAsync(line.args as string[], { from: 'user' })
    return 0
  } catch (error) {
    return explain(error, err, written.text)
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
  for (const [task, specs] of Object.entries(tasks))
    for (const spec of specs) addCommand(program, deps, spec).helpGroup(`${task}:`)
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
  return meant === undefined
    ? `${text.replace(/\.$/, '')}; --help shows the usage`
    : `${text}. Did you mean "${meant}"?`
}

const storeErrors = ['KeyDiffers', 'SchemaMismatch', 'StoreUnavailable', 'OwnerMismatch', 'BackupRefused']
const sqliteCannotOpen = 14
const sqliteDamaged = [11, 26]

/** Advice for an error that a person can act on; null for a bug. */
function hint(error: unknown): string | null {
  const { code, errcode, message, name } = error as Error & { code?: string; errcode?: number }
  if (storeErrors.includes(name)) return message
  if (['EACCES', 'EROFS', 'ENOSPC'].includes(code ?? '')) return message
  if (name === 'KeyMissing') return `${message}: POSTERN_SECRET_KEYS must hold the key this database was sealed with`
  if (errcode === undefined) return null
  if ((errcode & 0xff) === sqliteCannotOpen)
    return 'SQLite cannot open or make the database file that POSTERN_DATABASE_URL names: choose a folder on a disk, in which this user may write'
  if (sqliteDamaged.includes(errcode & 0xff))
    return `the database is damaged (${message}); restore a backup. It was not changed`
  return null
}
