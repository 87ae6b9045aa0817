/** A whole service for a test, with its own real database and real listeners on free ports. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { newRelay } from '../../src/compose/relays.ts'
import { type Service, startService } from '../../src/compose/service.ts'
import type { Config } from '../../src/config/parse-config.ts'
import type { RelayConfig } from '../../src/config/relays.ts'
import type { Relay } from '../../src/delivery/relay/relay.ts'
import type { SmtpAddress } from '../../src/delivery/relay/smtp/connect.ts'
import type { App } from '../../src/domain/app/app.ts'
import { hashDeliveryKey, newDeliveryKey } from '../../src/domain/app/delivery-key.ts'
import { withAddressDomains } from '../../src/domain/app/sender-domains.ts'
import { type AppSettings, defaultSettings } from '../../src/domain/app/settings.ts'
import type { AppId, KeyId } from '../../src/domain/id.ts'
import type { KeyRing } from '../../src/store/crypto/key-ring.ts'
import { type ClockOffset, moveClock, newClockOffset } from '../../src/store/shared/clock.ts'
import { testDatabase } from './database.ts'
import { assertDescribed } from './openapi.ts'
import { operator } from './operator.ts'
import { atEnd, type Scope } from './temporary.ts'

export const newRing = (id = 'test'): KeyRing => [{ id, secret: randomBytes(32) }]

export const testSettings: AppSettings = {
  ...defaultSettings,
  name: 'Acme',
  from: { name: 'Acme', address: 'auth@acme.test' },
  senderDomains: ['acme.test'],
  allowedUrls: ['https://app.acme.test'],
  appSchemes: ['acme'],
  limits: { keyPerMinute: 100_000, recipientPerHour: 10, daily: 1_000_000 },
}

export type TestOptions = Partial<
  Pick<
    Config,
    | 'linksBaseUrl'
    | 'relays'
    | 'queueMax'
    | 'ring'
    | 'database'
    | 'isDev'
    | 'oidc'
    | 'bounceAddress'
    | 'dnsServers'
    | 'bounce'
    | 'reports'
    | 'submission'
    | 'submissions'
    | 'allowsPrivateTransports'
    | 'allowsPrivateWebhooks'
    | 'alerts'
    | 'consoleUrl'
    | 'consoleIsLocal'
  >
> & {
  settings?: Partial<AppSettings>
  /** The name of its app, on a database that has "acme" already. */
  slug?: string
  roles?: Config['roles']
  /** Whether auth servers can post. */
  authHooks?: boolean
  consolePort?: number
  /** Which clients may be a reverse proxy: all of this machine, unless a test has them be strangers. */
  isProxy?: (address: string) => boolean
  /** The store's clock at the start, in milliseconds since 1970 UTC. */
  nowMs?: number
}

export type Answer = {
  status: number
  headers: Headers
  body: { ok: boolean; error: { code: string; message: string; requestId: string; issues?: Issue[] } }
}
type Issue = { field: string; code: string; message: string }

export type TestService = Service & {
  readonly app: App
  readonly key: string
  readonly keyId: KeyId
  readonly clock: ClockOffset
  readonly config: Config
  /** The lines of the log. */
  readonly log: string[]
  readonly apiUrl: string
  advance(byMs: number): void
  post(body?: unknown, headers?: Record<string, string>): Promise<Answer>
}

const anyPort = { host: '127.0.0.1', port: 0 }

async function testConfig(scope: Scope, options: TestOptions = {}): Promise<Config> {
  return {
    allowsPrivateWebhooks: options.allowsPrivateWebhooks ?? true,
    database: options.database ?? (await testDatabase(scope)),
    alerts: options.alerts ?? null,
    databaseSession: null,
    ring: options.ring ?? newRing(),
    relays: options.relays ?? [],
    relayDefaults: { connectionsMax: 5, rate: null, greetingName: null },
    allowsPrivateTransports: options.allowsPrivateTransports ?? true,
    roles:
      options.roles ?? new Set(['api', 'links', 'worker', 'console', 'reports', 'auth-hooks', 'submission'] as const),
    api: anyPort,
    links: anyPort,
    linksBaseUrl: options.linksBaseUrl ?? null,
    authHooks: options.authHooks === true ? anyPort : null,
    authHooksUrl: null,
    apiUrl: null,
    ops: anyPort,
    console: { ...anyPort, port: options.consolePort ?? 0 },
    consoleUrl: options.consoleUrl ?? 'http://postern.localhost',
    consoleIsLocal: options.consoleIsLocal ?? true,
    oidc: options.oidc ?? null,
    // Nothing answers there: no test asks the Internet.
    dnsServers: options.dnsServers ?? ['127.0.0.1:1'],
    isDev: options.isDev ?? true,
    queueMax: options.queueMax ?? 1_000_000,
    bounceAddress: options.bounceAddress ?? null,
    bounce: options.bounce ?? null,
    reports: options.reports ?? null,
    submission: options.submission ?? null,
    submissions: options.submissions ?? null,
    submissionUrl: null,
    logLevel: 'debug',
  }
}

export const smtpTo = (port: number, more: Partial<SmtpAddress> = {}): SmtpAddress => ({
  protocol: 'smtp',
  host: '127.0.0.1',
  port,
  tls: 'none',
  credentials: null,
  greetingName: null,
  keepsSender: false,
  returnsLate: false,
  service: null,
  ...more,
})

export const relayTo = (port: number, more: Partial<SmtpAddress> = {}): RelayConfig => ({
  name: `127.0.0.1:${port}`,
  address: smtpTo(port, more),
  connectionsMax: 5,
  rate: null,
  takesReserved: true,
})

/** A relay by itself, which tells nobody of its changes. */
export const newTestRelay = (config: RelayConfig): Relay =>
  newRelay(config, { random: Math.random, onChange: () => {} })

/** The refused requests of an app, newest first. */
export const refusalsOf = async ({ listRefusals }: Pick<Service['store'], 'listRefusals'>, app: AppId) =>
  (await listRefusals({ apps: [app], limit: 500 })).items

/** A body that is accepted. */
export const validBody = (change: Record<string, unknown> = {}, nowMs = Date.now()): Record<string, unknown> => ({
  to: 'ada@example.com',
  type: 'magic_link',
  url: 'https://app.acme.test/auth?token=abc',
  expiresAt: new Date(nowMs + 900_000).toISOString(),
  ...change,
})

export async function startTestService(scope: Scope, options: TestOptions = {}): Promise<TestService> {
  const config = await testConfig(scope, options)
  const clock = newClockOffset()
  if (options.nowMs !== undefined) moveClock(clock, options.nowMs - Date.now())
  const log: string[] = []
  const sink = pino({ level: 'debug', base: null }, { write: (line: string) => void log.push(line) })
  const onFatal = (error: Error) => {
    throw error
  }
  const service = await startService(config, {
    ...{ onFatal, version: 'test', clock, log: sink },
    ...(options.isProxy !== undefined && { isProxy: options.isProxy }),
  })
  let ended: Promise<void> | null = null
  const stop: Service['stop'] = (stopOptions) => {
    ended ??= service.stop(stopOptions)
    return ended
  }
  atEnd(scope, () => stop())
  const { app, key, keyId } = await newSender(service, options.slug ?? 'acme', { ...testSettings, ...options.settings })
  const apiUrl = `${service.urls.api}/v1/email`
  const post = (body: unknown = validBody(), headers: Record<string, string> = {}): Promise<Answer> => {
    const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
    return send(apiUrl, bytes, { authorization: `Bearer ${key}`, ...headers })
  }
  return {
    ...service,
    stop,
    app,
    key,
    keyId,
    clock,
    config,
    log,
    apiUrl,
    post,
    advance: (byMs) => moveClock(clock, byMs),
  }
}

/** Posts JSON and validates the answer against OpenAPI. A header given as '' is left out. */
export async function send(url: string, body: string | Uint8Array, headers: Record<string, string>): Promise<Answer> {
  const all = { 'content-type': 'application/json', ...headers }
  const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
  const response = await fetch(url, { method: 'POST', headers: present, body: Buffer.from(body) })
  const answer = {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Answer['body'],
  }
  assertDescribed(answer.status, answer.headers, answer.body)
  return answer
}

/** An app with a key of its own. */
export async function newSender(service: Pick<Service, 'store'>, slug: string, settings: AppSettings = testSettings) {
  const senderDomains = withAddressDomains(settings)
  const app = await service.store.createApp(slug, { ...settings, senderDomains }, operator)
  if (app === null) throw new Error(`the slug ${slug} is taken`)
  const key = newDeliveryKey()
  const made = await service.store.createKey(
    {
      app: app.id,
      hash: hashDeliveryKey(key),
      name: null,
      expiresAt: null,
    },
    operator,
  )
  if (made === null || typeof made === 'string') throw new Error('the key was not made')
  return { app, key, keyId: made.id }
}
