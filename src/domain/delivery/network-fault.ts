/** Faults of a connection, by the code of the operating system or of Node. */
import { lacks } from '../machine-faults.ts'

type Words = readonly (readonly [says: RegExp, words: string])[]

const faults: Words = [
  [/ECONNREFUSED/, 'the connection was refused'],
  [/ECONNRESET|EPIPE/, 'the connection was lost'],
  [/ETIMEDOUT/, 'no answer came in time'],
  [/EHOSTUNREACH|ENETUNREACH/, 'its host cannot be reached'],
  [/EAI_AGAIN/, 'the name server did not answer'],
]

const advice: Words = [
  ...Object.entries(lacks).map(([code, text]) => [new RegExp(`\\b${code}\\b`), text] as const),
  [/ENOTFOUND/, 'there is no such host: check its name in the URL'],
]

/** The first words that match a reason of at most 300 characters; null if none do. */
export const findWords = (words: Words, reason: string): string | null =>
  words.find(([says]) => says.test(reason))?.[1] ?? null

/** A fault of the network in words; null for other reasons. */
export const nameNetworkFault = (reason: string): string | null => findWords(faults, reason)

/** Advice for an operator; null if nothing is known. */
export const adviseOnNetwork = (reason: string): string | null => findWords(advice, reason)

/** The fault in words and then the reason, or the reason and then the advice. */
export function explainReason(reason: string, adviseOn = adviseOnNetwork): string {
  const fault = nameNetworkFault(reason)
  if (fault !== null) return `${fault} (${reason})`
  const advised = adviseOn(reason)
  return advised === null ? reason : `${reason} (${advised})`
}
