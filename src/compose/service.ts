/**
 * The composition root: configuration in, a running service out. The service is an ordered list of
 * parts, which start in this order and stop in the reverse order. Stopping reports not ready, refuses
 * requests, stops the worker and closes the store.
 */
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { listenerSettings, type Opened } from '../config/listeners.ts'
import { type Config, ConfigError } from '../config/parse-config.ts'
import type { Relay } from '../delivery/relay/relay.ts'
import { isPrivateNetwork } from '../domain/client-network.ts'
import { newId } from '../domain/id.ts'
import { EventStream } from '../observe/events.ts'
import { LineOutput } from '../observe/line-output.ts'
import { logEvents, newLog } from '../observe/log.ts'
import { type Metrics, newMetrics } from '../observe/metrics.ts'
import { Queueing } from '../observe/queueing.ts'
import { ofRealMail } from '../observe/real-mail.ts'
import { Recorder } from '../observe/recorder.ts'
import { BounceListener } from '../reports/bounce-listener.ts'
import type { SmtpAddress } from '../smtp/smtp-listener.ts'
import { resealAuthHookSecrets } from '../store/crypto/auth-hook-secret.ts'
import { resealTransports } from '../store/crypto/sealed-transport.ts'
import { resealSigningKeys } from '../store/crypto/signing-key.ts'
import { recipientSealer, resealReceivers } from '../store/crypto/webhook-secret.ts'
import type { OnGroup } from '../store/shared/grouped-calls.ts'
import type { Store } from '../store/store.ts'
import { SubmissionListener } from '../web/auth-hooks/submission-listener.ts'
import { close, describeListenFault, listen } from '../web/http/listener.ts'
import { composeAlerter } from './alerts.ts'
import { checkListeners } from './check-listeners.ts'
import type { Hints, ServiceContext } from './context.ts'
import { composeDelivery, type Delivery } from './delivery.ts'
import { openStore, type StoreOptions } from './store.ts'
import { composeIntake, composeListeners, type ListenerPart, type MailListener } from './web.ts'
import { composeWebhookSender, composeWebhookWriter } from './webhooks.ts'

export type ServiceOptions = StoreOptions & {
  readonly version: string
  readonly random?: () => number
  readonly log?: Logger
  /** Where the log goes unless there is a `log`; standard output unless given. */
  readonly output?: LineOutput
  /** Which addresses may be a reverse proxy's; those of private networks unless given. */
  readonly isProxy?: ServiceContext['isProxy']
  /** Composes the listeners; those of HTTP unless given. */
  readonly listeners?: typeof composeListeners
}

type StopOptions = {
  /** How long requests are still answered after the service says that it is not ready. */
  readonly drainMs?: number
  /** How long attempts in progress may take to end. */
  readonly graceMs?: number
}

export type Service = {
  /** The base URLs of the listeners. */
  readonly urls: { readonly ops: string } & Urls
  readonly hints: Hints
  readonly store: Store
  readonly events: EventStream
  stop(options?: StopOptions): Promise<void>
}

const usualGraceMs = 20_000
/** With the time to abort, all parts have stopped within 40 s (docs/configuration.md). */
const listenersGraceMs = 10_000
const webhooksGraceMs = 2000

/** `inbox`: the console has the dev inbox. */
type Urls = { readonly [Name in Opened['name'] | 'inbox']?: string }

/** One part of the service. `stop` is called only after `start` was called. */
type Part = { readonly start: () => Promise<void> | void; readonly stop: (graceMs: number) => Promise<void> }

export async function startService(config: Config, options: ServiceOptions): Promise<Service> {
  const events = new EventStream()
  const onGroup: OnGroup = (group) => events.emit({ kind: 'group_written', ...group })
  const store = await openStore(config, { ...options, onGroup })
  const state = { ready: false, stopping: false }
  const output = options.output ?? new LineOutput(1)
  const linesLost = () => output.lost
  const metrics = subscribeObservers(config, options, { events, output, store })
  const queueing = new Queueing()
  events.subscribe(queueing.observe)
  const context: ServiceContext = {
    linesLost,
    queueing,
    config,
    store,
    events,
    metrics,
    webhooks: composeWebhookWriter({ config, events, store }),
    random: options.random ?? Math.random,
    hints: { curl: null },
    version: options.version,
    isReady: () => state.ready,
    isStopping: () => state.stopping,
    isProxy: options.isProxy ?? isPrivateNetwork,
  }
  const urls: { -readonly [Name in keyof Urls]: string } = {}
  const started: Part[] = []
  const stop = async ({ drainMs = 0, graceMs = usualGraceMs }: StopOptions = {}) => {
    state.ready = false
    if (drainMs > 0) await sleep(drainMs) // balancers notice `/readyz` only after a while
    state.stopping = true
    for (const part of started.toReversed()) {
      await part.stop(graceMs).catch((error) => events.emit({ kind: 'bug', doing: 'stopping', error }))
    }
    await store.close()
  }
  try {
    const parts = listParts(context, urls, options.listeners ?? composeListeners)
    output.subscribe((reason) => events.emit({ kind: 'log_changed', reason, lost: output.lost }))
    for (const { domain, selector } of await resealSigningKeys(config.ring, store))
      events.emit({ kind: 'signing_key_closed', domain, selector })
    await resealTransports(config.ring, store) // those that it cannot open are reported where they are used
    for (const { id } of await resealAuthHookSecrets(config.ring, store))
      events.emit({ kind: 'auth_hook_secret_closed', keyId: id })
    for (const { app } of await resealReceivers(config.ring, store))
      events.emit({ kind: 'webhook_secret_closed', appId: app })
    for (const part of parts) {
      started.push(part)
      await part.start()
    }
    state.ready = true
  } catch (error) {
    await stop()
    if (!(error instanceof ListenFault)) throw error
    const faults = (await checkListeners(config, false)).filter(({ ok }) => !ok).map(({ detail }) => detail)
    throw new ConfigError(faults.length > 0 ? faults : [error.message])
  }
  return { urls: urls as Service['urls'], hints: context.hints, store, events, stop }
}

/** Log and metrics see every event from here on. */
function subscribeObservers(
  { database, logLevel, queueMax }: Config,
  { log, version }: ServiceOptions,
  { events, output, store }: { readonly events: EventStream; readonly output: LineOutput; readonly store: Store },
): Metrics {
  const { engine } = database
  const metrics = newMetrics({ store, engine, queueMax, version, linesLost: () => output.lost })
  // One machine needs no name; lines of several are read together.
  const base = engine === 'postgres' ? { machine: hostname() } : null
  events.subscribe(logEvents(log ?? newLog(logLevel, base, output)))
  events.subscribe((event) => {
    const real = ofRealMail(event)
    if (real !== null) metrics.observe(real)
  })
  return metrics
}

/**
 * The ops listener starts first and stops last, so `/livez` answers throughout. The recorder and the sender
 * of webhooks stop after the worker, whose last outcomes concern them. The other listeners stop together,
 * before the worker, so that slow clients of several cannot use up the time to stop.
 */
function listParts(
  context: ServiceContext,
  urls: { -readonly [Name in keyof Urls]: string },
  listeners: typeof composeListeners,
): Part[] {
  const isWorker = context.config.roles.has('worker')
  const delivery = isWorker ? composeDelivery(context) : null
  const sender = isWorker ? composeWebhookSender(context) : null
  const webhooks: Part = {
    start: () => sender?.start(),
    stop: async (graceMs) => {
      await context.webhooks.whenIdle()
      await sender?.stop(Math.min(graceMs, webhooksGraceMs))
    },
  }
  const [ops, ...others] = listeners(context, delivery).map(
    ({ name, listener, address }): Part => ({
      start: async () => {
        const url = await listenAs(name, address, () => listen(listener, address))
        urls[name] = url
        if (name === 'console' && delivery?.captured) urls.inbox = url
      },
      stop: (graceMs) => close(listener, Math.min(graceMs, listenersGraceMs)),
    }),
  )
  const recorder = composeRecorder(context, delivery?.relays ?? (() => []))
  const listenerParts = groupParts([...others, ...composeMailListeners(context, delivery, urls)])
  return [ops, recorder, webhooks, delivery, listenerParts, composeAlerter(context)].filter(
    (part): part is Part => part != null,
  )
}

/** Those that speak SMTP. */
function composeMailListeners(
  context: ServiceContext,
  delivery: Delivery | null,
  urls: { -readonly [Name in MailListener]?: string },
): Part[] {
  const { config, events, isProxy, store } = context
  const { bounce, bounceAddress, ring } = config
  const toPart = (
    name: MailListener,
    options: SmtpAddress | null,
    create: (options: SmtpAddress) => { listen: () => Promise<string>; close: () => Promise<void> },
  ): Part[] => {
    if (options === null) return []
    const listener = create(options)
    return [
      {
        start: async () => {
          urls[name] = await listenAs(name, options.address, () => listener.listen())
        },
        stop: () => listener.close(),
      },
    ]
  }
  const bounceDeps = { store, emit: events.emit, sealRecipient: recipientSealer(ring) }
  const submit = (isImplicit: boolean) => (options: SmtpAddress) =>
    new SubmissionListener({ ...composeIntake(context, delivery), store, ring }, { ...options, isImplicit, isProxy })
  return [
    ...toPart('bounce', bounce, (options) => new BounceListener(bounceDeps, { ...options, bounceAddress, isProxy })),
    ...toPart('submission', config.submission, submit(false)),
    ...toPart('submissions', config.submissions, submit(true)),
  ]
}

/** This process cannot have a port; it may lack others as well. */
class ListenFault extends Error {}

/** @throws {ListenFault} when this process cannot have the port */
async function listenAs(
  name: Opened['name'],
  address: ListenerPart['address'],
  begin: () => Promise<string>,
): Promise<string> {
  try {
    return await begin()
  } catch (error) {
    const fault = describeListenFault(address, error)
    if (fault === null) throw error
    throw new ListenFault(`${listenerSettings[name]}: ${fault}`)
  }
}

const composeRecorder = (
  { config, events, linesLost, queueing, store, version }: ServiceContext,
  relays: () => readonly Relay[],
): Recorder =>
  new Recorder({
    store,
    linesLost,
    queueing,
    events,
    relays,
    node: {
      id: newId('node', store.now()),
      machine: hostname(),
      version,
      roles: [...config.roles],
      startedAt: store.now(),
    },
  })

/** One part of several that start one after another and stop at once. */
function groupParts(parts: readonly Part[]): Part {
  return {
    start: async () => {
      for (const part of parts) await part.start()
    },
    stop: async (graceMs) => {
      await Promise.all(parts.map((part) => part.stop(graceMs)))
    },
  }
}
