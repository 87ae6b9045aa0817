/**
 * A message as lines, encoded for the wire once. Lines may have gaps, which are filled for each email and
 * encoded then, so that most of a message is composed once for all emails of an app, type and language.
 * Every line is encoded by itself: a filled form equals the same text composed without gaps.
 */
import * as mime from 'nodemailer/lib/mime-funcs'
import * as quotedPrintable from 'nodemailer/lib/qp'
import { escapeHtml } from '../../templates/html.ts'

/**
 * Placeholders for the texts that differ between emails: control characters, which no setting and no request
 * may contain.
 */
export const gaps = {
  reference: '\x01',
  to: '\x02',
  date: '\x03',
  messageIdDomain: '\x04',
  url: '\x05',
  host: '\x06',
  duration: '\x07',
  dateTime: '\x08',
  code: '\x0e',
  codeHead: '\x0f',
  codeTail: '\x10',
  expires: '\x11',
} as const
type Gap = keyof typeof gaps
/** The text for each gap. */
export type GapTexts = Readonly<Record<Gap, string>>

const gapMarks = /[\x01-\x08\x0e-\x11]/g
const gapNames = new Map(Object.entries(gaps).map(([name, mark]) => [mark as string, name as Gap]))

/** How a line goes over the wire. A `7bit` line must be short and ASCII; the others take any text. */
type LineEncoding = 'header' | '7bit' | 'quoted-printable'

export type Line = {
  readonly text: string
  readonly encoding: LineEncoding
  /** The texts of its gaps are escaped for HTML. */
  readonly html?: boolean
}

/** The text between the gaps of a line, and the gaps between these texts. */
type LineWithGaps = Omit<Line, 'text'> & { readonly texts: readonly string[]; readonly gaps: readonly Gap[] }

const lineMax = 76
const plainLineMax = 900 // RFC 5322 allows 998

/** Whether a line may stand in a 7bit part. */
export const isPlain = (line: string): boolean =>
  line.length <= plainLineMax && /^[\t\x01-\x08\x0e-\x11\x20-\x7e]*$/.test(line)

export class MessageForm {
  /** Encoded lines, joined, and the lines with gaps between them. */
  readonly #segments: (string | LineWithGaps)[] = []

  constructor(lines: readonly Line[]) {
    let fixed = ''
    for (const line of lines) {
      const { text, ...how } = line
      const found = (text.match(gapMarks) ?? []).flatMap((mark) => gapNames.get(mark) ?? [])
      if (found.length === 0) {
        fixed += encodeLine(line)
        continue
      }
      this.#segments.push(copy(fixed), { ...how, texts: text.split(gapMarks).map(copy), gaps: found })
      fixed = ''
    }
    this.#segments.push(copy(fixed))
  }

  /** The message. Null if a line of a 7bit part would not be plain: that part needs another encoding. */
  fill(texts: GapTexts): Buffer | null {
    const escaped = Object.fromEntries(Object.entries(texts).map(([gap, text]) => [gap, escapeHtml(text)])) as GapTexts
    let message = ''
    for (const segment of this.#segments) {
      if (typeof segment === 'string') {
        message += segment
        continue
      }
      const { encoding, html } = segment
      const line = filled(segment, html === true ? escaped : texts)
      if (encoding === '7bit' && !isPlain(line)) return null
      message += encodeLine({ text: line, encoding })
    }
    return Buffer.from(message)
  }
}

/** A text by itself: one that was joined or cut keeps the whole texts that it came from in memory. */
const copy = (text: string): string => Buffer.from(text).toString()

const filled = (line: LineWithGaps, texts: GapTexts): string =>
  line.gaps.reduce((all, gap, index) => all + texts[gap] + (line.texts[index + 1] ?? ''), line.texts[0] ?? '')

export const encodeLine = ({ text, encoding }: Pick<Line, 'text' | 'encoding'>): string =>
  `${encode(text, encoding)}\r\n`

function encode(line: string, encoding: LineEncoding): string {
  switch (encoding) {
    case '7bit':
      return line
    case 'header':
      return line.length < lineMax ? line : mime.foldLines(line, lineMax)
    case 'quoted-printable':
      return quotedPrintable.wrap(quotedPrintable.encode(line), lineMax)
    default:
      return encoding satisfies never
  }
}
