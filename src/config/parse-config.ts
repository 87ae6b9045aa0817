/**
 * Turns the environment, which `main.ts` passes, into a checked configuration, or reports every fault at
 * once, each with what to do.
 */
import type { KeyRing } from '../store/crypto/key-ring.ts'
import type { OidcSettings } from '../web/operators/sign-in/oidc.ts'
import { type AlertsConfig, readAlerts } from './alerts.ts'
import { type DatabaseConfig, readDatabase } from './database.ts'
import { readDnsServers } from './dns.ts'
import { findValueFault } from './env-file.ts'
import { readGreetingName } from './greeting.ts'
import { findSharedPorts, type ListenersConfig, listOpened, readListeners } from './listeners.ts'
import { readOidc } from './oidc.ts'
import { type Environment, newReader, type Reader, readWhole } from './reader.ts'
import { type RelayConfig, type RelayDefaults, readRelayDefaults, readRelays } from './relays.ts'
import { type ReportsConfig, readReports } from './reports.ts'
import { readSecretKeys } from './secrets.ts'
import { logLevels, type Mode, roles, type SettingName, settingNames } from './settings.ts'
import { readSubmission, type SubmissionConfig } from './submission.ts'

type Role = (typeof roles)[number]
type LogLevel = (typeof logLevels)[number]

export type Config = DatabaseConfig &
  ListenersConfig &
  ReportsConfig &
  SubmissionConfig & {
    readonly ring: KeyRing
    /** Dev mode: nobody signs in to the console. */
    readonly isDev: boolean
    /** The resolvers of domain checks and webhooks; null for those of the machine and the zones. */
    readonly dnsServers: readonly string[] | null
    /** Empty in dev mode, unless relays are set. */
    readonly relays: readonly RelayConfig[]
    /** For relays whose URL says nothing else. */
    readonly relayDefaults: RelayDefaults
    /** Whether relays of transports may be in the private network. */
    readonly allowsPrivateTransports: boolean
    readonly roles: ReadonlySet<Role>
    readonly queueMax: number
    /** Null unless people sign in to the console by an OpenID provider. */
    readonly oidc: OidcSettings | null
    readonly logLevel: LogLevel
    /** Whether webhooks may go into the private network, also by http. */
    readonly allowsPrivateWebhooks: boolean
    /** Null if no alerts are sent. */
    readonly alerts: AlertsConfig | null
  }

/** The configuration is incomplete or unsafe. `faults` has a line for each reason. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    const count = faults.length === 1 ? 'an error' : `${faults.length} errors`
    super(`the configuration has ${count}:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

/** Throws `ConfigError`, whose text never repeats a secret. */
export function parseConfig(env: Environment, mode: Mode): Config {
  const faults: string[] = []
  for (const name of settingNames) {
    const why = findValueFault(env[name] ?? '')
    if (why !== null) faults.push(`${name} ${why}`)
  }
  const reader = newReader(env, mode, faults)
  const serviceRoles = readRoles(reader)
  const database = readDatabase(reader)
  const ring = readSecretKeys(reader)
  const listeners = readListeners(reader)
  const reports = readReports(reader, { listens: serviceRoles.has('reports') })
  const greetingName = readGreetingName(reader, { ...listeners, ...reports })
  const relayDefaults = readRelayDefaults(reader, greetingName)
  const config = {
    ...database,
    isDev: mode === 'dev',
    relays:
      mode === 'command'
        ? readKnownRelays(env, relayDefaults)
        : readRelays(reader, relayDefaults, { sends: serviceRoles.has('worker') }),
    relayDefaults,
    allowsPrivateTransports: readYes(reader, 'POSTERN_TRANSPORTS_PRIVATE'),
    dnsServers: readDnsServers(reader),
    roles: serviceRoles,
    ...listeners,
    ...reports,
    ...readSubmission(reader, { listens: serviceRoles.has('submission') }),
    oidc: readOidc(reader),
    queueMax: readWhole(reader, 'POSTERN_QUEUE_MAX'),
    logLevel: readLogLevel(reader),
    allowsPrivateWebhooks: readYes(reader, 'POSTERN_APP_WEBHOOKS_PRIVATE'),
    alerts: readAlerts(reader),
  }
  if (mode !== 'command') faults.push(...findSharedPorts(listOpened(config)))
  if (ring === null || faults.length > 0) throw new ConfigError(faults)
  return { ...config, ring }
}

/** A command sends nothing, but may describe the relays: a fault in them does not stop it. */
function readKnownRelays(env: Environment, defaults: RelayDefaults): RelayConfig[] {
  const faults: string[] = []
  const relays = readRelays(newReader(env, 'command', faults), defaults, { sends: false })
  return faults.length === 0 ? relays : []
}

function readRoles({ fault, text }: Reader): ReadonlySet<Role> {
  const names = text('POSTERN_ROLES').split(/[\s,]+/)
  const unknown = names.find((name) => !roles.some((role) => role === name))
  if (unknown !== undefined) fault(`POSTERN_ROLES: unknown role "${unknown}"; the roles are ${roles.join(', ')}`)
  // All roles if one is mistyped, so that the faults of every role are reported.
  return new Set(unknown === undefined ? (names as Role[]) : roles)
}

function readYes({ fault, text }: Reader, name: SettingName): boolean {
  const value = text(name)
  if (value !== 'yes' && value !== 'no') fault(`${name} must be yes or no`)
  return value === 'yes'
}

function readLogLevel({ fault, text }: Reader): LogLevel {
  const value = text('POSTERN_LOG_LEVEL')
  const level = logLevels.find((name) => name === value)
  if (level === undefined) fault(`POSTERN_LOG_LEVEL must be one of ${logLevels.join(', ')}`)
  return level ?? 'info'
}
