/** Fastify with BullMQ on Redis: a queue library and counters in the same Redis. */
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { type Accepting, type Email, newSender, type PeerOrder, serve } from './web-app.ts'

const name = 'email'

function newAccept(url: string) {
  const redis = new Redis(url, { maxRetriesPerRequest: null })
  const queue = new Queue<Email>(name, { connection: redis })
  return async ({ idempotency, counters, email }: Accepting) => {
    const checks = redis.multi().set(`idempotency:${idempotency}`, '1', 'EX', 86_400, 'NX')
    for (const counter of counters) checks.incr(counter.name).expire(counter.name, counter.windowS, 'NX')
    const results = (await checks.exec()) ?? []
    if (results[0]?.[1] === null) return 'replayed'
    if (counters.some(({ max }, n) => Number(results[1 + 2 * n]?.[1]) > max)) return 'limited'
    await queue.add('magic_link', email, {
      attempts: 5,
      removeOnComplete: true,
      backoff: { type: 'exponential', delay: 1000 },
    })
    return 'queued'
  }
}

process.once('message', async ({ role, databaseUrl, keys, sinkPort, connections }: PeerOrder) => {
  if (role === 'api') return serve(keys, newAccept(databaseUrl))
  const send = newSender(sinkPort, connections)
  const connection = new Redis(databaseUrl, { maxRetriesPerRequest: null })
  new Worker<Email>(name, ({ data }) => send(data), { connection, concurrency: connections })
  process.send?.(0)
})
