/** The arguments of every command, and how a command runs operations. */
import type { Writable } from 'node:stream'
import { type Config, parseConfig } from '../config/parse-config.ts'
import { type Environment, isSet } from '../config/reader.ts'
import { devDatabaseUrl } from '../config/settings.ts'
import type { Management } from '../management/context.ts'
import type { OperationError } from '../management/operation/result.ts'
import type { Answer, CallInput, OperationName, OperationRunner } from '../management/operations.ts'
import type { EventStream } from '../observe/events.ts'
import type { PostgresAddress } from '../store/database-address.ts'
import type { DatabaseFacts, Restored } from '../store/database-facts.ts'
import type { ArchivedCounts } from '../store/shared/archive.ts'
import type { SchemaUse } from '../store/shared/migrations.ts'
import type { CopyReport } from '../store/shared/table-copy.ts'
import type { Finding, Store } from '../store/store.ts'
import { CommandFailed, type Output, UsageError } from './output.ts'
import type { RemoteAddress } from './remote-runner.ts'

/** A running service, as the commands `serve` and `dev` see it. */
export type RunningService = {
  readonly urls: {
    readonly ops: string
    readonly api?: string
    readonly links?: string
    readonly authHooks?: string
    readonly reports?: string
    readonly bounce?: string
    readonly submission?: string
    readonly submissions?: string
    readonly inbox?: string
    readonly console?: string
  }
  /** Examples that pages of dev mode show. */
  readonly hints: { curl: string | null }
  readonly store: Store
  readonly events: EventStream
  stop(options?: { drainMs?: number }): Promise<void>
}

/** The parts that the composition root makes. */
export type CliDeps = {
  readonly version: string
  /** The name of the user who runs the command. */
  readonly user: string
  readonly env: Environment
  readonly output: Output
  readonly openStore: (config: Config, schemaUse: SchemaUse) => Promise<Store>
  readonly backUp: (config: Config, to: string | Writable) => Promise<DatabaseFacts>
  /** `file` null: from standard input. */
  readonly restore: (config: Config, file: string | null, options: { cancelQueued: boolean }) => Promise<Restored>
  /** Copies to a new database on PostgreSQL. */
  readonly copy: (config: Config, target: PostgresAddress) => Promise<CopyReport>
  readonly exportArchive: (config: Config, file: string, secrets: boolean) => Promise<ArchivedCounts>
  readonly importArchive: (config: Config, file: string) => Promise<ArchivedCounts>
  /** Whether a service could listen where it is configured to; `isRunning`: one does, on this machine. */
  readonly checkListeners: (config: Config, isRunning: boolean) => Promise<readonly Finding[]>
  readonly newLinkDomainProbe: (config: Config) => Promise<Management['probeLinkDomain']>
  /** Runs operations on an open store. */
  readonly newRunner: (config: Config, store: Store) => Promise<OperationRunner>
  readonly startService: (config: Config) => Promise<RunningService>
  /** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. */
  readonly untilStopped: () => Promise<void>
  /** Empties the terminal that shows the output, if it is one. */
  readonly clearScreen: () => void
  /** Lines of the terminal; null without one. */
  readonly screenRows: () => number | null
  /** Aborts when whatever read the output has gone. */
  readonly readerGone: AbortSignal
  /** Asks a question on the terminal; null if there is no terminal to answer on. */
  readonly ask: (question: string) => Promise<string | null>
  /** The standard input as text, no more than so many characters of it. */
  readonly readInput: (charactersMax: number) => Promise<string>
}

/** The configuration of a command. Says so if it is that of dev mode. */
export function commandConfig(deps: CliDeps): Config {
  if (isRemote(deps))
    throw new UsageError('this command works on this machine only; leave out --url, and unset POSTERN_URL')
  const config = parseConfig(deps.env, 'command')
  if (usesDevDatabase(deps))
    deps.output.err(`postern: POSTERN_DATABASE_URL is not set; using the dev database, ${devDatabaseUrl}`)
  return config
}

const usesDevDatabase = ({ env }: CliDeps): boolean => !isSet(env, 'POSTERN_DATABASE_URL')

/** The process whose management API a command calls; null if it works on the database itself. */
function findRemote({ env }: CliDeps): RemoteAddress | null {
  if (!isSet(env, 'POSTERN_URL')) return null
  return { url: env.POSTERN_URL?.trim() ?? '', tokenFile: env.POSTERN_TOKEN_FILE?.trim() ?? '' }
}

export const isRemote = (deps: CliDeps): boolean => findRemote(deps) !== null

/** Runs an operation and returns its answer; an error fails the command. */
export type Call = <Name extends OperationName>(name: Name, input: CallInput<Name>) => Promise<Answer<Name>>

export type CommandContext = { readonly call: Call; readonly runner: OperationRunner }

/**
 * Runs one command: with `--url` by the management API there, otherwise on the configured database. Only
 * `app create`, `apply` and `migrate` make a database, and only `migrate` changes an old schema.
 */
export async function withOperations<T>(
  deps: CliDeps,
  run: (context: CommandContext) => Promise<T>,
  schemaUse: SchemaUse = 'open',
): Promise<T> {
  const remote = findRemote(deps)
  if (remote !== null) {
    const { newRemoteRunner } = await import('./remote-runner.ts') // with the table of operations, which takes time to load
    return run(newContext(newRemoteRunner(remote)))
  }
  const config = commandConfig(deps)
  const store = await deps.openStore(config, schemaUse)
  try {
    const place = usesDevDatabase(deps) ? devPlace : ''
    return await run(newContext(await deps.newRunner(config, store), place))
  } finally {
    await store.close()
  }
}

const devPlace = ' This is the dev database; to use a service’s database, add "--env-file FILE" with its settings.'

/** @param place said where something was not found */
const newContext = (runner: OperationRunner, place = ''): CommandContext => ({
  runner,
  call: async (name, input) => {
    const result = await runner.call(name, input)
    if (result.ok) return result.value
    const where = result.error.code === 'not_found' ? place : ''
    throw new CommandFailed(`${describeError(result.error, Object.keys(input.params ?? {}))}${where}`)
  },
})

const lists: Readonly<Record<string, string>> = {
  app: '"postern app list" shows the apps.',
  key: '"postern key list APP" shows the keys of an app.',
  token: '"postern token list" shows the tokens.',
  person: '"postern person list" shows the people.',
  session: '"postern session list" shows the sessions.',
}

/** @param params the things that the command named */
export function describeError({ code, message, issues = [] }: OperationError, params: readonly string[]): string {
  const hint = code === 'not_found' ? params.map((name) => lists[name]).find(Boolean) : undefined
  const lines = issues.map((issue) => `\n  ${issue.field}: ${issue.message}`)
  const text = code === 'invalid_request' ? 'invalid values:' : message
  return `${text}${lines.join('')}${hint === undefined ? '' : ` ${hint}`}`
}
