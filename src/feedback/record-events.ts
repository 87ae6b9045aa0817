/** The events of one webhook call: finds the emails that they name, and records what they say. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FeedbackProvider } from '../domain/delivery/feedback.ts'
import { findReferences } from '../domain/delivery/reference.ts'
import { toFields } from '../domain/feedback/json-fields.ts'
import { eventReaders } from './providers/providers.ts'
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
  source: FeedbackProvider,
  body: unknown,
): Promise<EventResults> {
  const results: Partial<Record<keyof EventResults, number>> = {}
  const events: readonly unknown[] = Array.isArray(body) ? body : [body]
  const count = (result: keyof EventResults) => {
    results[result] = (results[result] ?? 0) + 1
  }
  let reports = 0
  for (const event of events) {
    const report = eventReaders[source](toFields(event))
    if (report === null) {
      count('ignored')
      continue
    }
    if (++reports % reportsAtOnce === 0) await nextTurn()
    const references = findReferences(JSON.stringify(event))
    const match = await matchReport(deps.store, { ...report, form: 'fields', references })
    count((await recordReport(deps, match, source)).kind)
  }
  return results
}
