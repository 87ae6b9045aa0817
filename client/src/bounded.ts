/** Time limits, with timers that are always cleared: nothing here keeps a process alive. */
import { PosternError } from './postern-error.ts'

/**
 * Awaits `run` for at most `ms` milliseconds, or until the caller's signal. Then aborts the signal that
 * `run` received, and returns without waiting for `run`.
 * @throws {PosternError} `timeout` or `aborted`; also any error of `run`
 */
export async function bounded<T>(
  ms: number,
  caller: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  let interrupt = (_error: PosternError): void => undefined
  const interrupted = new Promise<never>((_, reject) => {
    interrupt = (error) => {
      reject(error)
      controller.abort()
    }
  })
  const onAbort = () => interrupt(aborted())
  const timer = setTimeout(() => interrupt(new PosternError('timeout', 'Postern did not answer in time.')), ms)
  caller?.addEventListener('abort', onAbort)
  try {
    if (caller?.aborted) throw aborted()
    return await Promise.race([run(controller.signal), interrupted])
  } finally {
    clearTimeout(timer)
    caller?.removeEventListener('abort', onAbort)
  }
}

// Omits the signal's reason: it may hold secrets.
const aborted = () => new PosternError('aborted', 'The caller aborted before Postern answered.')
