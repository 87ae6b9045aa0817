/** Composes the alerts to the operators' receiver. */
import { newPosting, postWebhook } from '../delivery/webhooks/post-webhook.ts'
import { Alerter } from '../management/alerts/alerter.ts'
import { type Alert, writeAlert } from '../management/alerts/alerts.ts'
import { localAccess } from '../management/operation/access.ts'
import { newLocalRunner } from '../management/perform.ts'
import type { ServiceContext } from './context.ts'
import { composeManagement } from './management.ts'

/** Null without POSTERN_ALERTS_URL. */
export function composeAlerter(
  { config, events, store, version }: Pick<ServiceContext, 'config' | 'events' | 'store' | 'version'>,
  times: Partial<Record<'everyMs' | 'deadlineMs', number>> = {},
): Alerter | null {
  const { alerts, consoleUrl, dnsServers } = config
  if (alerts === null) return null
  const post = (alert: Alert, stopped: AbortSignal) => {
    const keys = alerts.key === null ? [] : [alerts.key]
    const signed = { id: alert.id, text: writeAlert(alert, consoleUrl), keys, nowMs: store.now(), version }
    return postWebhook(newPosting(alerts.url, signed), { allowsPrivate: true, dnsServers, stopped })
  }
  const runner = newLocalRunner(composeManagement(config, { store, version }), localAccess('alerts'))
  return new Alerter({ store, runner, post, emit: events.emit, ...times })
}
