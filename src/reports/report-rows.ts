/** The fields of RFC 3464 about one recipient, and the reply that a report quotes. */
import { causeOf, causeOfWords, type FailureCause, type Said } from '../domain/delivery/failure-cause.ts'
import type { Reply } from '../domain/delivery/reply.ts'
import { redact } from '../domain/redaction/redact.ts'
import { type EmailAddress, parseEmailAddress } from '../domain/request/email-address.ts'
import type { Fields } from './report-lines.ts'

/** `other`: relayed, delivered or expanded. */
export type Action = 'failed' | 'delayed' | 'other'

export type Row = {
  /** The address that the server gave up; behind a forward it is not the email's recipient. */
  readonly finalRecipient: EmailAddress | null
  /** The address to which the email was sent, as the server knows it. */
  readonly originalRecipient: EmailAddress | null
  readonly action: Action
  /** The Status field, such as `5.1.1`. */
  readonly status: string | null
  readonly reply: Reply
  readonly cause: FailureCause
  readonly permanent: boolean
}

/**
 * A row, if the block names a recipient, and says what happened.
 * @param addresses those that the whole report names
 */
export function readRow(fields: Fields, addresses: readonly string[]): Row | null {
  const [final, original] = [fields.get('final-recipient'), fields.get('original-recipient')]
  if (final === undefined && original === undefined) return null
  const status = findEnhanced(fields.get('status') ?? '')
  const action = readAction(fields.get('action'), status)
  if (action === null) return null
  // IronPort has a field of its own.
  const diagnostic = withoutType(fields.get('diagnostic-code') ?? fields.get('x-supplementary-info') ?? '')
  return {
    finalRecipient: readAddress(final),
    originalRecipient: readAddress(original),
    action,
    status,
    ...judgeReply(diagnostic, { status, addresses }),
  }
}

/** A diagnosis without `smtp;` in front of it. */
export const withoutType = (diagnostic: string): string => diagnostic.replace(/^[\w-]{1,40} ?;/, '').trim()

type Judging = {
  readonly status: string | null
  /** Their local parts are hidden. */
  readonly addresses: readonly string[]
}

/** The words of a server, judged before they are redacted: some in a link may tell the cause. */
export function judgeReply(text: string, { status, addresses }: Judging): Pick<Row, 'reply' | 'cause' | 'permanent'> {
  const said = readSaid(text)
  const classes = [said.code, said.enhanced, status].map((code) => String(code ?? '').charAt(0))
  return {
    reply: { ...said, text: redact(text, { kind: 'report', addresses }) },
    cause: classes.join('') === '' ? causeOfWords(text) : causeOf(said, status),
    permanent: classes.includes('5') && !classes.includes('4'),
  }
}

const replyCode = /(?<![\w.#=/+-])[45][0-57]\d(?![\w.])/
const enhancedCode = /(?<![\w./])[45]\.\d{1,3}\.\d{1,3}(?!\.?\d)/

/**
 * A text with the codes of the reply that it quotes: `host mx.acme.test said: 550 5.1.1 …`, or
 * `5.1.0 - Unknown address error 550-'5.2.2 …'`, where the code after 550 is the receiver's.
 */
export function readSaid(text: string): Said {
  const code = replyCode.exec(text)
  const quoted = code === null ? '' : text.slice(code.index)
  return {
    code: code === null ? null : Number(code[0]),
    enhanced: findEnhanced(quoted) ?? findEnhanced(text),
    text,
  }
}

export const findEnhanced = (text: string): string | null => enhancedCode.exec(text)?.[0] ?? null

/** Some services write `expired` when they have given up. */
const actions: ReadonlyMap<string, Action> = new Map([
  ['failed', 'failed'],
  ['expired', 'failed'],
  ['delayed', 'delayed'],
  ['relayed', 'other'],
  ['delivered', 'other'],
  ['expanded', 'other'],
])

function readAction(action: string | undefined, status: string | null): Action | null {
  const named = actions.get(/^\w{0,20}/.exec(action ?? '')?.[0].toLowerCase() ?? '')
  if (named !== undefined || status === null) return named ?? null
  return status.startsWith('5') ? 'failed' : 'delayed'
}

/** The address in `rfc822; <ada@example.com>`, with the type in any spelling. */
export function readAddress(value = ''): EmailAddress | null {
  const bare = value
    .slice(value.indexOf(';') + 1)
    .trim()
    .replace(/^<|>$/g, '')
  // Some servers quote the whole address, and some leave the quotes out of `"a..b"@example.com`.
  const spellings = [bare, bare.replace(/^"|"$/g, ''), bare.replace(/^([^"@]+)@/, '"$1"@')]
  const address = spellings.map((spelling) => parseEmailAddress(spelling, 'recipient')).find(({ ok }) => ok)
  return address?.ok ? address.value : null
}
