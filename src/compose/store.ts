/** The configured store. */
import { statSync } from 'node:fs'
import type { Config } from '../config/parse-config.ts'
import { openPostgresStore } from '../store/postgres/postgres-store.ts'
import type { ClockOffset } from '../store/shared/clock.ts'
import type { SchemaUse } from '../store/shared/migrations.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Store } from '../store/store.ts'

export type StoreOptions = {
  /** The database file or its disk failed: end the process without another write. */
  readonly onFatal: (error: Error) => void
  readonly clock?: ClockOffset
  /** Whether opening may create or migrate the schema; usually `migrate`. */
  readonly schemaUse?: SchemaUse
}

export function openStore(config: Config, options: StoreOptions): Promise<Store> {
  const { database, databaseSession, queueMax, ring } = config
  const { onFatal, ...rest } = options
  const common = { ring, queueMax, ...rest }
  if (database.engine === 'sqlite') return openSqliteStore({ ...common, path: database.path, onFatal })
  const sessionAt = databaseSession === null ? {} : { sessionAt: databaseSession }
  return openPostgresStore({ ...common, ...sessionAt, address: database })
}

/** The command was run as another user than the owner of the database file. */
class OwnerMismatch extends Error {
  override name = 'OwnerMismatch'
}

/** The store for a command. Another user's WAL file would stop the service, so only the file's owner may. */
export async function openStoreForCommand(
  config: Config,
  options: Pick<StoreOptions, 'onFatal' | 'schemaUse'>,
): Promise<Store> {
  if (config.database.engine === 'sqlite') {
    const owner = statSync(config.database.path, { throwIfNoEntry: false })?.uid
    const user = process.getuid?.()
    if (owner !== undefined && user !== undefined && owner !== user) {
      throw new OwnerMismatch(
        `the database belongs to user ${owner} and this is user ${user}: run the command as its owner, with sudo -u '#${owner}'`,
      )
    }
  }
  return openStore(config, options)
}
