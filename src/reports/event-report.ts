/**
 * One event of a mail service, as the report that a mail server would have sent. So it is matched, judged and
 * recorded as those are.
 */
import { toText } from '../services/json-fields.ts'
import type { ServiceEvent } from '../services/service-event.ts'
import type { Report } from './read-report.ts'
import { type Action, findEnhanced, judgeReply, type Row, readAddress, withoutType } from './report-rows.ts'

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
