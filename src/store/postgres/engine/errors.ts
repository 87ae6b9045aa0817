/** Sorts the errors of the driver by their meaning for the store. */
import pg from 'pg'
import { StoreUnavailable } from '../../store.ts'

/** One call of a group was at fault (SQLSTATE class 22 or 23); the other calls were not. */
export class CallAtFault extends Error {
  override name = 'CallAtFault'
}

const sqlState = (error: unknown): string | null => (error instanceof pg.DatabaseError ? (error.code ?? '') : null)

/** The server refused a statement and can take the next. After any other error the connection is closed. */
export const isServerRefusal = (error: unknown): boolean =>
  error instanceof CallAtFault || /^(22|23|40|42|55)/.test(sqlState(error) ?? '')

export function toStoreError(error: unknown): Error {
  if (error instanceof StoreUnavailable) return error
  const state = sqlState(error)
  const message = error instanceof Error ? error.message : String(error)
  if (state !== null && /^2[23]/.test(state)) return new CallAtFault(message, { cause: error })
  const name = state === null ? '' : ` (SQLSTATE ${state})`
  if (state !== null || isNetworkError(error))
    return new StoreUnavailable(`the database: ${message}${name}`, { cause: error })
  return error instanceof Error ? error : new Error(message)
}

/** The server ended the transaction, because it and another one waited for each other. */
export const isDeadlock = (error: unknown): boolean =>
  error instanceof StoreUnavailable && sqlState(error.cause) === '40P01'

// The driver's own errors for a lost connection have no code; the system's errors have a syscall.
const isNetworkError = (error: unknown): boolean =>
  (error as { syscall?: unknown } | null)?.syscall !== undefined ||
  /^Connection terminated|^Client (was|has)/.test(String((error as Error)?.message))
