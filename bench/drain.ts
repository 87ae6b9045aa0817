/**
 * Draining: how many queued emails a second go from claim to recorded outcome, rendered, composed
 * and sealed content opened, beside a bare loop of `SMTPConnection.send` with a prepared message
 * over as many connections. Without DKIM, which the relay signs.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Scope } from '../test/support/temporary.ts'
import { type Contender, interleave, report, standingsTable, type Table } from './measure.ts'
import { startSmtpSink } from './peers.ts'
import {
  type Bed,
  engines,
  makeBed,
  startDirectSender,
  startPostern,
  startSink,
  useStore,
} from './processes.ts'
import { enqueueMany, sendersOf } from './senders.ts'

const emails = 25_000
/** The first ones warm the new process up. */
const counted = 20_000
const connections = 20
const rounds = 3
const fillers = 256

export async function run(scope: Scope): Promise<void> {
  const direct = startDirectSender(scope)
  const beds = await Promise.all(
    engines.map(async (engine) => ({ engine, bed: await makeBed(scope, engine) })),
  )
  const sinks = [
    { name: 'a sink of ours', port: (await startSink(scope)).port },
    { name: "Postfix's smtp-sink", port: (await startSmtpSink(scope))?.port },
  ]
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  for (const { name, port } of sinks) {
    if (port === undefined) continue
    const contenders: Contender[] = [
      {
        name: 'bare SMTPConnection',
        round: async () =>
          (await direct({ port, clients: connections, ms: 3000, rate: null, serial: 0 })).perSecond,
      },
      ...beds.map(({ engine, bed }) => ({
        name: `Postern on ${engine}`,
        round: () => drainRound(bed, `smtp://127.0.0.1:${port}?connections=${connections}`),
      })),
    ]
    const standings = await interleave(contenders, rounds)
    tables[`Sent to ${name} over ${connections} connections`] = standingsTable('sender', standings)
    measured[name] = standings
  }
  report('drain', tables, measured)
}

/** Queues, starts a worker, and counts the outcomes it records, to the last one. */
async function drainRound(bed: Bed, relay: string): Promise<number> {
  const ends: (() => unknown)[] = []
  await useStore(bed.env, (store) => enqueueMany(store, sendersOf(bed), { emails, clients: fillers }))
  const { ops } = await startPostern({ after: (end) => void ends.push(end) }, bed, {
    POSTERN_ROLES: 'worker',
    POSTERN_SMTP_URL: relay,
  })
  const perSecond = await drained(ops, counted)
  const delivered = await readMetric(ops, 'postern_attempts_total{outcome="delivered"}')
  if (delivered !== emails) throw new Error(`${delivered} of ${emails} were delivered`)
  for (const end of ends) await end()
  return perSecond
}

/** How many a second leave the queue, from when so many or fewer are left to the last one. */
export async function drained(ops: string, from: number): Promise<number> {
  let began: { depth: number; atMs: number } | null = null
  for (;;) {
    const depth = await readDepth(ops)
    const atMs = performance.now()
    if (began === null && depth <= from) began = { depth, atMs }
    if (began !== null && depth === 0) return (began.depth * 1000) / (atMs - began.atMs)
    await sleep(25)
  }
}

export const readDepth = (ops: string): Promise<number> => readMetric(ops, 'postern_queue_depth')

async function readMetric(ops: string, name: string): Promise<number> {
  const text = await (await fetch(`${ops}/metrics`)).text()
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length))
}
