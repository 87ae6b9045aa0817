/**
 * HTML that is safe by construction: the `html` tag escapes every value that is not `Html` already.
 * The escapes are right for text and for double-quoted attributes.
 */

declare const brand: unique symbol
export type Html = { readonly [brand]: 'Html'; readonly text: string }

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (character) => entities[character] ?? '')

type Piece = string | number | Html | readonly Html[]

const toText = (piece: Piece): string => {
  if (typeof piece === 'string') return escapeHtml(piece)
  if (typeof piece === 'number') return String(piece)
  return 'text' in piece ? piece.text : piece.map((part) => part.text).join('')
}

export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  const text = strings.reduce((all, part, index) => {
    const piece = pieces[index]
    return all + part + (piece === undefined ? '' : toText(piece))
  }, '')
  return { text } as Html
}

/** Nothing. */
export const none = html``

/** Trusted markup, inserted without escaping. */
export const raw = (text: string): Html => ({ text }) as Html
