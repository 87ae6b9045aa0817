/**
 * ISO 8601 timestamps: a calendar date and a time of day with an offset, in the extended form
 * (`2026-11-20T17:05:00.5+01:00`) or the basic one (`20261120T1705Z`), never mixed. Seconds are
 * optional, and the fraction may have any length. `Date` cannot be the parser: it refuses `+01` and
 * turns 30 February into 2 March.
 */
import { type Parsed, parsed, refuser } from '../parsed.ts'

const offset = String.raw`(?<zone>Z|[+-]\d{2}(?::?\d{2})?)`
const extended = new RegExp(
  String.raw`^(?<y>\d{4})-(?<mo>\d{2})-(?<d>\d{2})T(?<h>\d{2}):(?<mi>\d{2})(?::(?<s>\d{2})(?:[.,](?<f>\d+))?)?${offset}?$`,
)
const basic = new RegExp(
  String.raw`^(?<y>\d{4})(?<mo>\d{2})(?<d>\d{2})T(?<h>\d{2})(?<mi>\d{2})(?:(?<s>\d{2})(?:[.,](?<f>\d+))?)?${offset}?$`,
)
const dateOnly = /^\d{4}-?\d{2}-?\d{2}$/

/** Reads a timestamp into milliseconds since 1970 UTC; a finer fraction is rounded down. */
export function parseTimestamp(input: string, field: string): Parsed<number> {
  const refuse = refuser(field)
  if (dateOnly.test(input)) {
    return refuse(
      'date_without_time',
      'A date without a time is ambiguous: add the time and the zone, as in 2026-11-20T17:05:00Z.',
    )
  }
  const parts = (extended.exec(input) ?? basic.exec(input))?.groups
  if (parts === undefined) {
    return refuse('not_a_timestamp', 'Give an ISO 8601 date and time with its zone, as in 2026-11-20T17:05:00Z.')
  }
  if (parts.zone === undefined) {
    return refuse('time_without_zone', 'A time without a zone is ambiguous: end it with Z or an offset such as +01:00.')
  }
  const ms = toEpochMs(parts)
  return ms === null
    ? refuse('no_such_moment', 'There is no such date or time of day; check month, day, hour, minute and offset.')
    : parsed(ms)
}

function toEpochMs(parts: Record<string, string | undefined>): number | null {
  const number = (name: string) => Number(parts[name] ?? 0)
  const [year, month, day] = [number('y'), number('mo'), number('d')]
  const [hour, minute, second] = [number('h'), number('mi'), number('s')]
  const zone = parts.zone ?? 'Z'
  const offsetHours = zone === 'Z' ? 0 : Number(zone.slice(1, 3))
  const offsetMinutes = zone === 'Z' ? 0 : Number(zone.slice(3).replace(':', '') || 0)
  if (hour > 23 || minute > 59 || second > 59 || offsetHours > 23 || offsetMinutes > 59) return null
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day) // Date.UTC reads years 0 to 99 as 19xx
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null // it was 30 February, or month 13
  const millisecond = Number((parts.f ?? '').slice(0, 3).padEnd(3, '0'))
  const offsetMs = (offsetHours * 60 + offsetMinutes) * 60_000 * (zone[0] === '-' ? -1 : 1)
  return date.getTime() + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond - offsetMs
}
