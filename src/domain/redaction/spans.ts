/** Parts of a line that records must not hold, and the line without them. */

/** The first that covers a place names it. */
const marks = ['<secret>', '<link>', '<address>', '<token>', '<name>', '<code>', '<number>'] as const
export type Mark = (typeof marks)[number]

export type Span = { readonly from: number; readonly to: number; readonly mark: Mark }

export const findMatches = (text: string, shape: RegExp, mark: Mark): Span[] =>
  Array.from(text.matchAll(shape), ({ 0: found, index }) => ({ from: index, to: index + found.length, mark }))

/**
 * The spans that overlap become one, with the mark that comes first in the list. A mark replaces the angle
 * brackets around a span as well.
 */
export function hideSpans(line: string, spans: readonly Span[]): string {
  let [result, shown] = ['', 0]
  for (const { from, to, mark } of joinSpans(spans)) {
    const isBracketed = from > shown && line[from - 1] === '<' && line[to] === '>'
    result += line.slice(shown, isBracketed ? from - 1 : from) + mark
    shown = isBracketed ? to + 1 : to
  }
  return result + line.slice(shown)
}

function joinSpans(spans: readonly Span[]): Span[] {
  const joined: Span[] = []
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const last = joined.at(-1)
    if (last === undefined || span.from >= last.to) joined.push(span)
    else joined[joined.length - 1] = { ...last, to: Math.max(last.to, span.to), mark: first(last, span) }
  }
  return joined
}

const first = (a: Span, b: Span): Mark => (marks.indexOf(a.mark) <= marks.indexOf(b.mark) ? a.mark : b.mark)
