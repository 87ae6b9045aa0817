/**
 * Accepting beside reports: 500 requests a second alone, and beside 500 reports a second that mail servers
 * send to the bounce listener, each about another delivered email. The listener is in the same process, or in
 * one of its own.
 */
import { toBounceAddress } from '../src/domain/delivery/reference.ts'
import type { EmailAddress } from '../src/domain/request/email-address.ts'
import type { Store } from '../src/store/store.ts'
import { freePort } from '../test/support/ports.ts'
import type { Scope } from '../test/support/temporary.ts'
import type { LoopResult } from './loop.ts'
import { comparedTable, report, type Table } from './measure.ts'
import {
  fill,
  makeBed,
  readMetric,
  type Subject,
  startLoader,
  startPostern,
  startReporter,
  subjects,
  useStore,
} from './processes.ts'
import type { ReportOrder } from './report-load.ts'
import { deliverAll } from './senders.ts'

const load = { clients: 64, ms: 10_000, rate: 500 }
const reporting = { clients: 20, ms: load.ms, rate: 500 }
/** The situations take turns. */
const rounds = 2
const reportsPerRound = (reporting.rate * reporting.ms) / 1000
const bounceAddress = 'bounces@bounce.acme.test' as EmailAddress
const recorded = 'postern_reports_total{source="mail",kind="bounced",cause="no_mailbox"}'

export async function run(scope: Scope): Promise<void> {
  const loader = startLoader(scope)
  const reporter = startReporter(scope)
  const tables: Record<string, Table> = {}
  const measured: Record<string, unknown> = {}
  for (const subject of subjects)
    for (const place of ['the same process', 'a process of its own'] as const) {
      const results = await measure(scope, subject, { place, loader, reporter })
      const name = `${subject.name}, the listener in ${place}`
      tables[`${load.rate} requests a second to ${name}`] = comparedTable([
        ['alone', results.alone],
        [`beside ${reporting.rate} reports a second`, results.beside],
        ['the reports, to their 250', results.reports],
      ])
      measured[name] = results
    }
  report('reports', tables, measured)
}

type Parts = {
  readonly place: 'the same process' | 'a process of its own'
  readonly loader: ReturnType<typeof startLoader>
  readonly reporter: ReturnType<typeof startReporter>
}

async function measure(scope: Scope, subject: Subject, { loader, place, reporter }: Parts) {
  const bed = await makeBed(scope, subject)
  await fill(bed, rounds * reportsPerRound)
  const emails = await useStore(bed, deliverQueue)
  const port = await freePort()
  const listens = { POSTERN_BOUNCE_LISTEN: `127.0.0.1:${port}`, POSTERN_BOUNCE_ADDRESS: bounceAddress }
  const isOwn = place === 'a process of its own'
  const roles = isOwn ? 'api' : 'api,reports'
  const service = await startPostern(scope, bed, { ...listens, POSTERN_ROLES: roles })
  const listener = isOwn ? await startPostern(scope, bed, { ...listens, POSTERN_ROLES: 'reports' }) : service
  let serial = 600_000_000
  const accept = (ms = load.ms) => {
    serial += load.rate * load.ms
    return loader({ ports: [service.port], keys: bed.keys, ...load, ms, serial })
  }
  await accept(3000) // warms up
  const results = { alone: [] as LoopResult[], beside: [] as LoopResult[], reports: [] as LoopResult[] }
  for (let round = 0; round < rounds; round++) {
    results.alone.push(await accept())
    const own = emails.slice(round * reportsPerRound, (round + 1) * reportsPerRound)
    const reported = reporter({ ...reporting, port, serial: 0, emails: own })
    results.beside.push(await accept())
    results.reports.push(await reported)
  }
  const count = await readMetric(listener.ops, recorded)
  if (count !== rounds * reportsPerRound) throw new Error(`${count} reports were recorded`)
  return results
}

/** Records all queued mail as delivered. Returns what reports about it need. */
async function deliverQueue(store: Store): Promise<ReportOrder['emails']> {
  const emails: (readonly [string, string])[] = []
  for (;;) {
    const { claims } = await store.claimDue({ max: 1000, perApp: 1000, leases: [] })
    if (claims.length === 0) return emails
    await deliverAll(store, claims)
    for (const { content, emailId } of claims)
      emails.push([toBounceAddress(bounceAddress, store.makeReference(emailId)), content.to])
  }
}
