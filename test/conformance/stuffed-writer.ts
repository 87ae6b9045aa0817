/** Runs methods of the writer on a stuffed database, each case in a transaction that is rolled back. */
import { keysMax, scanMax, stepMax, waitingWebhooksMax } from '../../src/domain/bounds.ts'
import { makeKeyedHash } from '../../src/store/crypto/key-ring.ts'
import type { changes, notes } from '../../src/store/scripts/scripts.ts'
import type { Methods } from '../../src/store/shared/methods.ts'
import { Buckets } from '../../src/store/sqlite/queue/buckets.ts'
import type { claimDue } from '../../src/store/sqlite/queue/claim.ts'
import type { enqueue } from '../../src/store/sqlite/queue/enqueue.ts'
import { newWriter, type Writer, WriteTransaction } from '../../src/store/sqlite/queue/write-transaction.ts'
import { type Call, type queueFunctions, runCall } from '../../src/store/sqlite/threads/calls.ts'
import type { Execution, RecordingConnection } from '../support/recording-connection.ts'
import { newRing } from '../support/service.ts'
import { nowMs, stuffedRows } from './stuffed-rows.ts'

type Functions = typeof queueFunctions & {
  enqueue: typeof enqueue
  claimDue: typeof claimDue
} & typeof changes &
  typeof notes

export type MethodName = Call['name']
export type ScriptName = keyof typeof changes | keyof typeof notes
type Method<Name extends MethodName> = Methods<Functions>[Name]

/** The parts of a case. */
export type It = {
  readonly writer: Writer
  /** Prepares the database, which is not recorded. */
  sql(text: string): void
  all(text: string): readonly unknown[]
  move(byMs: number): void
  run<Name extends MethodName>(name: Name, ...args: Parameters<Method<Name>>): Awaited<ReturnType<Method<Name>>>
}

/** At least one for each method, by what makes it different. */
export type Cases<Names extends MethodName = MethodName> = {
  readonly [Name in Names]: Readonly<Record<string, (it: It) => unknown>>
}

export const ring = newRing()
export const keyedHash = makeKeyedHash(Buffer.alloc(32))

/** One call of a method, and the statements that ran in it. */
export type Ran = { readonly name: MethodName; readonly executions: readonly Execution[] }

/** Begins where a writer is that has read the journal of its buckets. */
function newIt(connection: RecordingConnection, ran: Ran[]): It {
  let movedMs = 0
  const parts = { connection, ring, keyedHash, queueMax: 1e6, nowMs: () => nowMs + movedMs }
  const writer = newWriter(parts)
  writer.buckets.keep({ id: stuffedRows, charged: [] })
  return {
    writer,
    sql: (text) => connection.connection.exec(text),
    all: (text) => connection.connection.prepare(text).all(),
    move: (byMs) => {
      movedMs += byMs
    },
    run: (name, ...args) => {
      connection.executions = []
      const tx = new WriteTransaction(writer)
      const result = runCall(tx, { name, args })
      tx.flush()
      tx.committed()
      ran.push({ name, executions: connection.executions })
      return result as never
    },
  }
}

/** Buckets that have no room in memory. */
export function fullBuckets(): Buckets {
  const buckets = new Buckets(1024)
  const charged = Array.from({ length: 768 }, (_, n) => [n + 1, (nowMs + 3_600_000) * 1000] as const)
  buckets.keep({ id: stuffedRows, charged })
  return buckets
}

/** The calls of one case. */
export function runCase(connection: RecordingConnection, work: (it: It) => unknown): readonly Ran[] {
  const ran: Ran[] = []
  connection.connection.exec('begin immediate')
  try {
    work(newIt(connection, ran))
    return ran
  } finally {
    connection.connection.exec('rollback')
  }
}

/** The most rows that one statement reads: all keys of an app, ended ones too, or one step of a scan. */
const rowsMax = Math.max(stepMax, 2 * keysMax, waitingWebhooksMax, scanMax)
/** Steps of SQLite for a row that an index finds: some 5 to seek it, and 2 for each column that is read. */
const stepsOfRead = 12
/** Steps for a row that is changed: it is found twice, and the entries of four or five indexes change. */
const stepsOfChange = 100
/** A call reads the rows of two steps and makes two changes for each: it expires mail, and cancels mail. */
const executionsMax = 5 * stepMax

export const readStepsMax = rowsMax * stepsOfRead

/** Says how an execution exceeds its bound; null if it does not. */
export function excessOf({ text, steps, changes }: Execution): string | null {
  const stepsMax = readStepsMax + Math.min(changes, rowsMax) * stepsOfChange
  return steps <= stepsMax && changes <= rowsMax
    ? null
    : `${steps} steps, at most ${stepsMax}; ${changes} changes: ${text}`
}

export const hasTooMany = ({ executions }: Ran): boolean => executions.length > executionsMax
