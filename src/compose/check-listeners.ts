/** Whether this process could listen where it is configured to, for the doctor. */
import { listenerSettings, listOpened } from '../config/listeners.ts'
import type { Config } from '../config/parse-config.ts'
import { formatHostPort } from '../domain/host-port.ts'
import type { Finding } from '../store/store.ts'
import { describeListenFault, tryListen } from '../web/http/listener.ts'

/** @param isRunning whether the service runs on this machine, so that its ports are in use */
export function checkListeners(config: Config, isRunning: boolean): Promise<Finding[]> {
  return Promise.all(
    listOpened(config).map(async ({ name, address }): Promise<Finding> => {
      const check = `${name} listener`
      const error = await tryListen(address)
      if (error === null) return { check, ok: true, detail: `${formatHostPort(address)} is free` }
      if (error.code === 'EADDRINUSE' && isRunning)
        return { check, ok: true, detail: `${formatHostPort(address)} is in use, and the service runs` }
      return {
        check,
        ok: false,
        detail: `${listenerSettings[name]}: ${describeListenFault(address, error) ?? error.message}`,
      }
    }),
  )
}
