/**
 * The gain from groups: requests enqueued in groups and one by one, compared with graphile-worker's
 * `add_jobs` on the same PostgreSQL. Postern does more per request (key, three limits, idempotency,
 * seal, depth, usage). graphile-worker adds a job with a payload of about the same size.
 */
import { makeWorkerUtils } from 'graphile-worker'
import { openPostgresStore } from '../src/store/postgres/postgres-store.ts'
import { databaseAt } from '../test/support/database.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { newRing } from '../test/support/service.ts'
import { atEnd, type Scope } from '../test/support/temporary.ts'
import { rate } from './loop.ts'
import { interleave, report, standingsTable } from './measure.ts'
import { enqueueNext, makeSenders } from './senders.ts'

const clients = 256
const roundMs = 4000
const rounds = 5
const payloadBytes = 300

export async function run(scope: Scope): Promise<void> {
  const server = await startPostgres(scope)
  const address = databaseAt(server.url)
  if (address.engine !== 'postgres') throw new Error('not PostgreSQL')
  const ring = newRing()
  const open = async (groupMax?: number) => {
    const store = await openPostgresStore({
      address,
      ring,
      queueMax: 100_000_000,
      ...(groupMax === undefined ? {} : { groupMax }),
    })
    atEnd(scope, () => store.close())
    return store
  }
  const [grouped, single] = [await open(), await open(1)]
  const senders = await makeSenders(grouped, 100)
  const hot = senders.slice(0, 1)
  const utils = await makeWorkerUtils({ connectionString: server.url, maxPoolSize: 4 })
  atEnd(scope, () => utils.release())
  await utils.migrate()
  const jobs = Array.from({ length: 64 }, () => ({
    identifier: 'send',
    payload: { body: 'x'.repeat(payloadBytes) },
  }))

  const standings = await interleave(
    [
      {
        name: 'Postern, groups, 100 apps',
        round: () => rate(clients, roundMs, () => enqueueNext(grouped, senders)),
      },
      {
        name: 'Postern, groups, one app',
        round: () => rate(clients, roundMs, () => enqueueNext(grouped, hot)),
      },
      {
        name: 'Postern, one by one',
        round: () => rate(clients, roundMs, () => enqueueNext(single, senders)),
      },
      {
        name: 'graphile-worker, addJobs of 64',
        round: async () => 64 * (await rate(4, roundMs, () => utils.addJobs(jobs))),
      },
      {
        name: 'graphile-worker, addJob',
        round: () => rate(clients, roundMs, () => utils.addJob('send', { body: 'x'.repeat(payloadBytes) })),
      },
    ],
    rounds,
  )
  report(
    'groups',
    { [`Enqueued on one PostgreSQL, ${clients} clients`]: standingsTable('way', standings) },
    standings,
  )
}
