/** Files that hold secrets, as options name them. */
import { readPrivateFile } from '../config/private-file.ts'
import { UsageError } from './output.ts'

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
