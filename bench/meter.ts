/** How much processor and memory a service uses, and the PostgreSQL server of its database. */
import { readdirSync, readFileSync } from 'node:fs'
import { openClient } from '../test/support/postgres.ts'
import type { Scope } from '../test/support/temporary.ts'
import type { Bed, Engine } from './processes.ts'

/** Milliseconds of processor time, and transactions. */
export type Used = { readonly node: number; readonly postgres: number; readonly commits: number }

export type Meter = <T>(work: () => Promise<T>) => Promise<{ readonly result: T; readonly used: Used }>

/** Measures what the process and the database server of a bed use during some work. */
export async function newMeter(scope: Scope, engine: Engine, bed: Bed, pid: number): Promise<Meter> {
  const readUsed = engine === 'SQLite' ? async () => ofProcess(pid) : await serverReader(scope, bed, pid)
  return async (work) => {
    const before = await readUsed()
    const result = await work()
    const after = await readUsed()
    const used = {
      node: after.node - before.node,
      postgres: after.postgres - before.postgres,
      commits: after.commits - before.commits,
    }
    return { result, used }
  }
}

const ofProcess = (pid: number): Used => ({ node: cpuMs(pid), postgres: 0, commits: 0 })

async function serverReader(scope: Scope, { env }: Bed, pid: number): Promise<() => Promise<Used>> {
  const client = await openClient(scope, env.POSTERN_DATABASE_URL ?? '')
  const { rows } = await client.query('show data_directory')
  const folder: string = rows[0].data_directory
  const server = Number(readFileSync(`${folder}/postmaster.pid`, 'utf8').split('\n')[0])
  return async () => {
    const { rows: counts } = await client.query(
      'select xact_commit::float8 as commits from pg_stat_database where datname = current_database()',
    )
    const processes = readdirSync('/proc')
      .map(Number)
      .filter((each) => readStat(each)?.parent === server)
    const postgres = [...processes, server].reduce((sum, each) => sum + cpuMs(each), 0)
    return { node: cpuMs(pid), postgres, commits: counts[0].commits }
  }
}

const tickMs = 10

/** Processor time of a process and of its children that have ended; null if there is none. */
function readStat(pid: number): { parent: number; ms: number } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, each) => sum + Number(each), 0)
    return { parent: Number(fields[1]), ms: ticks * tickMs }
  } catch {
    return null
  }
}

const cpuMs = (pid: number): number => readStat(pid)?.ms ?? 0

/** Resident memory in MiB. */
export const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
