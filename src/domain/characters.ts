/** Texts by what people see as one character: an emoji may have several code points. */

const characters = new Intl.Segmenter()

export const splitCharacters = (text: string): string[] =>
  Array.from(characters.segment(text), ({ segment }) => segment)
