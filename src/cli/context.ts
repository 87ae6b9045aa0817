/** What every command is given, and the look-ups that several share. */
import type { Config, Environment, Mode } from '../config/parse-config.ts'
import type { App } from '../domain/app/app.ts'
import type { Store } from '../store/store.ts'
import { CommandFailed, type Output } from './output.ts'

/** A service that was started, all of its roles. */
export type RunningService = {
  /** Base URLs of what listens. */
  readonly urls: {
    readonly api?: string
    readonly links?: string
    readonly ops: string
    readonly console?: string
  }
  readonly store: Store
  /**
   * `drainMs`: how long requests are still taken after the service says it is not ready;
   * `graceMs`: how long attempts under way may take to end.
   */
  stop(options?: { drainMs?: number; graceMs?: number }): Promise<void>
}

/** The parts that only the composition root can make. */
export type CliDeps = {
  readonly env: Environment
  readonly output: Output
  readonly parseConfig: (env: Environment, mode: Mode) => Config
  readonly openStore: (config: Config) => Promise<Store>
  readonly startService: (config: Config) => Promise<RunningService>
  /** Resolves when the process is asked to end. */
  readonly untilStopped: () => Promise<void>
}

/** Opens the configured store for one command. */
export async function withStore<T>(deps: CliDeps, run: (store: Store) => Promise<T>): Promise<T> {
  const store = await deps.openStore(deps.parseConfig(deps.env, 'command'))
  try {
    return await run(store)
  } finally {
    await store.close()
  }
}

export async function requireApp(store: Store, idOrSlug: string): Promise<App> {
  const app = await store.findApp(idOrSlug)
  if (app === null) throw new CommandFailed(`there is no app "${idOrSlug}"; "postern app list" shows them`)
  return app
}
