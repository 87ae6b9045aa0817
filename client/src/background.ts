/**
 * Sends without delaying the sign-in: a slow answer shows an attacker that the account exists.
 * Serverless platforms drop a promise that is not awaited, which is what their `waitUntil` is for.
 */

export type Background = {
  /** The platform's own: sends then continue after the response. Without it they are awaited. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined
  /** Called with every failure. Default for those in the background: `console.error`. */
  readonly onError?: ((error: unknown) => unknown) | undefined
}

/**
 * Awaits `sending`, or passes it to `waitUntil`.
 * @throws the error of `sending`, if awaited
 */
export async function dispatch(sending: Promise<unknown>, background: Background): Promise<void> {
  const { waitUntil, onError } = background
  if (waitUntil !== undefined) return waitUntil(sending.catch((error) => tell(onError ?? report, error)))
  try {
    await sending
  } catch (error) {
    if (onError !== undefined) await tell(onError, error)
    throw error
  }
}

/** Calls `onError`. If that fails too, reports its failure and throws nothing. */
export async function tell(onError: (error: unknown) => unknown, error: unknown): Promise<void> {
  try {
    await onError(error)
  } catch (failure) {
    report(failure)
  }
}

/** The default of `onError`. */
export const report = (error: unknown): void => console.error('Postern: an email was not queued.', error)
