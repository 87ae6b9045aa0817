/**
 * One event of a provider, as the report that a mail server would have sent. So it is matched, judged and
 * recorded as those are.
 */
import type { FailureCause } from '../../domain/delivery/failure-cause.ts'
import { type JsonFields, toText } from '../../domain/feedback/json-fields.ts'
import type { Report } from '../read-report.ts'
import { type Action, findEnhanced, judgeReply, type Row, readAddress, withoutType } from '../report-rows.ts'

export type EventReport = Pick<Report, 'kind' | 'rows'>

/** Null for an event that says nothing of a delivery. */
export type ReadEvent = (event: JsonFields) => EventReport | null

type Said = {
  readonly recipient: unknown
  /** The reply of a mail server, or words of the provider. */
  readonly text?: unknown
  readonly status?: unknown
}

export const confirmed = (recipient: unknown): EventReport => ({
  kind: 'confirmed',
  rows: [newRow('other', { recipient })],
})

export const complained = (recipient: unknown): EventReport => ({
  kind: 'complained',
  rows: [newRow('other', { recipient })],
})

export const delayed = (said: Said): EventReport => ({ kind: 'delayed', rows: [newRow('delayed', said)] })

type Bounced = Said & {
  /** Whether the provider calls it permanent; otherwise the reply tells. */
  readonly permanent?: boolean
  /** The cause, where the provider knows more than the reply says. */
  readonly correct?: (judged: FailureCause) => FailureCause
}

export function bounced({ permanent, correct = (judged) => judged, ...said }: Bounced): EventReport {
  const row = newRow('failed', said)
  const isTemporary = [row.reply.code, row.reply.enhanced, row.status].some((code) =>
    `${code}`.startsWith('4'),
  )
  return {
    kind: 'bounced',
    rows: [{ ...row, permanent: (permanent ?? row.permanent) && !isTemporary, cause: correct(row.cause) }],
  }
}

/** For a bounce whose reply tells nothing. */
export const unlessKnown =
  (cause: FailureCause) =>
  (judged: FailureCause): FailureCause =>
    judged === 'unknown' ? cause : judged

/** For mail that was blocked: a server may say so with the code of a missing mailbox. */
export const blocked = (judged: FailureCause): FailureCause =>
  judged === 'unknown' || judged === 'no_mailbox' ? 'policy' : judged

/** The provider did not even try. */
export const suppressed = (): FailureCause => 'relay_suppressed'

function newRow(action: Action, { recipient, text, status }: Said): Row {
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
