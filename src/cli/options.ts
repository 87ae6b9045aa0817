/** Values of options that several commands have. */
import { readPrivateFile } from '../config/private-file.ts'
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

/**
 * A file that holds secrets.
 * @throws UsageError if it cannot be read, or others have access to it
 */
export function readSecretFile(file: string, option: string): string {
  try {
    return readPrivateFile(file, (why) => {
      throw new UsageError(`${option}: ${why}`)
    })
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`cannot read ${file} of ${option}: ${(error as Error).message}`)
  }
}
