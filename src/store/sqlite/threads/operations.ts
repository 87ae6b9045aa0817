/**
 * What the writer thread can be asked to do, by name. Each runs inside a write transaction that it
 * shares with the other calls of its group.
 */
import {
  cancelDeletedAppMail,
  cancelEmail,
  createApp,
  createKey,
  deleteApp,
  retryEmail,
  revokeKey,
  updateApp,
} from '../admin.ts'
import { claimDue, renewLeases } from '../claim.ts'
import { enqueue } from '../enqueue.ts'
import { maintain } from '../maintenance.ts'
import { recordOutcome } from '../outcome.ts'
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
  revokeKey,
  retryEmail,
  cancelEmail,
}

export type OperationName = keyof typeof operations

type Rest<F> = F extends (tx: WriteTransaction, ...rest: infer R) => unknown ? R : never
export type Arguments<N extends OperationName> = Rest<(typeof operations)[N]>
export type Answer<N extends OperationName> = ReturnType<(typeof operations)[N]>

export type Call = { readonly name: OperationName; readonly args: readonly unknown[] }

/** Runs one call; the types of its arguments were checked where it was made. */
export const perform = (tx: WriteTransaction, call: Call): unknown =>
  (operations[call.name] as (tx: WriteTransaction, ...args: readonly unknown[]) => unknown)(tx, ...call.args)
