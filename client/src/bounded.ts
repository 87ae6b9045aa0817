/** Time limits, with timers that are always cleared: nothing here keeps a process alive. */
import { PosternError } from './postern-error.ts'

/**
 * Runs something for `ms` milliseconds at most, or until the caller's signal; then it is told by a
 * signal of its own, and left behind whether it listens or not.
 * @throws {PosternError} `timeout` or `aborted`; besides, whatever `run` throws
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
  const timer = setTimeout(
    () => interrupt(new PosternError('timeout', 'Postern did not answer in time.')),
    ms,
  )
  caller?.addEventListener('abort', onAbort)
  try {
    if (caller?.aborted) throw aborted()
    return await Promise.race([run(controller.signal), interrupted])
  } finally {
    clearTimeout(timer)
    caller?.removeEventListener('abort', onAbort)
  }
}

// The signal's own reason stays out: it may hold anything.
const aborted = () => new PosternError('aborted', 'The caller gave up before Postern had answered.')
