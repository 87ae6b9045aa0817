/**
 * The functions of the writer, by name. Each runs inside a write transaction that it shares
 * with the other calls of its group.
 */
import { appChanges } from '../../scripts/apps.ts'
import { keyChanges } from '../../scripts/keys.ts'
import { bindScript, changes, notes } from '../../scripts/scripts.ts'
import { callFunction } from '../../shared/methods.ts'
import { runOn } from '../engine/run-script.ts'
import { cancelDeletedAppMail } from '../queue/cancel-app-mail.ts'
import { cancelEmail, retryDeferred, retryEmail } from '../queue/change-email.ts'
import { claimDue } from '../queue/claim.ts'
import { enqueue } from '../queue/enqueue.ts'
import { maintain } from '../queue/maintenance.ts'
import { recordOutcome, renewLeases } from '../queue/outcome.ts'
import type { WriteTransaction } from '../queue/write-transaction.ts'

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
