/** Options that several commands have, and how their values are read. */
import { Option } from 'commander'
import { dayMs } from '../domain/duration.ts'
import { roles } from '../domain/operator/management-token.ts'
import { emailTypes } from '../domain/request/email-kinds.ts'
import { option } from './command.ts'
import type { CliDeps } from './context.ts'
import { CommandFailed, UsageError } from './output.ts'
import { parseLength, parsePastTime, parseTime } from './time.ts'

/** `--limit`: rows of a list. */
export function parseLimit(value: string): number {
  const limit = Number(value)
  if (!Number.isInteger(limit) || limit < 1 || limit > 10_000)
    throw new UsageError('--limit is a whole number from 1 to 10000')
  return limit
}

export const limitOption = (): Option => option('--limit <n>', 'maximum rows', parseLimit).default(50)

export const roleOption = (about: string): Option => new Option('--role <role>', about).choices(roles)

export const typeOption = (): Option =>
  new Option('--type <type>', 'the type of the email').choices(emailTypes).default('magic_link')

export const yesOption = (): Option => new Option('--yes', 'do not ask')

export const expiresOption = (about: string): Option =>
  option('--expires <date>', about, (text) => parseTime(text, '--expires'))

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
