/** Values of options that several commands have. */
import { UsageError } from './output.ts'

/** For an option that may be repeated. */
export const collect = (value: string, all: string[] = []) => [...all, value]

/** `--limit`: rows of a list. */
export function parseLimit(value: string): number {
  const limit = Number(value)
  if (!Number.isInteger(limit) || limit < 1 || limit > 10_000)
    throw new UsageError('--limit is a whole number from 1 to 10000')
  return limit
}
