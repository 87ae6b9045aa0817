/** The checks of `postern doctor` on a database and the relays. Sends no email. */
import type { RelayAddress } from '../delivery/relay/smtp/connect.ts'
import { SmtpSession } from '../delivery/relay/smtp/smtp-session.ts'
import { SchemaMissing } from '../store/shared/migrations.ts'
import type { Finding, Store } from '../store/store.ts'

export async function checkStore(open: () => Promise<Store>): Promise<Finding[]> {
  const check = 'database'
  try {
    const store = await open()
    try {
      const { depth } = await store.queueGauge()
      const apps = await store.listApps()
      const findings = await store.examine()
      const detail = `opens, durable; ${depth} emails wait or are being sent`
      return [
        { check, ok: true, detail },
        ...findings,
        { check: 'apps', ok: true, detail: appsDetail(apps.length) },
      ]
    } finally {
      await store.close()
    }
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    return [{ check, ok: error instanceof SchemaMissing, detail }]
  }
}

const appsDetail = (count: number): string =>
  count === 0 ? 'none yet; "postern app create" makes one' : `${count}`

const relayMs = 30_000

export async function checkRelay(address: RelayAddress): Promise<Finding> {
  const check = `relay ${address.host}:${address.port}`
  const session = await SmtpSession.open(address, AbortSignal.timeout(relayMs))
  if (!(session instanceof SmtpSession)) {
    const detail = `${session.reply.text}. Nothing is sent through this relay until that is fixed; emails wait until their links expire, 48 hours at most`
    return { check, ok: false, detail }
  }
  session.quit()
  const how = address.tls === 'none' ? 'without TLS (loopback)' : 'over verified TLS'
  const login = address.credentials === null ? '' : ' and takes the credentials'
  return { check, ok: true, detail: `answers ${how}${login}` }
}
