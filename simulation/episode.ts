/**
 * One run, in a thread of its own: it replaces the globals of its thread, and modules remember what they have
 * seen. Posts its result to the thread that started it.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { Disk, mountDisk } from './disk.ts'
import { replaceGlobals, replaceModule } from './globals.ts'
import { Network } from './network.ts'
import { World } from './world.ts'

export type EpisodeOrder = {
  readonly seed: number
  readonly days: number
  /** Faults after so many are left out. */
  readonly faultsMax: number
  /** Whether the lines of the trace are posted, too. */
  readonly watches: boolean
  /** A change to the code of Postern, to see whether it is noticed. */
  readonly plant?: Plant
}

/** `find`, which `file` holds once, is replaced. */
export type Plant = { readonly file: string; readonly find: string; readonly replace: string }

/** Changes the text of a file when it is loaded. */
function plantFault({ file, find, replace }: Plant): void {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (!url.endsWith(`/${file}`)) return loaded
      const [before, after, ...more] = String(loaded.source).split(find)
      if (after === undefined || more.length > 0) throw new Error(`${file} does not hold once: ${find}`)
      return { ...loaded, source: `${before}${replace}${after}` }
    },
  })
}

export type EpisodeResult = {
  readonly seed: number
  readonly days: number
  readonly trace: string
  readonly steps: number
  /** How many of each kind were injected. */
  readonly faults: Readonly<Record<string, number>>
  readonly counts: Readonly<Record<string, number>>
  /** Null if all that always holds has held. */
  readonly violation: string | null
}

const port = parentPort

async function run(order: EpisodeOrder): Promise<EpisodeResult> {
  const { days, faultsMax, plant, seed, watches } = order
  if (plant !== undefined) plantFault(plant)
  const watch = watches ? (line: string) => port?.postMessage(line) : null
  const world = new World(seed, watch)
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'postern-simulation-'))
  const [network, disk] = [new Network(world), new Disk()]
  const latency = world.random('threads')
  const latencyMs = (thread: string) => latency.skewed(0.02, 0.4) + (thread === 'writer' ? disk.writeMs : 0)
  replaceGlobals(world, network)
  mountDisk(world, disk)
  replaceModule('node:worker_threads', { parentPort: null }) // to Postern, this is the main thread
  // Modules that are imported from here on may keep the globals that they find.
  const { newThreads } = await import('./threads.ts')
  replaceModule('node:worker_threads', { Worker: newThreads(world, latencyMs) })
  const { Run } = await import('./run.ts')
  const run = new Run({ world, network, disk, path: join(folder, 'postern.db') })
  let violation: string | null = null
  try {
    await run.play(days, faultsMax)
  } catch (error) {
    violation = describe(error as Error)
  }
  run.end()
  rmSync(folder, { recursive: true, force: true })
  const { counts, faults } = run
  return { seed, days, steps: world.steps, faults, counts, violation, trace: world.digest() }
}

const describe = (error: Error): string =>
  error.name === 'Violation'
    ? error.message
    : `${error.stack}\n${(error.cause as Error | undefined)?.stack ?? ''}`.trim()

port?.postMessage(await run(workerData as EpisodeOrder))
