/** The configured store. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../config/parse-config.ts'
import { openPostgresStore } from '../store/postgres/postgres-store.ts'
import type { ClockOffset } from '../store/shared/clock.ts'
import type { OnGroup } from '../store/shared/grouped-calls.ts'
import type { SchemaUse } from '../store/shared/migrations.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Store } from '../store/store.ts'

export type StoreOptions = {
  /** The database file or its disk failed: end the process without another write. */
  readonly onFatal: (error: Error) => void
  readonly clock?: ClockOffset
  readonly onGroup?: OnGroup | undefined
  /** Whether opening may create or migrate the schema; usually `migrate`. */
  readonly schemaUse?: SchemaUse
  /** False for a command, which starts no threads. */
  readonly isService?: boolean
}

export function openStore(config: Config, options: StoreOptions): Promise<Store> {
  const { database, databaseSession, queueMax, ring } = config
  const { onFatal, ...rest } = options
  const common = { ring, queueMax, ...rest }
  if (database.engine === 'sqlite' && options.isService !== false) requireWritable(database.path)
  if (database.engine === 'sqlite') return openSqliteStore({ ...common, path: database.path, onFatal })
  const sessionAt = databaseSession === null ? {} : { sessionAt: databaseSession }
  return openPostgresStore({ ...common, ...sessionAt, address: database })
}

/** The command was run as another user than the owner of the database file. */
class OwnerMismatch extends Error {
  override name = 'OwnerMismatch'
}

/**
 * Another user's WAL file would stop the service, so only the owner of the file may go on. A file that root
 * makes in the folder of somebody else would stop it as well.
 */
export function requireOwner(path: string): void {
  const file = statSync(path, absent)
  const owner = (file ?? statSync(dirname(path), absent))?.uid
  const user = process.getuid?.()
  if (owner === undefined || user === undefined || owner === user) return
  if (file === undefined && user !== 0) return // its group may write there
  const what = file === undefined ? 'the folder of the database' : 'the database'
  throw new OwnerMismatch(
    `${what} belongs to user ${owner} and this is user ${user}: ${adviseOn(Number(owner), user, path)}`,
  )
}

/** A database that root made, as after a command with sudo, is given to the user of the service. */
const adviseOn = (owner: number, user: number, path: string): string =>
  owner === 0
    ? `a command run as root has made it; give it to the service's user, with chown ${user} ${path}*`
    : `run the command as its owner, with sudo -u '#${owner}'`

/** SQLite opens a file that it may not write, or beside which it can keep no WAL; each write would fail. */
function requireWritable(path: string): void {
  for (const [what, place] of [
    ['the database', path],
    ['the folder of the database,', dirname(path)],
  ] as const)
    try {
      if (existsSync(place)) accessSync(place, constants.W_OK)
    } catch {
      const [owner, user] = [statSync(place).uid, process.getuid?.() ?? 0]
      const advice =
        owner === 0
          ? `give it to this user, with chown ${user} ${place}${place === path ? '*' : ''}`
          : 'run as its owner, or choose another folder'
      throw new OwnerMismatch(`user ${user} may not write ${what} ${place}, which belongs to user ${owner}: ${advice}`)
    }
}

const absent = { throwIfNoEntry: false }

/** The store for a command. */
export async function openStoreForCommand(
  config: Config,
  options: Pick<StoreOptions, 'onFatal' | 'schemaUse'>,
): Promise<Store> {
  const { database } = config
  const makesOne = options.schemaUse !== 'open'
  if (database.engine === 'sqlite') {
    const isThere = existsSync(database.path)
    if (makesOne || isThere) requireOwner(database.path)
    if (makesOne || !isThere) requireWritable(database.path)
  }
  return openStore(config, { ...options, isService: false })
}
