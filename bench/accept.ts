/**
 * Accepting: emails answered 202 per second with every step on (key, rules, three limits, idempotency,
 * seal, durable commit), compared with a bare `node:http` server, and with Postfix and Haraka over SMTP.
 * No worker runs, so only accepting is measured.
 */
import type { Scope } from '../test/support/temporary.ts'
import type { LoopResult } from './loop.ts'
import { type Contender, interleave, report, standingsTable, type Table } from './measure.ts'
import { offerMail, startMailServers } from './peers/mail-servers.ts'
import { makeBed, startBare, startLoader, startPostern, subjects } from './processes.ts'

const roundMs = 3000
/** Before the rounds: until its code is compiled and its heap has grown, a service accepts less. */
const warmMs = 20_000
const rounds = 3
/** Emails offered to a mail server in one round. */
const offered = 3000

export async function run(scope: Scope): Promise<void> {
  const load = startLoader(scope)
  const servers = [{ name: 'bare node:http', port: await startBare(scope), keys: ['none'] }]
  for (const subject of subjects) {
    const bed = await makeBed(scope, subject)
    const { port } = await startPostern(scope, bed, { POSTERN_ROLES: 'api' })
    servers.push({ name: subject.name, port, keys: [...bed.keys] })
  }
  const peers = await startMailServers(scope)
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  let serial = 0
  const offer = ({ port, keys }: (typeof servers)[number], clients: number, ms: number) => {
    serial += 10_100_003 // new recipients each time
    return load({ ports: [port], keys, clients, ms, rate: null, serial })
  }
  for (const server of servers) await offer(server, 256, warmMs)
  for (const clients of [64, 256]) {
    const results = new Map<string, LoopResult[]>(servers.map(({ name }) => [name, []]))
    const contenders: Contender[] = servers.map((server) => ({
      name: server.name,
      round: async () => {
        const result = await offer(server, clients, roundMs)
        results.get(server.name)?.push(result)
        return result.perSecond
      },
    }))
    for (const { name, port } of peers)
      contenders.push({ name, round: () => offerMail(port, { clients, emails: offered }) })
    const standings = await interleave(contenders, rounds)
    const table = standingsTable('server', standings)
    tables[`Accepted with ${clients} clients`] = {
      columns: [...table.columns, 'p50 ms, worst round', 'p99 ms, worst round'],
      rows: table.rows.map((row) => {
        const own = results.get(row[0] ?? '') ?? []
        const worst = (pick: (result: LoopResult) => number) =>
          own.length === 0 ? '' : Math.max(...own.map(pick)).toFixed(1)
        return [...row, worst((result) => result.p50Ms), worst((result) => result.p99Ms)]
      }),
    }
    measured[clients] = { standings, results: Object.fromEntries(results) }
  }
  report('accept', tables, measured)
}
