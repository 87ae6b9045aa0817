/**
 * Draining: queued emails per second from claim to recorded outcome, including unsealing, rendering and
 * composing, compared with a bare loop of `SMTPConnection.send` with a prepared message over the same
 * number of connections. Without signatures, which `signing` measures.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../src/store/store.ts'
import type { Scope } from '../test/support/temporary.ts'
import { type Contender, interleave, report, standingsTable, type Table } from './measure.ts'
import { startSmtpSink } from './peers/mail-servers.ts'
import {
  type Bed,
  fill,
  makeBed,
  readMetric,
  startDirectSender,
  startPostern,
  startSink,
  subjects,
  useStore,
} from './processes.ts'
import type { Variety } from './senders.ts'

const emails = 12_000
/** Measured at the end of a round. The emails before these warm up the new processes. */
const counted = 10_000
const connections = 20
const rounds = 3

export async function run(scope: Scope): Promise<void> {
  const direct = startDirectSender(scope)
  const beds = await Promise.all(
    subjects.map(async (subject) => ({ name: subject.name, bed: await makeBed(scope, subject) })),
  )
  const sinks = [
    { name: 'our own sink', port: (await startSink(scope)).port },
    { name: "Postfix's smtp-sink", port: (await startSmtpSink(scope))?.port },
  ]
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  for (const { name, port } of sinks) {
    if (port === undefined) continue
    const contenders: Contender[] = [
      {
        name: 'bare SMTPConnection',
        round: async () => (await direct({ port, clients: connections, ms: 3000, rate: null, serial: 0 })).perSecond,
      },
      ...beds.flatMap(({ name, bed }) => {
        const relay = `smtp://127.0.0.1:${port}?connections=${connections}`
        const coded = () => drainRound(bed, relay, { codes: true })
        // A checkout before may queue none.
        const withCodes = bed.checkout.label === '' ? [{ name: `${name}, with codes`, round: coded }] : []
        return [{ name, round: () => drainRound(bed, relay) }, ...withCodes]
      }),
    ]
    const standings = await interleave(contenders, rounds)
    tables[`Sent to ${name} over ${connections} connections`] = standingsTable('sender', standings)
    measured[name] = standings
  }
  report('drain', tables, measured)
}

type DrainOptions = Variety & { readonly processes?: number; readonly keys?: readonly string[] }

/**
 * Queues `emails`, starts `processes` workers, and returns the emails per second over the last `counted`.
 * Throws if an email was not delivered.
 */
export async function drainRound(
  bed: Bed,
  relay: string,
  { processes = 1, keys = bed.keys, ...variety }: DrainOptions = {},
): Promise<number> {
  const ends: (() => unknown)[] = []
  const scope = { after: (end: () => unknown) => void ends.push(end) }
  await fill(bed, emails, { keys, ...variety })
  const env = { POSTERN_ROLES: 'worker', POSTERN_SMTP_URL: relay }
  const workers = await Promise.all(Array.from({ length: processes }, () => startPostern(scope, bed, env)))
  const perSecond = await useStore(bed, (store) => drained(store))
  const delivered = await Promise.all(
    workers.map(({ ops }) => readMetric(ops, 'postern_emails_finished_total{state="delivered",reason=""}')),
  )
  const all = delivered.reduce((sum, own) => sum + own, 0)
  if (all !== emails) throw new Error(`${all} of ${emails} were delivered`)
  for (const end of ends) await end()
  return perSecond
}

/** Emails per second that leave the queue, from when `counted` are left until it is empty. */
async function drained(store: Pick<Store, 'readQueueGauge'>): Promise<number> {
  let began: { depth: number; atMs: number } | null = null
  for (;;) {
    const { depth } = await store.readQueueGauge() // asked beside the processes, so that they do nothing but send
    const atMs = performance.now()
    if (began === null && depth <= counted) began = { depth, atMs }
    if (began !== null && depth === 0) return (began.depth * 1000) / (atMs - began.atMs)
    await sleep(25)
  }
}
