/**
 * Sending without making the sign-in wait: a slow answer tells an attacker that the account exists.
 * A promise nobody waits for is dropped by serverless platforms, hence their `waitUntil`.
 */

export type Background = {
  /** The platform's own; with it sends go on after the response. Without it they are awaited. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined
  /** Told of failures in the background; unless given, they go to `console.error`. */
  readonly onError?: ((error: unknown) => void) | undefined
}

/**
 * Awaits the sending, or hands it over.
 * @throws whatever the sending throws, where it is awaited
 */
export async function dispatch(sending: Promise<unknown>, background: Background): Promise<void> {
  const { waitUntil, onError = report } = background
  if (waitUntil === undefined) await sending
  else waitUntil(sending.catch(onError))
}

const report = (error: unknown) => console.error('Postern: an email was not queued.', error)
