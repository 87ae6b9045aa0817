/** Dates and lengths of time on the command line. */
import { dayMs } from '../domain/duration.ts'
import { parseTimestamp } from '../domain/request/timestamp.ts'
import { UsageError } from './output.ts'

/** A date (midnight UTC) or a timestamp, as ISO 8601. */
export function parseTime(text: string, option: string, forms = 'a date such as 2027-01-31'): string {
  const isDate = /^\d{4}-\d{2}-\d{2}$/.test(text)
  const parsed = parseTimestamp(isDate ? `${text}T00:00:00Z` : text, option)
  if (parsed.ok) return new Date(parsed.value).toISOString()
  throw new UsageError(`${option}: give ${forms}, or a time with its zone such as 2027-01-31T12:00:00Z`)
}

/** The same, or how long ago: `10m`, `2h`, `3d`. */
export function parsePastTime(text: string, option: string): string {
  const ms = parseLength(text)
  if (ms !== null) return new Date(Date.now() - ms).toISOString()
  return parseTime(text, option, 'how long ago (10m, 2h, 3d), a date such as 2027-01-31')
}

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: dayMs }

/** `30m`, `24h` or `7d` in milliseconds; null for anything else. */
export function parseLength(text: string): number | null {
  const [, count, unit = ''] = /^(\d{1,4})([mhd])$/.exec(text) ?? []
  return count === undefined ? null : Number(count) * (units[unit] ?? 0)
}
