/** Composes the alerts to the operators' receiver. */
import { postWebhook } from '../delivery/webhooks/post-webhook.ts'
import { signStandardWebhook } from '../domain/signatures.ts'
import { Alerter } from '../management/alerts/alerter.ts'
import { type Alert, writeAlert } from '../management/alerts/alerts.ts'
import { localAccess } from '../management/operation/access.ts'
import { newLocalRunner } from '../management/perform.ts'
import type { ServiceContext } from './context.ts'
import { composeManagement } from './management.ts'

/** Null without POSTERN_ALERTS_URL. */
export function composeAlerter(context: ServiceContext, everyMs?: number): Alerter | null {
  const { config, events, store, version } = context
  const { alerts, consoleUrl, dnsServers } = config
  if (alerts === null) return null
  const post = (alert: Alert, stopped: AbortSignal) => {
    const body = Buffer.from(writeAlert(alert, consoleUrl))
    const timestamp = String(Math.floor(store.now() / 1000))
    const { key, url } = alerts
    const signature = key && signStandardWebhook({ id: alert.id, timestamp, body }, key)
    const headers = {
      ...{ 'content-type': 'application/json', 'user-agent': `Postern/${version}` },
      ...{ 'webhook-id': alert.id, 'webhook-timestamp': timestamp },
      ...(signature !== null && { 'webhook-signature': signature }),
    }
    return postWebhook({ url, headers, body }, { allowsPrivate: true, dnsServers, stopped })
  }
  const runner = newLocalRunner(composeManagement(config, { store, version }), localAccess('alerts'))
  return new Alerter({ store, runner, post, emit: events.emit, ...(everyMs !== undefined && { everyMs }) })
}
