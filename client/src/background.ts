/**
 * Sending without making the sign-in wait: a slow answer tells an attacker that the account exists.
 * A promise nobody waits for is dropped by serverless platforms, hence their `waitUntil`.
 */

export type Background = {
  /** The platform's own; with it sends go on after the response. Without it they are awaited. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined
  /** Told of every failure; unless given, those in the background go to `console.error`. */
  readonly onError?: ((error: unknown) => unknown) | undefined
}

/**
 * Awaits the sending, or hands it over.
 * @throws whatever the sending throws, where it is awaited
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

/** Whoever is told may fail as well: then that is reported, and nothing is thrown. */
export async function tell(onError: (error: unknown) => unknown, error: unknown): Promise<void> {
  try {
    await onError(error)
  } catch (failure) {
    report(failure)
  }
}

/** Where nobody else is told. */
export const report = (error: unknown): void => console.error('Postern: an email was not queued.', error)
