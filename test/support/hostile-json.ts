/** JSON bodies that are spoilt at random: whole values, or places of their text. */
import type { Random } from './generator.ts'

const usual = [
  ...['null', 'true', '-0', '1e999', '9007199254740993', '[]', '{}', '[[[[[[[[[[]]]]]]]]]]'],
  ...['""', '" "', '"\\ud800"', '"\\u0000"', '"Ã"', `"${'x'.repeat(9000)}"`, '"a@b@c"', '"@"'],
  ...['{"__proto__":{"kind":"notice"}}', '{"__proto__":{"kind":"bounced"}}', '{"constructor":1}'],
]
const marks = ['{', '}', '[', ']', '"', ',', ':', '\\', '\\u', '\n', '\u0000', '\ufeff', '\u202e', '😀']

/** Replaces up to three parts of the text of a JSON body, by one of `more` as well. */
export function spoilJson(text: string, random: Random, more: readonly string[]): string {
  const one = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  const values = [...usual, ...more]
  let spoilt = text
  for (let change = Math.floor(random() * 3); change >= 0; change--) {
    const found = [...spoilt.matchAll(/(?<=[:[,])(?:"(?:[^"\\]|\\.)*"|\d+|null)(?=[,}\]])/g)]
    const place = random() < 0.8 && found.length > 0 ? one(found) : null
    const [start, length] =
      place === null ? [Math.floor(random() * spoilt.length), random() < 0.5 ? 0 : 3] : [place.index, place[0].length]
    const put = one(place === null ? [...marks, ...values] : values)
    spoilt = spoilt.slice(0, start) + put + spoilt.slice(start + length)
  }
  return spoilt
}

/** Sends all, fifty at a time. Returns how often each status was answered. */
export async function countStatuses(
  bodies: readonly string[],
  send: (body: string) => Promise<number>,
): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {}
  for (let from = 0; from < bodies.length; from += 50)
    for (const status of await Promise.all(bodies.slice(from, from + 50).map(send)))
      counts[status] = (counts[status] ?? 0) + 1
  return counts
}
