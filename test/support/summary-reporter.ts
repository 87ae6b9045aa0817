/** A `node --test` reporter that counts: one JSON document, for `test/run.ts`. */
import type { TestEvent } from 'node:test/reporters'
import { isWholeFile } from './file-group.ts'

/** `skipped`: how many tests were skipped for each reason. */
export type Summary = {
  readonly passed: number
  readonly failed: number
  readonly skipped: Readonly<Record<string, number>>
}

/** A file fails when a test of it fails, which is counted by itself. */
const isOfItsTests = ({ error }: { readonly error: unknown }): boolean =>
  (error as { failureType?: string }).failureType === 'subtestsFailed'

export default async function* summaryReporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let [passed, failed] = [0, 0]
  const skipped: Record<string, number> = {}
  for await (const event of events) {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    const { skip } = event.data
    if (isWholeFile(event.data) && (event.type === 'test:pass' || isOfItsTests(event.data.details))) continue
    if (event.type === 'test:fail') failed += 1
    else if (skip === undefined) passed += 1
    else {
      const why = typeof skip === 'string' ? skip : 'skipped'
      skipped[why] = (skipped[why] ?? 0) + 1
    }
  }
  yield JSON.stringify({ passed, failed, skipped } satisfies Summary)
}
