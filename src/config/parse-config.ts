/**
 * The one reader of the environment: `parseConfig` turns it into a checked configuration, or names
 * every fault at once, each with what to do. Nothing else in Postern looks at a variable.
 */
import { readFileSync, statSync } from 'node:fs'
import type { RelayAddress } from '../delivery/relay/smtp/smtp-session.ts'
import { isLinksBaseUrl } from '../domain/app/hosted-link.ts'
import { type KeyRing, parseKeyRing } from '../store/crypto/key-ring.ts'
import type { DatabaseAddress, PostgresAddress } from '../store/database-address.ts'
import type { ListenAddress } from '../web/http/listener.ts'
import { parseDatabaseUrl } from './database-url.ts'

type Role = 'api' | 'links' | 'worker'
type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export type RelayConfig = {
  readonly address: RelayAddress
  readonly connectionsMax: number
  readonly rate: number | null
}

export type Config = {
  readonly database: DatabaseAddress
  /** Where NOTIFY is listened for, where that is not `database`. */
  readonly databaseListen: PostgresAddress | null
  readonly ring: KeyRing
  /** Empty in dev mode: emails are kept for the inbox. */
  readonly relays: readonly RelayConfig[]
  readonly roles: ReadonlySet<Role>
  readonly api: ListenAddress
  readonly links: ListenAddress
  /** Where hosted links lead, without a slash at the end; null where there are none. */
  readonly linksBaseUrl: string | null
  readonly ops: ListenAddress
  /** Dev mode only. */
  readonly console: ListenAddress | null
  readonly queueMax: number
  readonly logLevel: LogLevel
}

/** `serve` wants everything said; `dev` and the commands fall back on what dev mode makes in ./data. */
export type Mode = 'serve' | 'dev' | 'command'

export type Environment = Readonly<Record<string, string | undefined>>

export const dataFolder = './data'
export const devSecretKeysFile = `${dataFolder}/secret-keys`

/** The configuration is incomplete or unsafe; `faults` has a line for each reason. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(
      `the configuration has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    )
    this.faults = faults
  }
}

/** Throws `ConfigError`, which never repeats a secret. */
export function parseConfig(env: Environment, mode: Mode): Config {
  const faults: string[] = []
  const read: Reader = {
    fault: (text) => void faults.push(text),
    text: (name, fallback) => {
      const value = env[name]?.trim()
      if (value !== undefined && value !== '') return value
      if (fallback === null) faults.push(`${name} is missing`)
      return fallback ?? ''
    },
  }
  const roles = parseRoles(read)
  const database = parseDatabase(read, mode)
  const ring = parseSecretKeys(read, mode)
  const config = {
    ...database,
    relays: mode === 'command' || !roles.has('worker') ? [] : parseRelays(read, mode),
    roles,
    api: parseListen(read, 'POSTERN_API_LISTEN', '127.0.0.1:4020'),
    ...parseLinks(read, mode),
    ops: parseListen(read, 'POSTERN_OPS_LISTEN', '127.0.0.1:4023'),
    console: parseConsole(read, mode),
    queueMax: parseWhole(read, 'POSTERN_QUEUE_MAX', 1_000_000),
    logLevel: parseLogLevel(read, mode),
  }
  if (ring === null || faults.length > 0) throw new ConfigError(faults)
  return { ...config, ring }
}

type Reader = {
  readonly fault: (text: string) => void
  /** The trimmed value, or the fallback; null means that there is none and it is required. */
  readonly text: (name: string, fallback: string | null) => string
}

function parseDatabase({ fault, text }: Reader, mode: Mode): Pick<Config, 'database' | 'databaseListen'> {
  const parse = (name: string, fallback: string | null): DatabaseAddress => {
    const parsed = parseDatabaseUrl(text(name, fallback))
    if ('engine' in parsed) return parsed
    if (text(name, '') !== '') fault(`${name}: ${parsed.fault}`)
    return { engine: 'sqlite', path: '' }
  }
  const database = parse('POSTERN_DATABASE_URL', mode === 'serve' ? null : `sqlite:${dataFolder}/postern.db`)
  if (text('POSTERN_DATABASE_LISTEN_URL', '') === '') return { database, databaseListen: null }
  const listen = parse('POSTERN_DATABASE_LISTEN_URL', null)
  if (database.engine !== 'postgres' || listen.engine !== 'postgres') {
    fault('POSTERN_DATABASE_LISTEN_URL: both it and POSTERN_DATABASE_URL must be postgres:// URLs')
    return { database, databaseListen: null }
  }
  return { database, databaseListen: { ...listen, schema: database.schema } }
}

/** Null where a fault was noted. */
function parseSecretKeys({ fault, text }: Reader, mode: Mode): KeyRing | null {
  const given = text('POSTERN_SECRET_KEYS', mode === 'serve' ? null : `file:${devSecretKeysFile}`)
  if (given === '') return null
  const file = /^file:(.+)$/.exec(given)?.[1]
  const content = file === undefined ? given : readSecretFile(file, fault)
  if (content === null) return null
  const parsed = parseKeyRing(content)
  if ('ring' in parsed) return parsed.ring
  fault(`POSTERN_SECRET_KEYS: ${parsed.fault}; make one with "postern secret new"`)
  return null
}

function readSecretFile(file: string, fault: Reader['fault']): string | null {
  try {
    if ((statSync(file).mode & 0o077) !== 0)
      fault(`POSTERN_SECRET_KEYS: others may read ${file}; run chmod 600 on it`)
    return readFileSync(file, 'utf8')
  } catch {
    fault(
      `POSTERN_SECRET_KEYS: cannot read ${file}; "postern dev" makes one in ${dataFolder}, "postern secret new" prints one`,
    )
    return null
  }
}

function parseRelays(read: Reader, mode: Mode): RelayConfig[] {
  const text = read.text('POSTERN_SMTP_URL', mode === 'serve' ? null : 'capture')
  if (text === '' || (text === 'capture' && mode === 'dev')) return []
  if (text === 'capture') {
    read.fault('POSTERN_SMTP_URL: capture sends nothing; it is for dev mode')
    return []
  }
  const connections = parseWhole(read, 'POSTERN_SMTP_CONNECTIONS', 5)
  const rate = read.text('POSTERN_SMTP_RATE', '') === '' ? null : parseWhole(read, 'POSTERN_SMTP_RATE', 0)
  return text.split(/[\s,]+/).flatMap((entry, index) => {
    const relay = parseRelay(entry, { connections, rate })
    if (typeof relay !== 'string') return [relay]
    read.fault(`POSTERN_SMTP_URL, relay ${index + 1}: ${relay}`)
    return []
  })
}

const loopback = /^(localhost|127(?:\.\d+){3}|\[::1\])$/

/** One relay, or what is wrong with it (never its text: that may hold a password). */
function parseRelay(
  entry: string,
  defaults: { connections: number; rate: number | null },
): RelayConfig | string {
  const url = URL.parse(entry)
  if (url === null || !/^smtps?:$/.test(url.protocol) || url.hostname === '')
    return 'write smtp://user:password@host:587 or smtps://host'
  const query = url.searchParams
  const unknown = [...query.keys()].find((name) => !['connections', 'rate', 'ca', 'tls'].includes(name))
  if (unknown !== undefined) return `unknown option "${unknown}" (connections, rate, tls and ca are known)`
  const local = loopback.test(url.hostname)
  const implicit = url.protocol === 'smtps:'
  const tls = implicit ? 'implicit' : (query.get('tls') ?? (local ? 'none' : 'starttls'))
  if (tls !== 'implicit' && tls !== 'starttls' && tls !== 'none') return 'tls is starttls or none'
  if (tls === 'none' && !local) return 'mail to another machine needs TLS: leave out tls=none'
  const [connections, rate] = [query.get('connections'), query.get('rate')].map((value) =>
    value === null ? null : Number(value),
  )
  if ([connections, rate].some((value) => value != null && !(Number.isInteger(value) && value > 0)))
    return 'connections and rate are whole numbers above 0'
  const ca = readAuthorities(query.get('ca'))
  if (ca === null) return 'cannot read the file named by ca'
  const credentials =
    url.username === ''
      ? null
      : { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) }
  const port = url.port === '' ? (implicit ? 465 : 587) : Number(url.port)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return {
    address: { host, port, tls, credentials, ...(ca === undefined ? {} : { ca }) },
    connectionsMax: connections ?? defaults.connections,
    rate: rate ?? defaults.rate,
  }
}

function readAuthorities(file: string | null): string | undefined | null {
  if (file === null) return undefined
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

function parseRoles({ fault, text }: Reader): ReadonlySet<Role> {
  const names = text('POSTERN_ROLES', 'api,links,worker').split(/[\s,]+/)
  const unknown = names.filter((name) => !['api', 'links', 'worker'].includes(name))
  if (unknown.length > 0)
    fault(`POSTERN_ROLES: unknown role "${unknown[0]}"; the roles are api, links and worker`)
  return new Set(names as Role[])
}

function parseLinks(read: Reader, mode: Mode): Pick<Config, 'links' | 'linksBaseUrl'> {
  const links = parseListen(read, 'POSTERN_LINKS_LISTEN', '127.0.0.1:4021')
  const given = read.text('POSTERN_LINKS_BASE_URL', mode === 'dev' ? `http://127.0.0.1:${links.port}` : '')
  const linksBaseUrl = given.replace(/\/+$/, '')
  const secure =
    mode === 'dev'
      ? isLinksBaseUrl(linksBaseUrl)
      : /^https:/.test(linksBaseUrl) && isLinksBaseUrl(linksBaseUrl)
  if (linksBaseUrl !== '' && !secure) {
    read.fault('POSTERN_LINKS_BASE_URL must be an https URL without query, such as https://links.example.com')
  }
  return { links, linksBaseUrl: linksBaseUrl === '' ? null : linksBaseUrl }
}

function parseListen({ fault, text }: Reader, name: string, fallback: string): ListenAddress {
  const value = text(name, fallback)
  const match = /^(\[[0-9a-f:]+\]|[^:\s]+):(\d{1,5})$/i.exec(value)
  const port = Number(match?.[2])
  if (match === null || port > 65_535) fault(`${name} must look like 127.0.0.1:4020`)
  return { host: (match?.[1] ?? '').replace(/^\[|\]$/g, ''), port }
}

function parseConsole(read: Reader, mode: Mode): ListenAddress | null {
  const given = read.text('POSTERN_CONSOLE_LISTEN', '')
  if (mode === 'serve' && given !== '')
    read.fault('POSTERN_CONSOLE_LISTEN: the console is for dev mode; leave it out')
  if (mode !== 'dev') return null
  const address = parseListen(read, 'POSTERN_CONSOLE_LISTEN', '127.0.0.1:4022')
  if (!loopback.test(address.host) && address.host !== '::1') {
    read.fault('POSTERN_CONSOLE_LISTEN: the inbox shows live links; it listens on loopback only')
  }
  return address
}

function parseWhole({ fault, text }: Reader, name: string, fallback: number): number {
  const value = text(name, String(fallback))
  if (!/^[1-9]\d{0,9}$/.test(value)) fault(`${name} must be a whole number above 0`)
  return Number(value)
}

function parseLogLevel({ fault, text }: Reader, mode: Mode): LogLevel {
  const levels = ['debug', 'info', 'warn', 'error', 'silent']
  const value = text('POSTERN_LOG_LEVEL', mode === 'serve' ? 'info' : 'warn')
  if (!levels.includes(value)) fault(`POSTERN_LOG_LEVEL is one of ${levels.join(', ')}`)
  return value as LogLevel
}
