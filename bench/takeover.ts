/** How soon the mail of a killed worker is with the relay, and how little a suspect delays other mail. */
import { killWorkers, poisonService } from '../test/support/takeover.ts'
import type { Scope } from '../test/support/temporary.ts'
import { percentile } from './loop.ts'
import { median, report, type Table } from './measure.ts'
import { type Engine, engines, freshDatabaseUrl } from './processes.ts'

const emails = 2000
const kills = 20
const poisonForMs = 60_000

/** On SQLite one worker, counted from its next start; on PostgreSQL three, counted from the kill. */
const workersOf: Record<Engine, number> = { SQLite: 1, PostgreSQL: 3 }

export async function run(scope: Scope): Promise<void> {
  const takeovers: string[][] = []
  const delays: string[][] = []
  const measured: Record<string, unknown> = {}
  for (const engine of engines) {
    const databaseUrl = await freshDatabaseUrl(scope, engine)
    const { waitsMs, held } = await killWorkers(scope, {
      databaseUrl,
      emails,
      kills,
      workers: workersOf[engine],
    })
    takeovers.push([engine, ...[kills, held].map(String), ms(median(waitsMs)), ms(Math.max(...waitsMs))])
    const poisoned = await poisonService(scope, {
      databaseUrl: await freshDatabaseUrl(scope, engine),
      forMs: poisonForMs,
    })
    const { delaysMs, deaths } = poisoned
    const p99 = percentile(delaysMs, 0.99)
    delays.push([
      engine,
      ...[deaths, delaysMs.length].map(String),
      ms(median(delaysMs)),
      ms(p99),
      ms(Math.max(...delaysMs)),
    ])
    measured[engine] = { waitsMs, held, deaths, p99 }
  }
  const tables: Record<string, Table> = {
    'From the death of a worker (PostgreSQL, two others run) or the next start (SQLite) to the relay': {
      columns: ['store', 'kills', 'emails held', 'median ms', 'most ms'],
      rows: takeovers,
    },
    'From accepting to delivering other mail, while one email kills each worker that tries it': {
      columns: ['store', 'deaths', 'other emails', 'p50 ms', 'p99 ms', 'most ms'],
      rows: delays,
    },
  }
  report('takeover', tables, measured)
}

const ms = (value: number): string => value.toFixed(0)
