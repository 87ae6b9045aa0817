/** The parts that commands are made of. Each is loaded by its first use, so that a command starts sooner. */
import type { Writable } from 'node:stream'
import type { Config } from '../config/parse-config.ts'
import type { LineOutput } from '../observe/line-output.ts'
import type { PostgresAddress } from '../store/database-address.ts'
import type { SchemaUse } from '../store/shared/migrations.ts'
import type { Store } from '../store/store.ts'

const databaseFiles = () => import('./database-files.ts')

type CommandProcess = {
  readonly version: string
  /** The name of the user who runs the command. */
  readonly user: string
  /** The database or its disk failed. */
  readonly onFatal: (error: Error) => void
}

export const composeCommands = ({ version, user, onFatal }: CommandProcess) => ({
  version,
  user,
  openStore: async (config: Config, schemaUse: SchemaUse) => {
    const { openStoreForCommand } = await import('./store.ts')
    return openStoreForCommand(config, { onFatal, schemaUse })
  },
  backUp: async (config: Config, to: string | Writable) => (await databaseFiles()).backUpDatabase(config, to),
  restore: async (config: Config, file: string | null, options: { cancelQueued: boolean }) =>
    (await databaseFiles()).restoreDatabase(config, file, options),
  copy: async (config: Config, target: PostgresAddress) => (await databaseFiles()).copyDatabase(config, target),
  exportArchive: async (config: Config, file: string, secrets: boolean) =>
    (await databaseFiles()).exportArchive(config, file, { secrets, version }),
  importArchive: async (config: Config, file: string) => (await databaseFiles()).importArchive(config, file),
  checkListeners: async (config: Config, isRunning: boolean) => {
    const { checkListeners } = await import('./check-listeners.ts')
    return checkListeners(config, isRunning)
  },
  newLinkDomainProbe: async (config: Config) => (await import('./link-domains.ts')).newLinkDomainProbe(config, version),
  newRunner: async (config: Config, store: Store) => {
    const { composeRunner } = await import('./management.ts')
    return composeRunner(config, { store, version, user })
  },
  /** @param output where the log goes; standard output unless given */
  startService: async (config: Config, output?: LineOutput) => {
    const { startService } = await import('./service.ts')
    return startService(config, { onFatal, version, ...(output !== undefined && { output }) })
  },
})
