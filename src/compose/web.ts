/** The listeners. */

import type { FastifyInstance } from 'fastify'
import { listOpened, type Opened } from '../config/listeners.ts'
import { AppPolicyCache } from '../intake/app-policy-cache.ts'
import { recipientSealer } from '../store/crypto/webhook-secret.ts'
import { newApiListener } from '../web/api/api-listener.ts'
import type { PostEmailDeps } from '../web/api/post-email.ts'
import { newAuthHooksListener } from '../web/auth-hooks/auth-hooks-listener.ts'
import type { ListenAddress, ListenerDeps } from '../web/http/listener.ts'
import { newLinksListener } from '../web/links/links-listener.ts'
import { newConsoleListener } from '../web/operators/listener.ts'
import { newOpsListener } from '../web/ops/ops-listener.ts'
import { newReportsListener } from '../web/reports/reports-listener.ts'
import type { ServiceContext } from './context.ts'
import type { Delivery } from './delivery.ts'
import { newLinkDomains } from './link-domains.ts'
import { composeLinks, composeManagement } from './management.ts'

/** Those that speak SMTP. */
const mailListeners = ['bounce', 'submission', 'submissions'] as const
export type MailListener = (typeof mailListeners)[number]
type ListenerName = Exclude<Opened['name'], MailListener>
export type ListenerPart = {
  readonly name: ListenerName
  readonly listener: FastifyInstance
  readonly address: ListenAddress
}

/** The listeners of HTTP, in the order in which they start. */
export function composeListeners(context: ServiceContext, delivery: Delivery | null): ListenerPart[] {
  return listOpened(context.config).flatMap(({ name, address }): ListenerPart[] =>
    isMail(name) ? [] : [{ name, address, listener: composeListener(name, context, delivery) }],
  )
}

const isMail = (name: Opened['name']): name is MailListener => mailListeners.some((mail) => mail === name)

function composeListener(name: ListenerName, context: ServiceContext, delivery: Delivery | null): FastifyInstance {
  const { config, events, isProxy, isStopping, store } = context
  const { emit } = events
  const { consoleUrl, reports, linksBaseUrl, ring } = config
  switch (name) {
    case 'ops':
      return newOpsListener({ ...context, emit, linkDomains: newLinkDomains(store) })
    case 'api':
      return newApiListener(composeIntake(context, delivery))
    case 'links':
      return newLinksListener({
        store,
        ring,
        emit,
        isProxy,
        baseUrl: linksBaseUrl ?? '',
        linkDomains: newLinkDomains(store),
      })
    case 'authHooks':
      return composeAuthHooks(context, delivery)
    case 'reports': {
      const deps = { store, emit, keys: reports?.keys ?? [], isProxy, isStopping }
      return newReportsListener({ ...deps, sealRecipient: recipientSealer(ring) })
    }
    case 'console':
      return composeConsole(context, delivery, consoleUrl ?? '')
    default:
      return name satisfies never
  }
}

function composeConsole(
  { config, events, hints, isProxy, isStopping, store, version }: ServiceContext,
  delivery: Delivery | null,
  consoleUrl: string,
): FastifyInstance {
  const captured = delivery?.captured ?? null
  const { consoleIsLocal, isDev, oidc } = config
  return newConsoleListener({
    management: composeManagement(config, {
      isStopping,
      store,
      version,
      emit: events.emit,
      onQueued: () => delivery?.wake(),
    }),
    events,
    address: { url: consoleUrl, isLocal: consoleIsLocal },
    oidc,
    inbox: captured === null ? null : { captured, hints },
    isDev,
    isProxy,
  })
}

function composeAuthHooks(context: ServiceContext, delivery: Delivery | null): FastifyInstance {
  const { authHooksUrl, ring } = context.config
  const basePath = new URL(authHooksUrl ?? 'http://localhost').pathname.replace(/\/+$/, '')
  return newAuthHooksListener({ ...composeIntake(context, delivery), store: context.store, ring, basePath })
}

export function composeIntake(context: ServiceContext, delivery: Delivery | null): PostEmailDeps & ListenerDeps {
  const { config, events, isProxy, isStopping, random, store, webhooks } = context
  return {
    isProxy,
    store,
    random,
    isStopping,
    emit: events.emit,
    policies: new AppPolicyCache(),
    links: composeLinks(config),
    onQueued: () => delivery?.wake(),
    onSuperseded: (email) => events.emit({ kind: 'emails_ended', ended: [email] }),
    onSuppressed: (email, accepted) => {
      events.emit({ kind: 'emails_ended', ended: [email] })
      void webhooks.add('email.suppressed', email.appId, accepted)
    },
    waitForTurn: (key) => delivery?.waitForTurn(key),
  }
}
