/** A thread's answer to one call, and how the store reads it. */
import type { Settled } from '../../shared/grouped-calls.ts'
import { StoreUnavailable } from '../../store.ts'
import { type FaultKind, faultKind } from '../engine/connection.ts'

/** The part of a `MessagePort` that a thread uses. */
export type Port<In, Out> = {
  on(event: 'message', listener: (message: In) => void): unknown
  postMessage(message: Out): void
  close(): void
}

export const closed = (cause?: Error) => new StoreUnavailable('the store is closed', { cause })

export type Answer = { readonly value: unknown } | { readonly fault: FaultKind; readonly error: Error }

/** `error` keeps its stack: it is cloned, with the message and stack, to the other thread. */
export const faultAnswer = (error: unknown): Answer => ({
  fault: faultKind(error),
  error: error instanceof Error ? error : new Error(String(error)),
})

/** A fault of SQLite becomes `StoreUnavailable`; a bug stays the error that it was. */
export function settle(answer: Answer): Settled {
  if ('value' in answer) return answer
  const { fault, error } = answer
  return { error: fault === 'bug' ? error : new StoreUnavailable(error.message, { cause: error }) }
}
