/** An email as tests of apps read it: from the inbox of dev mode, and from the emails of test keys. */
import { type Static, Type } from 'typebox'
import { type Parsed, parsed, refuser } from '../../domain/parsed.ts'
import { emailTypes } from '../../domain/request/email-kinds.ts'
import { parseTimestamp } from '../../domain/request/timestamp.ts'
import type { InboxQuery } from '../../store/inbox-store.ts'
import { closed, orNull, time } from '../operation/schema.ts'
import { present } from '../resources.ts'

const summaryFields = {
  id: Type.String(),
  seq: Type.Integer({ description: 'Larger for a later email.' }),
  app: Type.String({ description: 'The name of the app.' }),
  slug: Type.String(),
  type: Type.Enum([...emailTypes]),
  to: Type.String(),
  subject: Type.String(),
  receivedAt: time(),
}
const InboxSummary = closed(summaryFields)

export const InboxEmailResource = closed({
  ...summaryFields,
  from: Type.String(),
  url: Type.String({ description: 'The link, as the email has it.' }),
  code: orNull(Type.String()),
  expiresAt: time(),
  language: Type.String(),
  html: Type.String(),
  text: Type.String(),
})
type InboxEmailResource = Static<typeof InboxEmailResource>

/** Times in milliseconds since 1970. */
export type InboxEmail = Readonly<Omit<InboxEmailResource, 'expiresAt' | 'from' | 'receivedAt'>> & {
  readonly expiresAt: number
  readonly from: { readonly name: string; readonly address: string }
  readonly receivedAt: number
}

export const formatSender = ({ from }: Pick<InboxEmail, 'from'>): string => `${from.name} <${from.address}>`

export const presentSummary = (email: InboxEmail) => present(InboxSummary, email)

export const presentInboxEmail = (email: InboxEmail): InboxEmailResource =>
  present(InboxEmailResource, { ...email, from: formatSender(email) })

/** Reads the `seq` of an email, or a time. */
export function readAfter(text: string): Parsed<Pick<InboxQuery, 'after' | 'since'>> {
  if (/^\d{1,15}$/.test(text)) return parsed({ after: Number(text) })
  const time = parseTimestamp(text, 'after')
  return time.ok
    ? parsed({ since: time.value })
    : refuser('after')('malformed_place', 'Give the seq of an email, or a time such as 2026-01-01T00:00:00Z.')
}
