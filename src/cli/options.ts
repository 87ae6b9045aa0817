/** Options that several commands have, and how their values are read: dates, lengths of time, numbers. */
import { Option } from 'commander'
import { dayMs } from '../domain/duration.ts'
import { roles } from '../domain/operator/management-token.ts'
import { emailTypes } from '../domain/request/email-kinds.ts'
import { parseTimestamp } from '../domain/request/timestamp.ts'
import { option } from './command.ts'
import type { CliDeps } from './context.ts'
import { CommandFailed, UsageError } from './output.ts'

/** A date (midnight UTC) or a timestamp, as ISO 8601. */
export function parseTime(text: string, option: string, forms = 'a date such as 2027-01-31'): string {
  const isDate = /^\d{4}-\d{2}-\d{2}$/.test(text)
  const parsed = parseTimestamp(isDate ? `${text}T00:00:00Z` : text, option)
  if (parsed.ok) return new Date(parsed.value).toISOString()
  throw new UsageError(`${option}: give ${forms}, or a time with its zone such as 2027-01-31T12:00:00Z`)
}

/** The same, or how long ago: `10m`, `2h`, `3d`. */
function parsePastTime(text: string, option: string): string {
  const ms = parseLength(text)
  if (ms !== null) return new Date(Date.now() - ms).toISOString()
  return parseTime(text, option, 'how long ago (10m, 2h, 3d), a date such as 2027-01-31')
}

/** A date, a time, or how long from now: `30d`. */
function parseFutureTime(text: string): string {
  const ms = parseLength(text)
  return ms === null ? parseTime(text, '--expires') : new Date(Date.now() + ms).toISOString()
}

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: dayMs }

/** `30m`, `24h` or `7d` in milliseconds; null for anything else. */
function parseLength(text: string): number | null {
  const [, count, unit = ''] = /^(\d{1,4})([mhd])$/.exec(text) ?? []
  return count === undefined ? null : Number(count) * (units[unit] ?? 0)
}

/** Reads a whole number from 1. @param words completes `--wait is a whole number …` in the error */
export const numberParser =
  (option: string, words: string, max = Number.POSITIVE_INFINITY) =>
  (text: string): number => {
    const number = Number(text)
    if (Number.isInteger(number) && number >= 1 && number <= max) return number
    throw new UsageError(`${option} is a whole number${words}`)
  }

export const parseLimit = numberParser('--limit', ' from 1 to 10000', 10_000)
export const limitOption = (): Option => option('--limit <n>', 'maximum rows', parseLimit).default(50)

export const roleOption = (about: string): Option => new Option('--role <role>', about).choices(roles)

export const emailTypeOption = (): Option => new Option('--type <type>', 'filter by type').choices(emailTypes)

export const typeOption = (): Option =>
  new Option('--type <type>', 'the type of the email').choices(emailTypes).default('magic_link')

export const yesOption = (): Option => new Option('--yes', 'do not ask')

export const expiresOption = (about: string): Option => option('--expires <date>', about, parseFutureTime)

/** A time in the past: `10m` (ago), a date or a timestamp. */
export const pastOption = (name: string, about: string, value = 'date'): Option =>
  option(`${name} <${value}>`, about, (text) => parsePastTime(text, name))

/** In milliseconds. */
export const graceOption = (about: string, usual: '1d' | '24h'): Option =>
  option('--grace <time>', `${about}: 0, 30m, 24h or 7d`, parseGrace).default(dayMs, usual)

function parseGrace(text: string): number {
  const ms = text === '0' ? 0 : parseLength(text)
  if (ms === null) throw new UsageError('--grace must be 0, or a number with m, h or d, such as 30m, 24h or 7d')
  return ms
}

/** @param none said if nobody can answer, or the answer is another */
export async function confirm(
  { ask }: CliDeps,
  { answer, none, question, without }: Record<'question' | 'answer' | 'none' | 'without', string>,
): Promise<void> {
  const given = await ask(question)
  if (given === null) throw new CommandFailed(`${none}: ${without}`)
  if (given.trim() !== answer) throw new CommandFailed(none)
}
