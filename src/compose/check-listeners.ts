/** Whether this process could listen where it is configured to, for the doctor. */
import { listOpened, nameSetting } from '../config/listeners.ts'
import type { Config } from '../config/parse-config.ts'
import type { Finding } from '../store/store.ts'
import { describeListenFault, type ListenAddress, tryListen } from '../web/http/listener.ts'

export async function checkListeners(config: Config): Promise<Finding[]> {
  const isRunning = await answers(config.ops)
  return Promise.all(
    listOpened(config).map(async ({ name, address }): Promise<Finding> => {
      const check = `${name} listener`
      const error = await tryListen(address)
      if (error === null) return { check, ok: true, detail: `${address.host}:${address.port} is free` }
      if (error.code === 'EADDRINUSE' && isRunning)
        return { check, ok: true, detail: `${address.host}:${address.port} is in use, and the service runs` }
      return {
        check,
        ok: false,
        detail: `${nameSetting(name)}: ${describeListenFault(address, error) ?? error.message}`,
      }
    }),
  )
}

const answerMs = 2000

/** Whether a Postern is up there: its `/livez` answers. */
async function answers({ host, port }: ListenAddress): Promise<boolean> {
  const reached =
    host === '0.0.0.0' ? '127.0.0.1' : host.includes(':') ? `[${host === '::' ? '::1' : host}]` : host
  try {
    const signal = AbortSignal.timeout(answerMs)
    const answer = await fetch(`http://${reached}:${port}/livez`, { signal, redirect: 'error' })
    return answer.status === 200
  } catch {
    return false
  }
}
