/** Answers of DNS, and what a check says about them. */

export type RecordType = 'TXT' | 'MX' | 'A' | 'AAAA' | 'CNAME'

/**
 * `found`: the records, a TXT with its strings joined, an MX as `10 mail.example.com`. `absent`: there are
 * none. `unknown`: nobody answered, or not within the bounds.
 */
export type Answer =
  | { readonly kind: 'found'; readonly records: readonly string[] }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown'; readonly reason: string }

/** Never rejects. */
export type Lookup = (name: string, type: RecordType) => Promise<Answer>

/** The addresses of a name, of both families. */
export async function findAddresses(name: string, lookup: Lookup): Promise<Answer> {
  const answers = await Promise.all([lookup(name, 'A'), lookup(name, 'AAAA')])
  const records = answers.flatMap((answer) => (answer.kind === 'found' ? answer.records : []))
  if (records.length > 0) return { kind: 'found', records }
  return answers.find(({ kind }) => kind === 'unknown') ?? { kind: 'absent' }
}

export const results = ['ok', 'warn', 'fail', 'unknown'] as const
export type Result = (typeof results)[number]

export type Verdict = { readonly result: Result; readonly message: string }

const verdict =
  (result: Result) =>
  (message: string): Verdict => ({ result, message })

export const ok = verdict('ok')
export const warn = verdict('warn')
export const fail = verdict('fail')

export const unknown = (reason: string): Verdict => ({
  result: 'unknown',
  message: `DNS did not answer (${reason}): check again.`,
})

/** Appended to advice: some DNS providers store quotes and backslashes as part of the text. */
export function withoutMarks(record: string): string {
  if (/["'\u2018-\u201f\\]/.test(record)) return ', without quotes and backslashes'
  return /^\s|[^\x20-\x7e]/.test(record) ? ', without a space in front or invisible characters' : ''
}
