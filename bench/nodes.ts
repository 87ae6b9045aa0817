/**
 * Several processes: accepting and draining with 1, 2 and 4 of them on one PostgreSQL. All run on this
 * machine, so the result shows how much they slow each other down.
 */
import { counted } from '../src/domain/counts.ts'
import type { Scope } from '../test/support/temporary.ts'
import { drainRound } from './drain.ts'
import { type Contender, interleave, report, standingsTable, type Table } from './measure.ts'
import { makeBed, startLoader, startPostern, startSink, subjectOf } from './processes.ts'

const counts = [1, 2, 4]
const clients = 256
const roundMs = 3000
const rounds = 3

export async function run(scope: Scope): Promise<void> {
  const load = startLoader(scope)
  const sink = await startSink(scope)
  const bed = await makeBed(scope, subjectOf('PostgreSQL'))
  const ports = await Promise.all(
    Array.from({ length: Math.max(...counts) }, async () => {
      const { port } = await startPostern(scope, bed, { POSTERN_ROLES: 'api' })
      return port
    }),
  )
  let serial = 0
  const accepting = counts.map(
    (processes): Contender => ({
      name: counted(processes, 'API'),
      round: async () => {
        serial += 10_100_003 // other recipients each time
        const some = ports.slice(0, processes)
        const { perSecond } = await load({
          ports: some,
          keys: bed.keys,
          clients,
          ms: roundMs,
          rate: null,
          serial,
        })
        return perSecond
      },
    }),
  )
  const drainBed = await makeBed(scope, subjectOf('PostgreSQL'))
  const draining = counts.map(
    (processes): Contender => ({
      name: counted(processes, 'worker'),
      round: () => drainRound(drainBed, `smtp://127.0.0.1:${sink.port}?connections=20`, { processes }),
    }),
  )
  const tables: Record<string, Table> = {}
  const accepted = await interleave(accepting, rounds)
  tables[`Accepted on one PostgreSQL with ${clients} clients`] = standingsTable('processes', accepted)
  const sent = await interleave(draining, rounds)
  tables['Sent from one PostgreSQL, 20 connections each'] = standingsTable('processes', sent)
  report('nodes', tables, { accepted, sent })
}
