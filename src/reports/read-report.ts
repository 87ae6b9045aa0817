/**
 * Reads mail that came to a bounce address: a report about an email (RFC 3464, or prose), a complaint about
 * one (RFC 5965), or something else. Anybody can write such mail: a report counts only if its reference is
 * genuine, which the store knows.
 */
import { reportMax } from '../domain/bounds.ts'
import { findReferences, type Reference } from '../domain/delivery/reference.ts'
import type { ReportKind } from '../domain/delivery/report.ts'
import { listAddresses } from '../domain/redaction/redact.ts'
import { type DecodedMail, decodeMail } from './decode-mail.ts'
import { type Fields, readBlocks } from './report-lines.ts'
import { findQuotedReply, readProse } from './report-prose.ts'
import { type Action, judgeReply, type Row, readRow } from './report-rows.ts'

type FoundKind = ReportKind | 'other'

export type Report = {
  readonly references: readonly Reference[]
  readonly kind: FoundKind
  /** `text`: prose, from which people were meant to read what happened. */
  readonly form: 'fields' | 'text'
  /** A report in prose has one row, without addresses. */
  readonly rows: readonly Row[]
}

const rowsMax = 50

/** A mail to a bounce address, decoded at most once. */
export type OpenedMail = {
  /** Nearly always they stand in the mail as it is, so it is decoded for them only if it has an encoding. */
  readonly references: readonly Reference[]
  readonly read: () => Promise<Report>
}

/** @param envelopeRecipient the address that the report was sent to, if the caller knows it */
export async function openMail(bytes: Buffer, envelopeRecipient: string | null): Promise<OpenedMail> {
  const raw = bytes.subarray(0, reportMax).toString()
  // Quoted-printable breaks lines so, and not every mail says that it is.
  const unbroken = raw.replaceAll('=\r\n', '').replaceAll('=\n', '')
  const lower = unbroken.toLowerCase()
  const isEncoded = lower.includes('base64') || lower.includes('quoted-printable')
  const decoded = isEncoded ? await decodeMail(bytes) : undefined
  const references = findReferences([envelopeRecipient, unbroken, decoded?.whole].join('\n'))
  const read = async () => {
    const asItCame = readText({ prose: raw, whole: raw })
    // Most reports: the library would take ten times as long (0.3 ms) to find the same.
    if (!isEncoded && isComplete(asItCame)) return { references, ...asItCame }
    return { references, ...chooseReading(asItCame, decoded === undefined ? await decodeMail(bytes) : decoded) }
  }
  return { references, read }
}

export const readReport = async (bytes: Buffer, envelopeRecipient: string | null): Promise<Report> =>
  (await openMail(bytes, envelopeRecipient)).read()

/** Fields of broken parts, or far behind, are found in the mail as it came. */
function chooseReading(asItCame: Reading, decoded: DecodedMail | null): Reading {
  const found = [...(decoded === null ? [] : [readText(decoded)]), asItCame].filter(({ kind }) => kind !== 'other')
  const hasReply = ({ rows }: Reading) => rows.some(({ reply }) => reply.text !== '')
  return found.find(({ form }) => form === 'fields') ?? found.find(hasReply) ?? found[0] ?? asItCame
}

type Reading = Omit<Report, 'references'>

const isComplete = ({ kind, form, rows }: Reading): boolean =>
  kind !== 'other' && form === 'fields' && rows.every(({ reply }) => reply.text !== '')

function readText({ prose, whole }: DecodedMail): Reading {
  const blocks = readBlocks(whole)
  const addresses = findAddresses(blocks)
  const rows = readRows(blocks, addresses).map((row) => explainRow(row, prose, addresses))
  if (rows.length > 0) return { kind: kindOf(rows), form: 'fields', rows }
  const complaint = readComplaint(blocks)
  if (complaint !== null) return { kind: complaint, form: 'fields', rows }
  const hasField = (name: string) => blocks.some((block) => block.has(name))
  if (hasField('reporting-mta') && !hasField('final-recipient') && findQuotedReply(prose) === null) return aboutNobody
  const said = readProse(blocks[0], prose, addresses)
  return { kind: kindOf(said), form: 'text', rows: said }
}

/** Sendmail writes fields without a recipient about mail that it delivered in its last second (RFC 2852). */
const aboutNobody: Reading = { kind: 'other', form: 'fields', rows: [] }

/** Fields with the recipient: in the report, and in the header of the email that it returns. */
const recipientFields = ['final-recipient', 'original-recipient', 'x-failed-recipients', 'to'] as const
const addressesMax = 20

/** The header's `To` is the address of the report itself. */
function findAddresses([header, ...blocks]: readonly [Fields, ...Fields[]]): string[] {
  const fields = [
    header.get('x-failed-recipients'),
    ...blocks.flatMap((block) => recipientFields.map((name) => block.get(name))),
  ]
  const found = new Set<string>()
  for (const field of fields) {
    for (const address of listAddresses(field ?? '')) found.add(address)
    if (found.size >= addressesMax) break
  }
  return [...found].slice(0, addressesMax)
}

function readRows(blocks: readonly Fields[], addresses: readonly string[]): Row[] {
  const rows: Row[] = []
  for (const block of blocks) {
    const row = rows.length < rowsMax ? readRow(block, addresses) : null
    if (row !== null) rows.push(row)
  }
  return rows
}

/**
 * Some fields lack the reply, and it is in the text. If the status says nothing either, as the `5.0.0` that
 * OpenSMTPD writes for everything, the text names the cause. As in every prose, it proves nothing about a
 * mailbox, so the row loses its addresses.
 */
function explainRow(row: Row, text: string, addresses: readonly string[]): Row {
  if (row.reply.text !== '') return row
  const quoted = findQuotedReply(text)
  if (quoted === null) return row
  const judged = judgeReply(quoted, { status: null, addresses: [...addresses, ...listAddresses(quoted)] })
  const isVague = (row.status ?? 'x.0.0').endsWith('.0.0')
  if (!isVague) return { ...row, reply: judged.reply }
  return { ...row, ...judged, finalRecipient: null, originalRecipient: null, permanent: row.permanent }
}

const kindOf = (rows: readonly Row[]): FoundKind => {
  const has = (action: Action) => rows.some((row) => row.action === action)
  return has('failed') ? 'bounced' : has('delayed') ? 'delayed' : 'other'
}

/** The types of RFC 5965; `auth-failure` and `dmarc` are about our domain, not about an email. */
const complaintTypes: ReadonlyMap<string, FoundKind> = new Map([
  ...['abuse', 'fraud', 'virus', 'other', 'miscategorized'].map((type) => [type, 'complained'] as const),
  ['not-spam', 'not_spam'],
])

function readComplaint(blocks: readonly [Fields, ...Fields[]]): FoundKind | null {
  const type = blocks.map((block) => block.get('feedback-type')).find((value) => value !== undefined)
  if (type !== undefined) return complaintTypes.get(type.toLowerCase()) ?? 'other'
  // Outlook.com's JMRP sends the email with a field of its own, and no type.
  const isJmrp = blocks.some((block) => block.has('x-hmxmroriginalrecipient'))
  return isJmrp && blocks[0].get('from')?.includes('staff@hotmail.com') ? 'complained' : null
}
