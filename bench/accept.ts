/**
 * Accepting: how many emails a second are answered 202, everything on (key, rules, three limits,
 * idempotency, seal, durable commit), beside a bare `node:http` server and Postfix over SMTP. No
 * worker runs: it is the way in that is measured.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, startPostfix } from '../test/support/postfix.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { type Scope, temporaryFolder } from '../test/support/temporary.ts'
import type { LoadResult } from './http-load.ts'
import { type Contender, interleave, report, standingsTable, type Table } from './measure.ts'
import { startBare, startLoader, startPostern } from './processes.ts'

const roundMs = 4000
const rounds = 5

export async function run(scope: Scope): Promise<void> {
  const load = startLoader(scope)
  const sqlite = await startPostern(scope, `sqlite:${join(temporaryFolder(scope), 'postern.db')}`, {
    POSTERN_ROLES: 'api',
  })
  const database = await startPostgres(scope)
  const postgres = await startPostern(scope, database.url, { POSTERN_ROLES: 'api' })
  const servers = [
    { name: 'bare node:http', port: await startBare(scope), keys: ['none'] },
    { name: 'Postern on SQLite', port: sqlite.port, keys: sqlite.keys },
    { name: 'Postern on PostgreSQL', port: postgres.port, keys: postgres.keys },
  ]
  const postfix = await postfixContender(scope)
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  const state = { serial: 0 }
  for (const clients of [64, 256]) {
    const latencies = new Map<string, LoadResult[]>(servers.map(({ name }) => [name, []]))
    const contenders: Contender[] = servers.map(({ name, port, keys }) => ({
      name,
      round: async () => {
        const result = await load({ port, keys, clients, ms: roundMs, rate: null, serial: state.serial })
        state.serial += 10_000_000
        if (Object.keys(result.statuses).join() !== '202')
          throw new Error(`${name} answered ${JSON.stringify(result.statuses)}`)
        latencies.get(name)?.push(result)
        return result.perSecond
      },
    }))
    const all = postfix === null ? contenders : [...contenders, postfix(clients)]
    const standings = await interleave(all, rounds)
    const table = standingsTable('server', standings)
    tables[`Accepted with ${clients} clients`] = {
      columns: [...table.columns, 'p50 ms', 'p99 ms (worst round)'],
      rows: table.rows.map((row) => {
        const results = latencies.get(row[0] ?? '') ?? []
        const worst = (pick: (result: LoadResult) => number) =>
          results.length === 0 ? '' : Math.max(...results.map(pick)).toFixed(1)
        return [...row, worst((result) => result.p50Ms), worst((result) => result.p99Ms)]
      }),
    }
    measured[clients] = { standings, latencies: Object.fromEntries(latencies) }
  }
  report('accept', tables, measured)
}

const smtpSource = '/usr/sbin/smtp-source'
const batch = 2000

/** Debian's Postfix takes as many messages as its own load generator offers, and holds them. */
async function postfixContender(scope: Scope): Promise<((clients: number) => Contender) | null> {
  if (!existsSync(smtpSource) || process.getuid?.() !== 0) {
    console.log('without Postfix: it needs root and the package postfix')
    return null
  }
  const { port } = await startPostfix(scope, await freePort(), { smtpd_client_restrictions: 'static:HOLD' })
  return (clients) => ({
    name: 'Postfix over SMTP',
    round: async () => {
      const options = [
        '-s',
        String(clients),
        '-m',
        String(batch),
        '-l',
        '1500',
        '-f',
        'auth@acme.test',
        '-t',
        'person@example.com',
      ]
      const begunMs = performance.now()
      await promisify(execFile)(smtpSource, [...options, `127.0.0.1:${port}`])
      return (batch * 1000) / (performance.now() - begunMs)
    },
  })
}
