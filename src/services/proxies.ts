/**
 * The proxies of HTTP that the environment names (HTTPS_PROXY, HTTP_PROXY, NO_PROXY, in small letters too),
 * for Node's own agents. Loopback is never asked through one, nor is a relay by SMTP.
 */
import http from 'node:http'
import { bareHost } from '../domain/client-network.ts'

type Environment = Readonly<Record<string, string | undefined>>

export type Proxies = { readonly HTTP_PROXY?: string; readonly HTTPS_PROXY?: string; readonly NO_PROXY: string }

const names = ['HTTPS_PROXY', 'HTTP_PROXY'] as const

/** Small letters first, as curl and Node read them. */
const read = (env: Environment, name: string): string => (env[name.toLowerCase()] ?? env[name] ?? '').trim()

/** With the scheme that many leave out; null if it is no proxy. */
function parseProxy(value: string): URL | null {
  const url = URL.parse(/^[a-z][a-z\d+.-]*:\/\//i.test(value) ? value : `http://${value}`)
  return url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '' ? url : null
}

/** Null without a proxy. Values that are none are left out: `findProxyFaults` says so. */
export function readProxies(env: Environment): Proxies | null {
  const found = names.flatMap((name) => {
    const url = parseProxy(read(env, name))
    return read(env, name) === '' || url === null ? [] : [[name, url.href] as const]
  })
  const local = 'localhost,127.0.0.1,::1'
  const given = read(env, 'NO_PROXY')
  return found.length === 0
    ? null
    : { ...Object.fromEntries(found), NO_PROXY: given === '' ? local : `${given},${local}` }
}

/** No fault repeats a value, which may hold a password. */
export function findProxyFaults(env: Environment): string[] {
  const given = names.filter((name) => read(env, name) !== '')
  const wrong = given.filter((name) => parseProxy(read(env, name)) === null)
  const isOld = given.length > 0 && http.setGlobalProxyFromEnv === undefined
  return [
    ...wrong.map((name) => `${name} must be the URL of a proxy, such as http://proxy.example.com:3128`),
    ...(isOld ? [`${given.join(' and ')}: this Node cannot use a proxy; install a newer one, or unset it`] : []),
  ]
}

/** Those of this process. */
let own: Proxies | null = null

/** From now on, requests of this process go through the proxies, `fetch` and those without an agent too. */
export function useProxies(env: Environment): void {
  own = readProxies(env)
  if (own !== null) http.setGlobalProxyFromEnv(own)
}

/** The option of an agent of this process; nothing without a proxy. */
export const ownProxies = (): { readonly proxyEnv?: Proxies } => (own === null ? {} : { proxyEnv: own })

const usualPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

/**
 * Whether Node's agents send a request for this URL through a proxy: with `*`, names, names with a port,
 * `.domain` and `*.domain` in NO_PROXY. Node also knows ranges of addresses there, which no name is in.
 */
export function isProxied({ hostname, port, protocol }: URL, proxies: Proxies | null = own): boolean {
  if (proxies === null || (protocol === 'https:' ? proxies.HTTPS_PROXY : proxies.HTTP_PROXY) === undefined) return false
  const host = bareHost(hostname).toLowerCase()
  const exempt = ['*', host, `${host}:${port === '' ? usualPorts[protocol] : port}`]
  return !proxies.NO_PROXY.toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => exempt.includes(entry) || (/^\*?\./.test(entry) && host.endsWith(entry.replace(/^\*/, ''))))
}

/** As `doctor` shows them; null without a proxy. */
export function describeProxies(proxies: Proxies | null = own): string | null {
  if (proxies === null) return null
  const shown = names.flatMap((name) => {
    const value = proxies[name]
    return value === undefined ? [] : [`${name} ${new URL(value).host}`]
  })
  return `mail APIs, token servers, webhooks of apps, OpenID and SNS use the proxy ${shown.join(', ')} (not used for: ${proxies.NO_PROXY}); SMTP uses none`
}
