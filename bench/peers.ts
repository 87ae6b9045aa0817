/**
 * Postern beside what people would use in its place: a web application on BullMQ and Redis, one on pg-boss
 * and PostgreSQL, and Postfix. Emails accepted a second by 64 clients, and emails drained a second to one
 * sink. A peer's counters are fixed windows, and its keys are in memory; otherwise it makes the same checks.
 */

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { installOwnPackages } from '../test/support/own-packages.ts'
import { freePort } from '../test/support/ports.ts'
import { atEnd, type Scope, temporaryFolder } from '../test/support/temporary.ts'
import { eventually } from '../test/support/wait.ts'
import { drainRound } from './drain.ts'
import type { LoopResult } from './loop.ts'
import { count, median, report, type Table } from './measure.ts'
import { answers, offerMail, startMailServers } from './peers/mail-servers.ts'
import type { PeerOrder } from './peers/web-app.ts'
import {
  engines,
  freshDatabaseUrl,
  makeBed,
  peerKeys,
  type Sink,
  startLoader,
  startPeer,
  startPostern,
  startSink,
  subjectOf,
} from './processes.ts'

const clients = 64
const connections = 20
const roundMs = 3000
const rounds = 3
/** Emails that a peer drains in one round, if it has accepted as many. */
const drainedMost = 6000
const redisServer = '/usr/bin/redis-server'

type Peer = {
  readonly name: string
  readonly durable: string
  readonly accept: () => Promise<Pick<LoopResult, 'perSecond'> & Partial<LoopResult>>
  readonly drain: (() => Promise<number>) | null
}

export async function run(scope: Scope): Promise<void> {
  if (!installOwnPackages(new URL('./peers/', import.meta.url))) throw new Error('npm could not install the peers')
  const load = startLoader(scope)
  const sink = await startSink(scope)
  let serial = 0
  const nextSerial = () => {
    serial += 10_100_003
    return serial
  }
  const bench = { scope, load, sink, nextSerial }
  const peers = [
    ...(await posterns(bench)),
    ...(await redisPeers(bench)),
    await pgBossPeer(bench),
    ...(await mailServers(scope)),
  ]
  const results = peers.map(() => ({ accepts: [] as number[], p99s: [] as number[], drains: [] as number[] }))
  for (let round = 0; round < rounds; round++) {
    for (const [index, { accept, drain }] of peers.entries()) {
      const { perSecond, p99Ms } = await accept()
      results[index]?.accepts.push(perSecond)
      if (p99Ms !== undefined) results[index]?.p99s.push(p99Ms)
      if (drain !== null) results[index]?.drains.push(await drain())
    }
  }
  const table: Table = {
    columns: [
      'service',
      'durable before the 202',
      'accepted a second',
      'rounds',
      'p99 ms, worst round',
      'drained a second',
    ],
    rows: peers.map(({ name, durable }, index) => {
      const { accepts = [], p99s = [], drains = [] } = results[index] ?? {}
      return [
        name,
        durable,
        count(median(accepts)),
        accepts.map(count).join(', '),
        p99s.length === 0 ? '' : Math.max(...p99s).toFixed(0),
        drains.length === 0 ? '' : count(median(drains)),
      ]
    }),
  }
  report('peers', { [`Accepted with ${clients} clients, drained over ${connections} connections`]: table }, results)
}

type Bench = { scope: Scope; load: ReturnType<typeof startLoader>; sink: Sink; nextSerial: () => number }

const posterns = ({ scope, load, sink, nextSerial }: Bench): Promise<Peer[]> =>
  Promise.all(
    engines.map(async (engine) => {
      const subject = subjectOf(engine)
      const [bed, drainBed] = [await makeBed(scope, subject), await makeBed(scope, subject)]
      const { port } = await startPostern(scope, bed, { POSTERN_ROLES: 'api' })
      const order = { ports: [port], keys: bed.keys, clients, ms: roundMs, rate: null }
      return {
        name: `Postern on ${engine}`,
        durable: 'yes',
        accept: () => load({ ...order, serial: nextSerial() }),
        drain: () => drainRound(drainBed, `smtp://127.0.0.1:${sink.port}?connections=${connections}`),
      }
    }),
  )

async function redisPeers(bench: Bench): Promise<Peer[]> {
  if (!existsSync(redisServer)) {
    console.log('skipping BullMQ: it needs redis-server, from the package redis-server')
    return []
  }
  const variants = [
    ['always', 'yes'],
    ['everysec', 'no: up to a second is lost'],
  ] as const
  return Promise.all(
    variants.map(async ([fsync, durable]) => {
      const port = await freePort()
      const settings = ['--appendonly', 'yes', '--appendfsync', fsync, '--dir', temporaryFolder(bench.scope)]
      const child = spawn(redisServer, ['--port', String(port), '--bind', '127.0.0.1', '--save', '', ...settings], {
        stdio: 'ignore',
      })
      atEnd(bench.scope, () => child.kill('SIGKILL'))
      await eventually(() => answers(port))
      const name = `Fastify with BullMQ, appendfsync ${fsync}`
      return webApp(bench, {
        name,
        durable,
        file: new URL('./peers/bullmq.ts', import.meta.url),
        databaseUrl: `redis://127.0.0.1:${port}`,
      })
    }),
  )
}

async function pgBossPeer(bench: Bench): Promise<Peer> {
  const databaseUrl = await freshDatabaseUrl(bench.scope, 'PostgreSQL')
  return webApp(bench, {
    name: 'Fastify with pg-boss',
    durable: 'yes',
    file: new URL('./peers/pg-boss.ts', import.meta.url),
    databaseUrl,
  })
}

type WebApp = { name: string; durable: string; file: URL; databaseUrl: string }

async function webApp(
  { scope, load, sink, nextSerial }: Bench,
  { name, durable, file, databaseUrl }: WebApp,
): Promise<Peer> {
  const start = (own: Scope, role: PeerOrder['role']) =>
    startPeer(own, file, { role, databaseUrl, sinkPort: sink.port, connections })
  const port = await start(scope, 'api')
  let queued = 0
  const accept = async () => {
    const result = await load({ ports: [port], keys: peerKeys, clients, ms: roundMs, rate: null, serial: nextSerial() })
    queued = result.answers['202'] ?? 0
    return result
  }
  const drain = async () => {
    const ends: (() => unknown)[] = []
    await sink.report()
    const begunMs = performance.now()
    await start({ after: (end) => void ends.push(end) }, 'worker')
    let taken = 0
    while (taken < Math.min(queued, drainedMost)) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      taken += (await sink.report()).taken.length
    }
    const perSecond = (taken * 1000) / (performance.now() - begunMs)
    for (const end of ends) await end()
    return perSecond
  }
  return { name, durable, accept, drain }
}

async function mailServers(scope: Scope): Promise<Peer[]> {
  const servers = await startMailServers(scope)
  return servers.map(({ name, port }) => ({
    name,
    durable: 'yes',
    accept: async () => ({ perSecond: await offerMail(port, { clients, emails: 3000 }) }),
    drain: null,
  }))
}
