/** Checks that a relay answers and takes the credentials. Sends no email. */
import type { RelayAddress } from '../../delivery/relay/smtp/connect.ts'
import { SmtpSession } from '../../delivery/relay/smtp/smtp-session.ts'
import type { Finding } from '../../store/store.ts'

const relayMs = 30_000

/** `captures`: emails go to the dev inbox instead of a relay. */
export async function checkRelays(
  addresses: readonly RelayAddress[],
  { captures }: { readonly captures: boolean },
): Promise<Finding[]> {
  if (addresses.length > 0) return Promise.all(addresses.map(checkRelay))
  const detail = captures
    ? 'the dev inbox captures every email'
    : 'not checked, because this process knows none: give it the POSTERN_SMTP_URL of the processes that send, or run the checks where they run'
  return [{ check: 'relays', ok: captures, detail }]
}

export async function checkRelay(address: RelayAddress): Promise<Finding> {
  const check = `relay ${address.host}:${address.port}`
  const session = await SmtpSession.open(address, AbortSignal.timeout(relayMs))
  if (!(session instanceof SmtpSession)) {
    const detail = `${session.reply.text}. Nothing is sent through this relay until that is fixed; emails wait until their links expire, 48 hours at most`
    return { check, ok: false, detail }
  }
  session.quit()
  const how = address.tls === 'none' ? 'without TLS (loopback)' : 'over verified TLS'
  const login = address.credentials === null ? '' : ' and accepts the credentials'
  return { check, ok: true, detail: `answers ${how}${login}` }
}
