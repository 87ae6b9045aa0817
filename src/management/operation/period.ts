/** The period that a list is asked for. */
import type { Issue } from '../../domain/parsed.ts'
import { parseTimestamp } from '../../domain/request/timestamp.ts'
import { done, invalid, type Result } from './result.ts'
import { timestamp } from './schema.ts'

/** @param what what was done at those times: `emails accepted` */
export const periodQuery = (what: string) => ({
  since: timestamp(`Only ${what} at this time or later.`),
  until: timestamp(`Only ${what} before this time.`),
})

/** Milliseconds since 1970. */
type Period = { readonly since?: number; readonly until?: number }

export function readPeriod(query: { readonly since?: string; readonly until?: string }): Result<Period> {
  const period: { since?: number; until?: number } = {}
  const issues: Issue[] = []
  for (const name of ['since', 'until'] as const) {
    const text = query[name]
    const time = text === undefined ? null : parseTimestamp(text, name)
    if (time?.ok) period[name] = time.value
    else issues.push(...(time?.issues ?? []))
  }
  return issues.length > 0 ? invalid(issues) : done(period)
}
