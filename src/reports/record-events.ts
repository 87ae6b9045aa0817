/** The events of one webhook call: finds the emails that they name, and records what they say. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { findReferences } from '../domain/delivery/reference.ts'
import { toFields } from '../services/json-fields.ts'
import type { EventService } from '../services/services.ts'
import { toReport } from './event-report.ts'
import { matchReport, type ReportDeps, type ReportResult, recordReport } from './record-report.ts'

/** How many events had each result. `ignored`: they say nothing of a delivery. */
export type EventResults = Readonly<Partial<Record<ReportResult['kind'] | 'ignored', number>>>

/** After so many reports, other work of the process gets its turn. */
const reportsAtOnce = 20

/**
 * One after another, so that a call has no more than one request at the store. A call that is repeated
 * records what is missing.
 * @throws {StoreUnavailable}
 */
export async function recordEvents(
  deps: ReportDeps,
  { events: { read }, name: source }: EventService,
  body: unknown,
): Promise<EventResults> {
  const results: Partial<Record<keyof EventResults, number>> = {}
  const events: readonly unknown[] = Array.isArray(body) ? body : [body]
  const count = (result: keyof EventResults) => {
    results[result] = (results[result] ?? 0) + 1
  }
  let reports = 0
  for (const event of events) {
    const described = read(toFields(event))
    if (described === null) {
      count('ignored')
      continue
    }
    if (++reports % reportsAtOnce === 0) await nextTurn()
    const references = findReferences(JSON.stringify(event))
    const match = await matchReport(deps.store, { ...toReport(described), form: 'fields', references })
    count((await recordReport(deps, match, source)).kind)
  }
  return results
}
