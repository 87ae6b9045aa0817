/**
 * The composition root: configuration in, a running service out. One function per role; what they
 * share (store, metrics, log) is made once. Everything that was started is stopped by `stop`, in
 * the order that loses nothing: unready, no new requests, no new claims, the rest, the store.
 */
import { statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { type Logger, pino } from 'pino'
import type { RunningService } from '../cli/context.ts'
import type { Config } from '../config/parse-config.ts'
import { startMaintenance } from '../delivery/maintenance.ts'
import { CaptureRelay } from '../delivery/relay/capture-relay.ts'
import type { Relay } from '../delivery/relay/relay.ts'
import { SmtpRelay } from '../delivery/relay/smtp/smtp-relay.ts'
import { Worker } from '../delivery/worker/worker.ts'
import { AppPolicyCache } from '../intake/accept-email.ts'
import { type Metrics, newMetrics } from '../observe/metrics.ts'
import { sealLink } from '../store/crypto/sealed-link.ts'
import { openPostgresStore } from '../store/postgres/postgres-store.ts'
import type { ClockOffset } from '../store/shared/clock.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Store } from '../store/store.ts'
import { newApiListener } from '../web/api/api-listener.ts'
import { type ListenAddress, listen } from '../web/http/listener.ts'
import { newInboxListener } from '../web/inbox/inbox-listener.ts'
import { newLinksListener } from '../web/links/links-listener.ts'
import { newOpsListener } from '../web/ops/ops-listener.ts'

export type Service = RunningService

export type ServiceOptions = {
  /** The store is ruined: end the process without another write. */
  readonly onFatal: (error: Error) => void
  readonly random?: () => number
  readonly clock?: ClockOffset
  readonly log?: Logger
}

const newLog = (level: string): Logger =>
  pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  })

/** Opens the configured store, migrating it where needed. */
export const openStore = (
  config: Config,
  options: Pick<ServiceOptions, 'onFatal' | 'clock'>,
): Promise<Store> =>
  config.database.engine === 'sqlite'
    ? openSqliteStore({ ...common(config, options), path: config.database.path, onFatal: options.onFatal })
    : openPostgresStore({
        ...common(config, options),
        address: config.database,
        ...(config.databaseListen === null ? {} : { listenAt: config.databaseListen }),
      })

const common = ({ ring, queueMax }: Config, { clock }: Pick<ServiceOptions, 'clock'>) => ({
  ring,
  queueMax,
  ...(clock === undefined ? {} : { clock }),
})

/** Another user's WAL file would stop the service, so the command line runs as the file's owner. */
class OwnerMismatch extends Error {
  override name = 'OwnerMismatch'
}

/** The store for a command beside the service. */
export async function openOwnStore(config: Config, options: Pick<ServiceOptions, 'onFatal'>): Promise<Store> {
  if (config.database.engine !== 'sqlite') return openStore(config, options)
  const owner = statSync(config.database.path, { throwIfNoEntry: false })?.uid
  const user = process.getuid?.()
  if (owner !== undefined && user !== undefined && owner !== user) {
    throw new OwnerMismatch(
      `the database belongs to user ${owner} and this is user ${user}: run the command as its owner`,
    )
  }
  return openStore(config, options)
}

const stopGraceMs = 20_000

type Shared = {
  readonly config: Config
  readonly store: Store
  readonly log: Logger
  readonly metrics: Metrics
  readonly random: () => number
  readonly isStopping: () => boolean
  readonly onBug: (error: Error) => void
}

export async function startService(config: Config, options: ServiceOptions): Promise<Service> {
  const log = options.log ?? newLog(config.logLevel)
  const store = await openStore(config, options)
  const state = { ready: true, stopping: false }
  const shared: Shared = {
    config,
    store,
    log,
    metrics: newMetrics(store.queueGauge, store.now),
    random: options.random ?? Math.random,
    isStopping: () => state.stopping,
    onBug: (error) => log.error({ err: error }, 'a bug'),
  }
  const delivery = config.roles.has('worker') ? composeDelivery(shared) : null
  const listeners: FastifyInstance[] = []
  const start = async (app: FastifyInstance, address: ListenAddress) => {
    listeners.push(app)
    return listen(app, address)
  }
  const stop: Service['stop'] = async ({ drainMs = 0, graceMs = stopGraceMs } = {}) => {
    state.ready = false
    if (drainMs > 0) await sleep(drainMs)
    state.stopping = true
    const [ops, ...rest] = listeners
    await Promise.all(rest.map((app) => app.close()))
    await delivery?.stop(graceMs)
    await ops?.close()
    await store.close()
  }
  try {
    const opsListener = newOpsListener({
      ...shared,
      queueGauge: store.queueGauge,
      isReady: () => state.ready,
    })
    const ops = await start(opsListener, config.ops)
    const api = config.roles.has('api') ? await start(composeApi(shared, delivery), config.api) : undefined
    const links = hasLinks(config) ? await start(composeLinks(shared), config.links) : undefined
    const inbox =
      config.console === null || delivery?.captured === undefined
        ? undefined
        : await start(newInboxListener({ ...shared, captured: delivery.captured }), config.console)
    delivery?.worker.start()
    return {
      urls: { ops, ...(api && { api }), ...(links && { links }), ...(inbox && { console: inbox }) },
      store,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

const hasLinks = (config: Config): boolean => config.roles.has('links') && config.linksBaseUrl !== null

type Delivery = {
  worker: Worker
  captured: CaptureRelay | undefined
  stop: (graceMs: number) => Promise<void>
}

function composeApi(shared: Shared, delivery: Delivery | null): FastifyInstance {
  return newApiListener({
    ...shared,
    senders: new AppPolicyCache(),
    links: {
      baseUrl: shared.config.linksBaseUrl,
      seal: (appId, target) => sealLink(shared.config.ring, appId, target),
    },
    onQueued: () => delivery?.worker.wake(),
    onUnavailable: (error) => shared.log.warn({ err: error }, 'an email was not queued'),
    onAnswer: shared.metrics.answered,
  })
}

function composeLinks(shared: Shared): FastifyInstance {
  const onUnavailable = (error: Error) => shared.log.warn({ err: error }, 'a hosted link was not opened')
  return newLinksListener({ ...shared, ring: shared.config.ring, onUnavailable })
}

function composeDelivery(shared: Shared): Delivery {
  const { config, store, log, metrics, random } = shared
  const captured = config.relays.length === 0 ? new CaptureRelay() : undefined
  const relays: Relay[] =
    captured === undefined ? config.relays.map((relay) => newSmtpRelay(shared, relay)) : [captured]
  const onTrouble = (message: string, error?: unknown) =>
    log.error(error === undefined ? {} : { err: error }, message)
  const worker = new Worker({
    store,
    relays,
    random,
    onTrouble,
    onOutcome: ({ claim, outcome, sinceAcceptedMs }) => {
      metrics.attempted(outcome.kind)
      if (outcome.kind === 'delivered') metrics.delivered(sinceAcceptedMs)
      const level = outcome.kind === 'delivered' ? 'debug' : 'info'
      log[level](
        { email: claim.emailId, app: claim.appId, type: claim.type, attempt: claim.attempt, ...outcome },
        outcome.kind,
      )
    },
  })
  store.onQueued(() => worker.wake())
  const stopSweeper = startMaintenance(store, onTrouble)
  return {
    worker,
    captured,
    stop: async (graceMs) => {
      stopSweeper()
      await worker.stop(graceMs)
    },
  }
}

function newSmtpRelay({ log, metrics, random }: Shared, relay: Config['relays'][number]): SmtpRelay {
  return new SmtpRelay({
    ...relay,
    random,
    onChange: ({ relay: name, available, reason }) => {
      metrics.relayAvailable(name, available)
      if (available) log.warn({ relay: name }, 'the relay is available again')
      else log.error({ relay: name, reason }, 'the relay is unavailable; mail is held until it answers')
    },
  })
}
