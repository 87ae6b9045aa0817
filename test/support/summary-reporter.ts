/** A `node --test` reporter that counts: one JSON document, for `test/run.ts`. */
import type { TestEvent } from 'node:test/reporters'
import { isWholeFile } from './file-group.ts'

/** `skipped`: how many tests were skipped for each reason. */
export type Summary = {
  readonly passed: number
  readonly failed: number
  readonly skipped: Readonly<Record<string, number>>
}

export default async function* summaryReporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let [passed, failed] = [0, 0]
  const skipped: Record<string, number> = {}
  for await (const event of events) {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    const { skip } = event.data
    if (event.type === 'test:pass' && isWholeFile(event.data)) continue
    if (event.type === 'test:fail') failed += 1
    else if (skip === undefined) passed += 1
    else {
      const why = typeof skip === 'string' ? skip : 'skipped'
      skipped[why] = (skipped[why] ?? 0) + 1
    }
  }
  yield JSON.stringify({ passed, failed, skipped } satisfies Summary)
}
