/** Dates on the command line. */
import { parseTimestamp } from '../domain/request/timestamp.ts'
import { UsageError } from './output.ts'

/** A date (midnight UTC) or a timestamp, as ISO 8601. */
export function parseTime(text: string, option: string): string {
  const isDate = /^\d{4}-\d{2}-\d{2}$/.test(text)
  const parsed = parseTimestamp(isDate ? `${text}T00:00:00Z` : text, option)
  if (parsed.ok) return new Date(parsed.value).toISOString()
  throw new UsageError(
    `${option}: give a date such as 2027-01-31, or a time with its zone such as 2027-01-31T12:00:00Z`,
  )
}
