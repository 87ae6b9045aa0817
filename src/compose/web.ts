/** The listeners. */

import type { FastifyInstance } from 'fastify'
import { isLoopback } from '../domain/client-network.ts'
import { AppPolicyCache } from '../intake/app-policy-cache.ts'
import { recipientSealer } from '../store/crypto/webhook-secret.ts'
import { newApiListener } from '../web/api/api-listener.ts'
import type { PostEmailDeps } from '../web/api/post-email.ts'
import { type FeedbackDeps, newFeedbackListener } from '../web/feedback/feedback-listener.ts'
import { newHooksListener } from '../web/hooks/hooks-listener.ts'
import type { ListenAddress, ListenerDeps } from '../web/http/listener.ts'
import { newLinksListener } from '../web/links/links-listener.ts'
import { newConsoleListener } from '../web/operators/listener.ts'
import { newOpsListener } from '../web/ops/ops-listener.ts'
import type { ServiceContext } from './context.ts'
import type { Delivery } from './delivery.ts'
import { composeLinks, composeManagement } from './management.ts'

export type ListenerName = 'ops' | 'api' | 'links' | 'hooks' | 'feedback' | 'console'
export type ListenerPart = {
  readonly name: ListenerName
  readonly listener: FastifyInstance
  readonly address: ListenAddress
}

/** In the order in which they start. */
export function composeListeners(context: ServiceContext, delivery: Delivery | null): ListenerPart[] {
  const { config, events, isProxy, store } = context
  const { emit } = events
  const { ring, roles, linksBaseUrl: baseUrl } = config
  const listeners: ListenerPart[] = [
    { name: 'ops', listener: newOpsListener({ ...context, emit }), address: config.ops },
  ]
  if (roles.has('api'))
    listeners.push({ name: 'api', listener: composeApi(context, delivery), address: config.api })
  if (roles.has('links') && baseUrl !== null) {
    listeners.push({
      name: 'links',
      listener: newLinksListener({ store, ring, baseUrl, emit, isProxy }),
      address: config.links,
    })
  }
  if (roles.has('hooks') && config.hooks !== null)
    listeners.push({ name: 'hooks', listener: composeHooks(context, delivery), address: config.hooks })
  if (config.feedback !== null) {
    const { address, keys } = config.feedback
    const { isStopping } = context
    const seal: FeedbackDeps['sealRecipient'] = recipientSealer(ring)
    const deps = { store, emit, keys, isProxy, isStopping, sealRecipient: seal }
    listeners.push({ name: 'feedback', listener: newFeedbackListener(deps), address })
  }
  const { console: address, consoleUrl } = config
  if (roles.has('console') && address !== null && consoleUrl !== null)
    listeners.push({ name: 'console', listener: composeConsole(context, delivery, consoleUrl), address })
  return listeners
}

function composeConsole(
  { config, events, hints, isProxy, store, version }: ServiceContext,
  delivery: Delivery | null,
  consoleUrl: string,
): FastifyInstance {
  const captured = delivery?.captured ?? null
  const { consoleIsLocal, isDev, oidc } = config
  return newConsoleListener({
    management: composeManagement(config, {
      store,
      version,
      emit: events.emit,
      onQueued: () => delivery?.wake(),
    }),
    events,
    address: { url: consoleUrl, isLocal: consoleIsLocal },
    // Behind a proxy, the process does not know its public address.
    apiUrl:
      isDev || isLoopback(config.api.host) ? `http://127.0.0.1:${config.api.port}` : 'https://YOUR-POSTERN',
    oidc,
    inbox: captured === null ? null : { captured, hints },
    isDev,
    isProxy,
  })
}

const composeApi = (context: ServiceContext, delivery: Delivery | null): FastifyInstance =>
  newApiListener(composeIntake(context, delivery))

function composeHooks(context: ServiceContext, delivery: Delivery | null): FastifyInstance {
  const { hooksUrl, ring } = context.config
  const basePath = new URL(hooksUrl ?? 'http://localhost').pathname.replace(/\/+$/, '')
  return newHooksListener({ ...composeIntake(context, delivery), store: context.store, ring, basePath })
}

function composeIntake(context: ServiceContext, delivery: Delivery | null): PostEmailDeps & ListenerDeps {
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
