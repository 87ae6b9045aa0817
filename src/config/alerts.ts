/** Where alerts are posted. */
import { isLoopback } from '../domain/client-network.ts'
import { isWebhookUrl } from '../domain/webhooks/webhook.ts'
import type { Reader } from './reader.ts'

/** `key` signs them; null if they are not signed. The address may hold a secret of its own. */
export type AlertsConfig = { readonly url: URL; readonly key: Buffer | null }

const keyBytesMin = 24

/** Null without an address. No fault repeats it. */
export function readAlerts({ fault, text }: Reader): AlertsConfig | null {
  const [given, secret] = [text('POSTERN_ALERTS_URL'), text('POSTERN_ALERTS_SECRET')]
  if (given === '') {
    if (secret !== '') fault('POSTERN_ALERTS_SECRET is set without POSTERN_ALERTS_URL: set both, or neither')
    return null
  }
  const url = isWebhookUrl(given) ? URL.parse(given) : null
  if (url === null || (url.protocol === 'http:' && !isLoopback(url.hostname))) {
    fault('POSTERN_ALERTS_URL must be an https URL; http is for localhost only')
    return null
  }
  const key = /^whsec_[A-Za-z0-9+/]+=*$/.test(secret) ? Buffer.from(secret.slice('whsec_'.length), 'base64') : null
  if (secret !== '' && (key === null || key.length < keyBytesMin))
    fault(
      `POSTERN_ALERTS_SECRET must be whsec_ and at least ${keyBytesMin} bytes in base64: echo "whsec_$(openssl rand -base64 32)"`,
    )
  return { url, key }
}
