/**
 * The lines of a mail report, whatever its MIME structure: fields with a name, in blocks that empty lines
 * separate. RFC 3464 demands 7bit for its fields, so they are read without decoding. Lines and fields are cut
 * before a pattern sees them.
 */

/**
 * Lines that are read: 512 KiB may be half a million of them. The fields stand in front of
 * the returned email, and a report of 512 KiB in lines of base64 has 7,000.
 */
const linesMax = 20_000

/** Characters of a line, and of a field with the lines that continue it. */
const lineMax = 1000

/** Blocks with fields that are read; real reports have some ten. */
const blocksMax = 1000

/** The first value of each field in a block, by name in small letters. */
export type Fields = ReadonlyMap<string, string>

/** The fields that say something about a delivery, or name its recipient; all others are left out. */
const names: ReadonlySet<string> = new Set(
  `return-path from subject auto-submitted x-failed-recipients final-recipient original-recipient to action status
diagnostic-code x-supplementary-info feedback-type x-hmxmroriginalrecipient x-autoreply x-autorespond
precedence reporting-mta`.split(/\s/),
)
const nameMax = Math.max(...Array.from(names, (name) => name.length))

/** The fields of the header, and those of each later block that has some. */
export function readBlocks(text: string): readonly [Fields, ...Fields[]] {
  const header = new Map<string, string>()
  const blocks: Fields[] = []
  let block: Map<string, string> = header
  let field: string | null = null
  for (const line of readLines(text)) {
    if (line === '') {
      if (block.size > 0 || block === header) block = new Map()
      field = null
    } else if (line.startsWith(' ') || line.startsWith('\t')) {
      if (field !== null) block.set(field, continueField(block.get(field) ?? '', line))
    } else {
      const name = readName(line)
      field = name === null || block.has(name) ? null : name
      if (field === null) continue
      if (block.size === 0 && block !== header && blocks.push(block) > blocksMax) break
      block.set(field, line.slice(line.indexOf(':') + 1).trim())
    }
  }
  return [header, ...blocks]
}

/** Without spaces and the carriage return at the end. */
export function* readLines(text: string): Generator<string> {
  for (let from = 0, end = 0, lines = 0; from < text.length && lines < linesMax; from = end + 1, lines++) {
    end = text.indexOf('\n', from)
    if (end < 0) end = text.length
    yield text.slice(from, Math.min(end, from + lineMax)).trimEnd()
  }
}

/** Some write a space in front of the colon. */
function readName(line: string): string | null {
  const colon = line.indexOf(':')
  if (colon < 0 || colon > nameMax + 1) return null
  const name = line.slice(0, colon).trimEnd().toLowerCase()
  return names.has(name) ? name : null
}

const continueField = (value: string, line: string): string =>
  value.length < lineMax ? `${value} ${line.trim()}`.trim().slice(0, lineMax) : value
