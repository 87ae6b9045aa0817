/** The events of one webhook call: finds the emails that they name, and records what they say. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { findReferences } from '../domain/delivery/reference.ts'
import { toFields, toText } from '../services/json-fields.ts'
import type { ServiceEvent } from '../services/service-event.ts'
import type { EventService } from '../services/services.ts'
import type { Report } from './read-report.ts'
import { matchReport, type ReportDeps, type ReportResult, recordReport } from './record-report.ts'
import { type Action, findEnhanced, judgeReply, type Row, readAddress, withoutType } from './report-rows.ts'

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

/** An event as the report that a mail server would have sent: matched, judged and recorded as those are. */
export function toReport(event: ServiceEvent): Pick<Report, 'kind' | 'rows'> {
  const { kind, recipient } = event
  switch (kind) {
    case 'bounced':
      return { kind, rows: [newBounce(event)] }
    case 'delayed':
      return { kind, rows: [newRow('delayed', event)] }
    default:
      return { kind, rows: [newRow('other', { recipient })] }
  }
}

function newBounce({ permanent, correct = (judged) => judged, ...said }: ServiceEvent): Row {
  const row = newRow('failed', said)
  const isTemporary = [row.reply.code, row.reply.enhanced, row.status].some((code) => `${code}`.startsWith('4'))
  return { ...row, permanent: (permanent ?? row.permanent) && !isTemporary, cause: correct(row.cause) }
}

function newRow(action: Action, { recipient, text, status }: Pick<ServiceEvent, 'recipient' | 'text' | 'status'>): Row {
  const enhanced = findEnhanced(toText(status))
  const address = withoutName(toText(recipient))
  return {
    finalRecipient: readAddress(address),
    originalRecipient: null,
    action,
    status: enhanced,
    ...judgeReply(withoutType(toText(text)), { status: enhanced, addresses: [address] }),
  }
}

/** The address in `Ada <ada@example.com>`. */
const withoutName = (recipient: string): string => /<([^<>]+)>$/.exec(recipient)?.[1] ?? recipient
