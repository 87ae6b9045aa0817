/** The corpora of test/corpus: text files that anyone can extend, one sample a line. */
import { readFileSync } from 'node:fs'

/** Rows of up to two fields, split at the first tab; a field that is a JSON string is decoded. */
export function readCorpus(name: string): [string, string | undefined][] {
  const text = readFileSync(new URL(`../corpus/${name}.txt`, import.meta.url), 'utf8')
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    const [first = '', second] = line.split('\t')
    return [decode(first), second === undefined ? undefined : decode(second)]
  })
}

const decode = (field: string): string => (/^".*"$/.test(field) ? (JSON.parse(field) as string) : field)
