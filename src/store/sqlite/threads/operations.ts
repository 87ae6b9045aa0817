/**
 * The operations of the writer thread, by name. Each runs inside a write transaction that it shares
 * with the other calls of its group.
 */
import { addActivity, addRefusals, noteNode, removeNode } from '../activity.ts'
import { cancelDeletedAppMail, createApp, deleteApp, updateApp } from '../apps.ts'
import { recordAction } from '../audit.ts'
import { claimDue } from '../claim.ts'
import { cancelEmail, retryDeferred, retryEmail } from '../emails.ts'
import { enqueue } from '../enqueue.ts'
import { createKey, replaceKey, revokeKey, updateKey } from '../keys.ts'
import { maintain } from '../maintenance.ts'
import { recordOutcome, renewLeases } from '../outcome.ts'
import { peopleOperations } from '../people.ts'
import { createToken, noteTokenUse, revokeToken } from '../tokens.ts'
import type { WriteTransaction } from './write-transaction.ts'

const operations = {
  enqueue,
  claimDue,
  renewLeases,
  recordOutcome,
  maintain,
  createApp,
  updateApp,
  deleteApp,
  cancelDeletedAppMail,
  createKey,
  updateKey,
  replaceKey,
  revokeKey,
  retryEmail,
  retryDeferred,
  cancelEmail,
  createToken,
  revokeToken,
  noteTokenUse,
  recordAction,
  addActivity,
  addRefusals,
  noteNode,
  removeNode,
  ...peopleOperations,
}

type OperationName = keyof typeof operations

/** One call to a thread. The types of the arguments are checked where the call is made. */
export type Call<Name extends string = OperationName> = {
  readonly name: Name
  readonly args: readonly unknown[]
}

export const perform = (tx: WriteTransaction, call: Call): unknown =>
  (operations[call.name] as (tx: WriteTransaction, ...args: readonly unknown[]) => unknown)(tx, ...call.args)
