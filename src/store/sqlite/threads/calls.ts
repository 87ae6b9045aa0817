/** The functions of the writer, by name, and how it runs a group of calls. */
import { appChanges } from '../../scripts/apps.ts'
import { keyChanges } from '../../scripts/keys.ts'
import { bindScript, changes, notes } from '../../scripts/scripts.ts'
import { callFunction } from '../../shared/methods.ts'
import { faultKind } from '../engine/connection.ts'
import { runOn } from '../engine/run-script.ts'
import { cancelDeletedAppMail } from '../queue/cancel-app-mail.ts'
import { cancelEmail, retryDeferred, retryEmail } from '../queue/change-email.ts'
import { claimDue } from '../queue/claim.ts'
import { enqueue } from '../queue/enqueue.ts'
import { maintain } from '../queue/maintenance.ts'
import { recordOutcome, renewLeases } from '../queue/outcome.ts'
import { type Writer, WriteTransaction } from '../queue/write-transaction.ts'
import { type Answer, faultAnswer } from './answer.ts'

/** The functions of the queue that are methods of the store as they are. */
export const queueFunctions = {
  renewLeases,
  recordOutcome,
  maintain,
  cancelDeletedAppMail,
  retryEmail,
  retryDeferred,
  cancelEmail,
}

const functions = { enqueue, claimDue, ...queueFunctions }
const scripts = { ...changes, ...notes }

type FunctionName = keyof typeof functions | keyof typeof scripts

/** One call to a thread. The types of the arguments are checked where the call is made. */
export type Call<Name extends string = FunctionName> = {
  readonly name: Name
  readonly args: readonly unknown[]
}

export function runCall(tx: WriteTransaction, { name, args }: Call): unknown {
  if (!(name in scripts)) return callFunction(functions[name as keyof typeof functions], tx, args)
  const result = runOn(tx, bindScript(scripts[name as keyof typeof scripts], args))
  if (name in appChanges || name in keyChanges) tx.clearCaches()
  return result
}

/**
 * Runs the calls as one durable transaction. If it fails for a temporary reason (disk full, locked), all its
 * calls fail. If one call is at fault, the calls are run again one by one, so that only that call fails.
 */
export function runGroup(writer: Writer, calls: readonly Call[]): Answer[] {
  let done: { tx: WriteTransaction; answers: Answer[] }
  try {
    done = writer.connection.transaction(() => {
      const tx = new WriteTransaction(writer)
      const answers = calls.map((call) => ({ value: runCall(tx, call) }))
      tx.flush()
      return { tx, answers }
    })
  } catch (error) {
    writer.dataVersion = -1 // the caches may hold changes that were rolled back
    if (faultKind(error) === 'bug' && calls.length > 1) return calls.flatMap((call) => runGroup(writer, [call]))
    return calls.map(() => faultAnswer(error))
  }
  done.tx.committed() // not within the try: what is committed must not run again
  return done.answers
}
