/** The refusal of a command that names a key which is not there. */
import { type Result, refuse } from './result.ts'

export const noSuchKey = (id: string): Result<never> =>
  refuse('not_found', `there is no key "${id}"; give its id (key_…), as "postern key list APP" shows it`)
