/**
 * Tells systemd that the service is ready, that it still works, and that it stops (sd_notify(3)), for a unit
 * of `Type=notify`. It runs `systemd-notify`, because Node cannot open a Unix datagram socket.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Environment } from '../config/reader.ts'

const run = promisify(execFile)

type Watched = {
  /** Settles once the store has answered. */
  readonly askStore: () => Promise<unknown>
  readonly onFault: (text: string) => void
}

/** systemd-notify waits for five seconds until systemd has read what it sent. A stop waits for it. */
const notifyMs = 6000

/**
 * Returns the function to call when the service begins to stop. Without `NOTIFY_SOCKET` nothing is sent.
 *
 * The watchdog is notified while the event loop runs and the store answers, also with an error: a new start
 * repairs neither a database that is down nor a full disk.
 */
export async function notifySystemd(env: Environment, { askStore, onFault }: Watched): Promise<() => Promise<void>> {
  const { NOTIFY_SOCKET, PATH, WATCHDOG_USEC } = env
  if (NOTIFY_SOCKET === undefined) return async () => {}
  const notify = async (...states: string[]): Promise<void> => {
    await run('systemd-notify', states, { env: { NOTIFY_SOCKET, PATH }, timeout: notifyMs }).catch((error: Error) =>
      onFault(`cannot notify systemd: ${error.message}`),
    )
  }
  let [isAsking, isStopping] = [false, false]
  const notifyWatchdog = async (): Promise<void> => {
    if (isAsking) return
    isAsking = true
    await askStore().catch(() => {})
    isAsking = false
    // Also READY: the first one may not have reached systemd.
    if (!isStopping) await notify('READY=1', 'WATCHDOG=1')
  }
  await notify('READY=1')
  // In microseconds; at half of it, as sd_watchdog_enabled(3) recommends.
  const timer = WATCHDOG_USEC === undefined ? undefined : setInterval(notifyWatchdog, Number(WATCHDOG_USEC) / 2000)
  return async () => {
    isStopping = true
    clearInterval(timer)
    await notify('STOPPING=1')
  }
}
