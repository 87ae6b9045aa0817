/**
 * Accepting: emails answered 202 per second with every step on (key, rules, three limits, idempotency,
 * seal, durable commit), compared with a bare `node:http` server, and with Postfix and Haraka over SMTP.
 * No worker runs, so only accepting is measured. The processor time of an email varies less than the rate
 * when the machine has other work.
 */
import type { Scope } from '../test/support/temporary.ts'
import type { LoopResult } from './loop.ts'
import { type Contender, interleave, median, report, standingsTable, type Table } from './measure.ts'
import { type Meter, newMeter } from './meter.ts'
import { offerMail, startMailServers } from './peers/mail-servers.ts'
import { makeBed, startBare, startLoader, startPostern, subjects } from './processes.ts'

const roundMs = 3000
/** Before the rounds: until its code is compiled and its heap has grown, a service accepts less. */
const warmMs = 20_000
const rounds = 3
/** Emails offered to a mail server in one round. */
const offered = 3000

type Server = { readonly name: string; readonly port: number; readonly keys: string[]; readonly measure?: Meter }
/** `cpuMicros`: processor time of an email, also of the PostgreSQL server; null if it is not measured. */
type Round = LoopResult & { readonly cpuMicros: number | null }

export async function run(scope: Scope): Promise<void> {
  const load = startLoader(scope)
  const servers: Server[] = [{ name: 'bare node:http', port: await startBare(scope), keys: ['none'] }]
  for (const subject of subjects) {
    const bed = await makeBed(scope, subject)
    const { port, child } = await startPostern(scope, bed, { POSTERN_ROLES: 'api' })
    const measure = await newMeter(scope, subject.engine, bed, child.pid ?? 0)
    servers.push({ name: subject.name, port, keys: [...bed.keys], measure })
  }
  const peers = await startMailServers(scope)
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  let serial = 0
  const offer = ({ port, keys }: Server, clients: number, ms: number) => {
    serial += 10_100_003 // new recipients each time
    return load({ ports: [port], keys, clients, ms, rate: null, serial })
  }
  const measureRound = async (server: Server, clients: number): Promise<Round> => {
    if (server.measure === undefined) return { ...(await offer(server, clients, roundMs)), cpuMicros: null }
    const { result, used } = await server.measure(() => offer(server, clients, roundMs))
    return { ...result, cpuMicros: ((used.node + used.postgres) * 1000) / (result.answers[202] ?? 0) }
  }
  for (const server of servers) await offer(server, 256, warmMs)
  for (const clients of [64, 256]) {
    const results = new Map<string, Round[]>(servers.map(({ name }) => [name, []]))
    const contenders: Contender[] = servers.map((server) => ({
      name: server.name,
      round: async () => {
        const result = await measureRound(server, clients)
        results.get(server.name)?.push(result)
        return result.perSecond
      },
    }))
    for (const { name, port } of peers)
      contenders.push({ name, round: () => offerMail(port, { clients, emails: offered }) })
    const standings = await interleave(contenders, rounds)
    const table = standingsTable('server', standings)
    tables[`Accepted with ${clients} clients`] = {
      columns: [...table.columns, 'p50 ms, worst round', 'p99 ms, worst round', 'processor, µs an email'],
      rows: table.rows.map((row) => {
        const own = results.get(row[0] ?? '') ?? []
        if (own.length === 0) return [...row, '', '', '']
        const worst = (pick: (round: Round) => number) => Math.max(...own.map(pick)).toFixed(1)
        const micros = own.flatMap(({ cpuMicros }) => cpuMicros ?? [])
        return [
          ...row,
          worst((round) => round.p50Ms),
          worst((round) => round.p99Ms),
          micros.length === 0 ? '' : median(micros).toFixed(0),
        ]
      }),
    }
    measured[clients] = { standings, results: Object.fromEntries(results) }
  }
  report('accept', tables, measured)
}
