/** The operations of the management API and of the command line. */

import { describeAuthHooksListener } from '../config/listeners.ts'
import type { Config } from '../config/parse-config.ts'
import { describeReports } from '../config/reports.ts'
import { newTransportTexts } from '../config/transports.ts'
import { SharedRead } from '../domain/remembered.ts'
import type { LinkHost } from '../intake/judge-request.ts'
import { newAlertsCheck } from '../management/alerts/alerts.ts'
import type { Management } from '../management/context.ts'
import { newDomainFacts } from '../management/domains/domain-parts.ts'
import { RecordWatch } from '../management/domains/record-watch.ts'
import { localAccess } from '../management/operation/access.ts'
import type { OperationRunner } from '../management/operations.ts'
import { newLocalRunner } from '../management/perform.ts'
import { presentNode } from '../management/resources.ts'
import { examineStore } from '../management/service/check-database.ts'
import { checkRelays } from '../management/service/check-relay.ts'
import { checkTransports } from '../management/service/check-transports.ts'
import { findDown } from '../management/service/outages.ts'
import { newPastCounts, newQueueCounts, newReportCounts } from '../management/shared-counts.ts'
import { ActivityCounter } from '../observe/activity-counter.ts'
import type { Emit } from '../observe/events.ts'
import { openAuthHookSecret, sealAuthHookSecret } from '../store/crypto/auth-hook-secret.ts'
import { findMissingKey } from '../store/crypto/key-ring.ts'
import { newCursors } from '../store/crypto/sealed-cursor.ts'
import { openInboxEmail } from '../store/crypto/sealed-inbox-email.ts'
import { sealLink } from '../store/crypto/sealed-link.ts'
import { makeSigningKey } from '../store/crypto/signing-key.ts'
import { makeWebhookSecret, recipientSealer, sealWebhookSecret } from '../store/crypto/webhook-secret.ts'
import type { Finding, Store } from '../store/store.ts'
import { newLinkDomainProbe } from './link-domains.ts'

/** For how long the same findings are shown: checks open connections to the relays and the database. */
const findingsMs = 10_000

type Parts = {
  readonly store: Store
  readonly version: string
  readonly onQueued?: () => void
  readonly emit?: Emit
  readonly isStopping?: () => boolean
}

/**
 * Runs the operations of a command on the server itself, and counts for charts what they do.
 * @param parts.user the person who gave the command
 */
export function composeRunner(config: Config, parts: Parts & { readonly user: string }): OperationRunner {
  const { store, user } = parts
  const counter = new ActivityCounter(() => store.now())
  const emit: Emit = (event) => counter.observe(event)
  // A command ends before DNS has answered.
  const management = { ...composeManagement(config, { ...parts, emit }), records: { get: () => [] } }
  const { call } = newLocalRunner(management, localAccess(user))
  return {
    async call(name, input) {
      const result = await call(name, input)
      if (!counter.isEmpty) await store.addActivity(counter.takeCounts())
      return result
    },
  }
}

/** The hosted links that emails carry. */
export const composeLinks = ({ linksBaseUrl, ring }: Config): LinkHost => ({
  baseUrl: linksBaseUrl,
  seal: (owner, target) => sealLink(ring, owner, target),
})

export function composeManagement(
  config: Config,
  { store, version, onQueued = () => {}, emit = () => {}, isStopping = () => false }: Parts,
): Management {
  const { apiUrl, consoleUrl, authHooksUrl, queueMax, ring } = config
  const domains = newDomainFacts(config)
  const transports = newTransportTexts(config)
  return {
    store,
    version,
    onQueued,
    emit,
    queueMax,
    consoleUrl,
    isStopping,
    openInboxEmail: (email, sealed) => openInboxEmail(ring, email, sealed),
    ...describeReports(config),
    queue: newQueueCounts(store),
    past: newPastCounts(store),
    reports: newReportCounts(store),
    findings: new SharedRead(
      () =>
        examineStore({
          store,
          transports,
          lacksKey: (sealed) => findMissingKey(ring, sealed),
          checkAlerts: newAlertsCheck(config.alerts, store),
        }),
      () => findingsMs,
    ),
    cursors: newCursors(ring),
    ...domains,
    probeLinkDomain: newLinkDomainProbe(config, version),
    records: new RecordWatch({ store, ...domains }),
    makeSigningKey: (key) => makeSigningKey(ring, key),
    links: composeLinks(config),
    apiUrl,
    authHooksUrl,
    authHooksListener: describeAuthHooksListener(config),
    submissionUrl: config.submissionUrl,
    takesSubmissions: (config.submission ?? config.submissions) !== null,
    sealAuthHookSecret: (hash, secret) => sealAuthHookSecret(ring, { hash }, secret),
    transports,
    allowsPrivateWebhooks: config.allowsPrivateWebhooks,
    sealRecipient: recipientSealer(ring),
    makeWebhookSecret: (app) => {
      const secret = makeWebhookSecret()
      return { secret, sealed: sealWebhookSecret(ring, app, secret) }
    },
    opensAuthHookSecret: (secret) => openAuthHookSecret(ring, secret) !== null,
    relays: new SharedRead<readonly Finding[]>(
      () => checkAllRelays(config, store, transports),
      () => findingsMs,
    ),
  }
}

/** The relays of the service, if this process knows them, and those of all transports. */
async function checkAllRelays(
  { bounceAddress, isDev, relays, roles }: Config,
  store: Store,
  { open }: Management['transports'],
): Promise<readonly Finding[]> {
  const settings = {
    apps: await store.listApps(),
    bounceAddress,
    captures: isDev && roles.has('worker'),
    down: findDown((await store.listNodes()).map((node) => presentNode(node, store.now()))),
  }
  const opened = (await store.listTransports()).map((stored) => ({ name: stored.name, ...open(stored) }))
  return (await Promise.all([checkRelays(relays, settings), checkTransports(opened, settings)])).flat()
}
