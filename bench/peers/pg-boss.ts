/** Fastify with pg-boss on PostgreSQL: checks and job in one transaction. */
import pg from 'pg'
import PgBoss from 'pg-boss'
import { type Accepting, type Email, newSender, type PeerOrder, serve } from './web-app.ts'

const name = 'email'
const poolMax = 20
/** pg-boss polls, so a worker takes many jobs at a time. */
const batchSize = 1000

const schema = `
  create table if not exists idempotency (key text primary key, created_at timestamptz default now());
  create table if not exists counter (name text, began bigint, count bigint, primary key (name, began))`
const charge = `
  insert into counter (name, began, count) select name, began, 1 from unnest($1::text[], $2::bigint[]) c(name, began)
  order by name on conflict (name, began) do update set count = counter.count + 1 returning name, count`

function newAccept(boss: PgBoss, pool: pg.Pool) {
  const queue = async (client: pg.PoolClient, { idempotency, counters, email }: Accepting) => {
    const inserted = await client.query('insert into idempotency (key) values ($1) on conflict do nothing', [
      idempotency,
    ])
    if (inserted.rowCount === 0) return 'replayed'
    const began = counters.map(({ windowS }) => Math.floor(Date.now() / 1000 / windowS))
    const { rows } = await client.query(charge, [counters.map((counter) => counter.name), began])
    if (rows.some((row) => counters.some((counter) => counter.name === row.name && Number(row.count) > counter.max)))
      return 'limited'
    const db = { executeSql: (text: string, values: unknown[]) => client.query(text, values) }
    await boss.send(name, email, { db, retryLimit: 5, retryBackoff: true })
    return 'queued'
  }
  return async (request: Accepting) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      const result = await queue(client, request)
      await client.query(result === 'queued' ? 'commit' : 'rollback')
      client.release()
      return result
    } catch (error) {
      client.release(true) // its session may be lost
      throw error
    }
  }
}

process.once('message', async ({ role, databaseUrl, keys, sinkPort, connections }: PeerOrder) => {
  const boss = new PgBoss({ connectionString: databaseUrl })
  boss.on('error', () => {}) // it tries again
  await boss.start()
  if (role === 'api') {
    const pool = new pg.Pool({ connectionString: databaseUrl, max: poolMax })
    // Without these the process ends when a session is lost.
    pool.on('error', () => {})
    pool.on('connect', (client) => client.on('error', () => {}))
    await pool.query(schema)
    await boss.createQueue(name)
    return serve(keys, newAccept(boss, pool))
  }
  const send = newSender(sinkPort, connections)
  const work = async (jobs: readonly { data: Email }[]) => {
    await Promise.all(jobs.map(({ data }) => send(data)))
  }
  await boss.work<Email>(name, { batchSize, pollingIntervalSeconds: 0.5 }, work)
  process.send?.(0)
})
