/** Where Postern listens, and how hosted links reach it. */

import { isLinksBaseUrl } from '../domain/app/hosted-link.ts'
import { bareHost, isLoopback } from '../domain/client-network.ts'
import { formatHostPort, reachOwn } from '../domain/host-port.ts'
import type { ListenAddress } from '../web/http/listener.ts'
import type { Reader } from './reader.ts'
import { defaultOf, type SettingName } from './settings.ts'

export type ListenersConfig = {
  readonly api: ListenAddress
  /** How apps reach the API, without a slash at the end; null if that is not known. */
  readonly apiUrl: string | null
  readonly links: ListenAddress
  /** The base URL of hosted links, without a slash at the end; null if there are none. */
  readonly linksBaseUrl: string | null
  /** Where auth servers post; null for nowhere. */
  readonly authHooks: ListenAddress | null
  /** How auth servers reach it, without a slash at the end; null if that is not known. */
  readonly authHooksUrl: string | null
  readonly ops: ListenAddress
  /** The console and the management API; null for none. */
  readonly console: ListenAddress | null
  /** How browsers reach the console, without a slash at the end; null if there is none. */
  readonly consoleUrl: string | null
  /** Whether pages answer under the names of this machine (localhost) too. */
  readonly consoleIsLocal: boolean
}

/** https, or http on this machine. */
export const isSafeUrl = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))

export function readListeners(reader: Reader): ListenersConfig {
  const links = readAddress(reader, 'POSTERN_LINKS_LISTEN')
  const address = readConsole(reader)
  const api = readAddress(reader, 'POSTERN_API_LISTEN')
  return {
    api,
    apiUrl: readPublicUrl(reader, 'POSTERN_API_URL', reader.mode === 'dev' || isLoopback(api.host) ? api : null),
    links,
    linksBaseUrl: readLinksBaseUrl(reader, links),
    ...readAuthHooks(reader),
    ops: readAddress(reader, 'POSTERN_OPS_LISTEN'),
    console: address,
    ...readConsoleUrl(reader, address),
  }
}

function readAuthHooks(reader: Reader): Pick<ListenersConfig, 'authHooks' | 'authHooksUrl'> {
  const name = 'POSTERN_AUTH_HOOKS_LISTEN'
  const address = reader.text(name) || (isForDev(reader) ? defaultOf(name, 'dev') : '')
  const authHooks = address === '' ? null : readAddress(reader, name, address)
  return { authHooks, authHooksUrl: readPublicUrl(reader, 'POSTERN_AUTH_HOOKS_URL', authHooks) }
}

/**
 * How others reach a listener; it may have a path.
 * @param own the listener, if programs of this machine reach it by itself
 */
function readPublicUrl({ fault, text }: Reader, name: SettingName, own: ListenAddress | null): string | null {
  const given = text(name).replace(/\/+$/, '')
  if (given === '') return own && `http://${formatHostPort(reachOwn(own))}`
  const url = URL.parse(given)
  if (url === null || !/^https?:$/.test(url.protocol) || /[?#@]/.test(given))
    fault(`${name} must be a URL without query, user and password, such as https://postern.example.com`)
  return given
}

/** Where this process listens for auth servers, as the management operations show it; null for nowhere. */
export const describeAuthHooksListener = ({
  authHooks,
  roles,
}: Pick<ListenersConfig, 'authHooks'> & { readonly roles: ReadonlySet<string> }): string | null =>
  authHooks !== null && roles.has('auth-hooks') ? formatHostPort(authHooks) : null

export function readAddress({ fault, text }: Reader, name: SettingName, given = text(name)): ListenAddress {
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+):(\d{1,5})$/i.exec(given)
  const port = Number(match?.[2])
  if (match === null || port > 65_535)
    fault(
      `${name} must look like 127.0.0.1:4020 or [::1]:4020; for all addresses write 0.0.0.0 or [::] before the port`,
    )
  return { host: bareHost(match?.[1] ?? ''), port }
}

/** The setting of each listener, in the order in which a service opens them. */
export const listenerSettings = {
  ops: 'POSTERN_OPS_LISTEN',
  api: 'POSTERN_API_LISTEN',
  links: 'POSTERN_LINKS_LISTEN',
  authHooks: 'POSTERN_AUTH_HOOKS_LISTEN',
  reports: 'POSTERN_REPORTS_LISTEN',
  console: 'POSTERN_CONSOLE_LISTEN',
  bounce: 'POSTERN_BOUNCE_LISTEN',
  submission: 'POSTERN_SUBMISSION_LISTEN',
  submissions: 'POSTERN_SUBMISSION_TLS_LISTEN',
} as const satisfies Readonly<Record<string, SettingName>>

export type Opened = { readonly name: keyof typeof listenerSettings; readonly address: ListenAddress }
const listenerNames = Object.keys(listenerSettings) as Opened['name'][]

/** The listeners that a service with this configuration opens, in the order in which it opens them. */
export function listOpened(config: OpenedFacts): readonly Opened[] {
  const { api, bounce, console: ofConsole, reports, authHooks, links, linksBaseUrl, ops, roles } = config
  const { submission, submissions } = config
  const addresses: Readonly<Record<Opened['name'], ListenAddress | null>> = {
    ops,
    api: roles.has('api') ? api : null,
    links: roles.has('links') && linksBaseUrl !== null ? links : null,
    authHooks: roles.has('auth-hooks') ? authHooks : null,
    reports: reports?.address ?? null,
    console: roles.has('console') ? ofConsole : null,
    bounce: bounce?.address ?? null,
    submission: submission?.address ?? null,
    submissions: submissions?.address ?? null,
  }
  return listenerNames.flatMap((name) => {
    const address = addresses[name]
    return address === null ? [] : [{ name, address }]
  })
}

type Listens = { readonly address: ListenAddress } | null
export type OpenedFacts = ListenersConfig & {
  readonly roles: ReadonlySet<string>
  readonly reports: Listens
  readonly bounce: Listens
  readonly submission: Listens
  readonly submissions: Listens
}

/** On Linux, `::` takes the port of IPv4 as well. */
const everyAddress = ['0.0.0.0', '::']

/** A fault for each two listeners that want one port. */
export function findSharedPorts(opened: readonly Opened[]): string[] {
  const share = (one: ListenAddress, other: ListenAddress): boolean =>
    one.port !== 0 &&
    one.port === other.port &&
    (one.host === other.host || [one, other].some(({ host }) => everyAddress.includes(host)))
  return opened.flatMap((one, index) =>
    opened
      .slice(index + 1)
      .filter((other) => share(one.address, other.address))
      .map(
        (other) =>
          `${listenerSettings[one.name]} and ${listenerSettings[other.name]} have the same port, ${one.address.port}: choose another one for one of them`,
      ),
  )
}

/** A command without a database works on that of dev mode. */
const isForDev = ({ isSet, mode }: Reader): boolean =>
  mode === 'dev' || (mode === 'command' && !isSet('POSTERN_DATABASE_URL'))

function readLinksBaseUrl(reader: Reader, links: ListenAddress): string | null {
  const { fault, text } = reader
  const isDev = isForDev(reader)
  // `isLinksBaseUrl` takes these two without TLS.
  const own = isDev ? `http://${links.host === '::1' ? '[::1]' : '127.0.0.1'}:${links.port}` : ''
  const baseUrl = (text('POSTERN_LINKS_BASE_URL') || own).replace(/\/+$/, '')
  if (baseUrl === '') return null
  const secure = isDev || baseUrl.startsWith('https:')
  if (!secure || !isLinksBaseUrl(baseUrl))
    fault('POSTERN_LINKS_BASE_URL must be an https URL without query, such as https://links.example.com')
  return baseUrl
}

function readConsole(reader: Reader): ListenAddress | null {
  const name = 'POSTERN_CONSOLE_LISTEN'
  if (reader.text(name) === 'off') return null
  const address = readAddress(reader, name)
  const isDevOpen = reader.mode === 'dev' && !isLoopback(address.host)
  if (isDevOpen && reader.text('POSTERN_CONSOLE_PUBLIC') !== 'yes') {
    reader.fault(
      `${name}: in dev mode nobody signs in to the console, and its inbox shows live links, so it listens on loopback only; in a container, set POSTERN_CONSOLE_PUBLIC=yes and publish its port on 127.0.0.1 only`,
    )
  }
  return address
}

/**
 * Without `POSTERN_CONSOLE_URL`, browsers reach the console by a name of this machine: `postern.localhost`,
 * which keeps its cookies apart from those of `localhost`. Cookies do not know ports, so another server of
 * this machine gets them under the same name.
 */
function readConsoleUrl(
  { fault, mode, text }: Reader,
  address: ListenAddress | null,
): Pick<ListenersConfig, 'consoleUrl' | 'consoleIsLocal'> {
  const given = text('POSTERN_CONSOLE_URL').replace(/\/+$/, '')
  if (address === null) return { consoleUrl: null, consoleIsLocal: false }
  const own = mode === 'dev' ? '127.0.0.1' : 'postern.localhost'
  if (given === '') return { consoleUrl: `http://${own}:${address.port}`, consoleIsLocal: true }
  const url = URL.parse(given)
  const isLocal = url !== null && (isLoopback(url.hostname) || url.hostname.endsWith('.localhost'))
  if (url === null || url.origin !== given || !(url.protocol === 'https:' || isLocal))
    fault(
      'POSTERN_CONSOLE_URL must be an https origin, such as https://postern.example.com (http only for a name of this machine)',
    )
  return { consoleUrl: given, consoleIsLocal: isLoopback(address.host) }
}
