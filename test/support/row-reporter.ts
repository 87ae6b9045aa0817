/**
 * A `node --test` reporter that collects the data for docs/reliability.md: a line of JSON for each
 * test named after a row of the fault matrix, with its counts (`reportCounts`).
 */
import type { TestContext } from 'node:test'
import type { TestEvent } from 'node:test/reporters'

export type Counts = { readonly tried: number; readonly lost: number; readonly duplicated: number }

export type RowResult = {
  readonly rows: readonly number[]
  readonly store: 'SQLite' | 'PostgreSQL'
  readonly name: string
  readonly verdict: 'held' | 'broken' | 'skipped'
  readonly counts?: Counts
}

/** Prints a test's counts, for people who read the output and for the reporter. */
export function reportCounts(t: TestContext, { tried, lost, duplicated }: Counts): void {
  t.diagnostic(`tried ${tried}, lost ${lost}, duplicated ${duplicated}`)
}

/** Parses `row 4: …` or `rows 5 and 6: …`, also after the engine's name. */
const rowsOf = (name: string): number[] =>
  (/\brows? (\d+(?:(?:, | and )\d+)*):/.exec(name)?.[1] ?? '').match(/\d+/g)?.map(Number) ?? []

function storeOf(name: string, file: string): RowResult['store'] {
  if (/postgres/i.test(name)) return 'PostgreSQL'
  if (/sqlite/i.test(name)) return 'SQLite'
  const other = /postgres/.test(file) || process.env.POSTERN_TEST_ENGINE === 'postgres'
  return other ? 'PostgreSQL' : 'SQLite'
}

export default async function* rowReporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let last = null as RowResult | null
  for await (const event of events) {
    if (event.type === 'test:diagnostic' && last !== null) {
      const [, tried, lost, duplicated] = /^tried (\d+), lost (\d+), duplicated (\d+)$/.exec(event.data.message) ?? []
      if (tried === undefined) continue
      last = { ...last, counts: { tried: Number(tried), lost: Number(lost), duplicated: Number(duplicated) } }
      continue
    }
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    if (last !== null) yield `${JSON.stringify(last)}\n`
    const { name, file = '', skip } = event.data
    const rows = rowsOf(name)
    const verdict = event.type === 'test:fail' ? 'broken' : skip === undefined ? 'held' : 'skipped'
    last = rows.length === 0 ? null : { rows, store: storeOf(name, file), name, verdict }
  }
  if (last !== null) yield `${JSON.stringify(last)}\n`
}
