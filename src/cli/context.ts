/** The arguments of every command, and how a command opens the store. */
import type { Writable } from 'node:stream'
import type { Config } from '../config/parse-config.ts'
import { devDatabaseUrl, type Environment, isSet, type Mode } from '../config/reader.ts'
import type { EventStream } from '../observe/events.ts'
import type { PostgresAddress } from '../store/database-address.ts'
import type { DatabaseFacts, Restored } from '../store/database-facts.ts'
import type { SchemaUse } from '../store/shared/migrations.ts'
import type { CopyReport } from '../store/shared/table-copy.ts'
import type { Store } from '../store/store.ts'
import type { Output } from './output.ts'

/** A running service, as the commands `serve` and `dev` see it. */
export type RunningService = {
  readonly urls: {
    readonly ops: string
    readonly api?: string
    readonly links?: string
    readonly inbox?: string
  }
  readonly store: Store
  readonly events: EventStream
  stop(options?: { drainMs?: number }): Promise<void>
}

/** The parts that the composition root makes. */
export type CliDeps = {
  readonly version: string
  readonly env: Environment
  readonly output: Output
  readonly parseConfig: (env: Environment, mode: Mode) => Config
  readonly openStore: (config: Config, schemaUse: SchemaUse) => Promise<Store>
  readonly backUp: (config: Config, to: string | Writable) => Promise<DatabaseFacts>
  /** `file` null: from standard input. */
  readonly restore: (
    config: Config,
    file: string | null,
    options: { cancelQueued: boolean },
  ) => Promise<Restored>
  /** Copies to a new database on PostgreSQL. */
  readonly copy: (config: Config, target: PostgresAddress) => Promise<CopyReport>
  readonly startService: (config: Config) => Promise<RunningService>
  /** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. */
  readonly untilStopped: () => Promise<void>
  /** Asks a question on the terminal; null if there is no terminal to answer on. */
  readonly ask: (question: string) => Promise<string | null>
}

/** The configuration of a command. Says so if it is that of dev mode. */
export function commandConfig(deps: CliDeps): Config {
  const config = deps.parseConfig(deps.env, 'command')
  if (!isSet(deps.env, 'POSTERN_DATABASE_URL')) {
    deps.output.err(
      `postern: POSTERN_DATABASE_URL is not set; using the database of dev mode, ${devDatabaseUrl}`,
    )
  }
  return config
}

/**
 * Opens the configured store for one command. Only `app create` and `migrate` make a database, and
 * only `migrate` changes an old schema.
 */
export async function withStore<T>(
  deps: CliDeps,
  run: (store: Store, config: Config) => Promise<T>,
  schemaUse: SchemaUse = 'open',
): Promise<T> {
  const config = commandConfig(deps)
  const store = await deps.openStore(config, schemaUse)
  try {
    return await run(store, config)
  } finally {
    await store.close()
  }
}
