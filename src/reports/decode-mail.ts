/**
 * A mail as text that has no encoding left: base64, quoted-printable, charsets and HTML are undone by a MIME
 * library. It gets the beginning of a mail only, because its work grows with the lines; in a report, what
 * happened stands in front of the email that it returns.
 */
import PostalMime, { type Email } from 'postal-mime'

/** Some mail systems send a whole page of HTML. */
const bytesMax = 128 * 1024
/** Time and memory grow with the lines, empty ones too. */
const linesMax = 3000
const limits = { maxNestingDepth: 20, maxHeadersSize: 32 * 1024 }

type Part = Email['attachments'][number]

/** `prose`: the header, and the text for people. `whole`: that, and then the other parts in their order. */
export type DecodedMail = { readonly prose: string; readonly whole: string }

/** Null if the library refuses the mail. */
export async function decodeMail(bytes: Buffer): Promise<DecodedMail | null> {
  try {
    // The returned email is a part like others: its text is not that of the report.
    const mail = await PostalMime.parse(beginning(bytes), { ...limits, forceRfc822Attachments: true })
    const text = mail.text ?? withoutTags(mail.html ?? '')
    // A text of a broken type is a part like others, too.
    const isText = ({ mimeType }: Part) => mimeType.startsWith('text/') && !mimeType.startsWith('text/rfc822')
    const prose = [listFields(mail), '', text, ...mail.attachments.filter(isText).flatMap(readPart)].join('\n')
    return { prose, whole: [prose, ...mail.attachments.filter((part) => !isText(part)).flatMap(readPart)].join('\n') }
  } catch {
    return null
  }
}

function beginning(bytes: Buffer): Buffer {
  const cut = bytes.subarray(0, bytesMax)
  for (let at = cut.indexOf('\n'), lines = 1; at >= 0; at = cut.indexOf('\n', at + 1), lines++)
    if (lines === linesMax) return cut.subarray(0, at)
  return cut
}

const listFields = ({ headers, subject = '' }: Email): string =>
  headers.map(({ key, value }) => `${key}: ${oneLine(key === 'subject' ? subject : value)}`).join('\n')

const oneLine = (value: string): string => value.replace(/[\r\n]+/g, ' ')

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: ' ', '#39': "'" }

/** The words of a mail that is HTML alone, a line for each element. Its styles stand in front. */
const withoutTags = (html: string): string =>
  (html.split('</style>').at(-1) ?? '')
    .replace(/<[^<>]*>/g, '\n')
    .replace(/&(amp|lt|gt|quot|nbsp|#39);/g, (_, name: string) => entities[name] ?? '')

/** An empty line separates the fields of one part from those of the next. */
const readPart = ({ content, mimeType }: Part): string[] =>
  /^(?:text|message)\//.test(mimeType) && typeof content !== 'string'
    ? ['', Buffer.from(content as ArrayBuffer).toString()]
    : []
