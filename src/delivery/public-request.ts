/**
 * One request to the public Internet, for addresses that operators and apps name. It follows no redirect, and
 * reaches no private network unless that is allowed: the address is checked where the connection is made, so
 * that a name which changes between two look-ups cannot redirect the request.
 */
import { lookup } from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import { promisify } from 'node:util'
import { isPrivateAddress } from '../dns/private-address.ts'
import { newPublicLookup, PrivateAddress } from '../dns/public-lookup.ts'
import { bareHost } from '../domain/client-network.ts'
import { isProxied, ownProxies } from '../services/proxies.ts'

type PublicRequest = {
  readonly url: URL
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string | number>>
  readonly body?: Buffer
  /** Whether the body of an answer with this status is read. */
  readonly reads: (status: number) => boolean
}

export type PublicOptions = {
  readonly allowsPrivate: boolean
  /** The resolvers to ask for public addresses; null for those of the machine. */
  readonly dnsServers: readonly string[] | null
  /** Certificates in PEM that are trusted besides the usual ones; for tests. */
  readonly ca?: string
  readonly stopped?: AbortSignal
  readonly timeoutMs?: number
}

/** `result`: the status, or in a few words why there was none. `text`: the beginning of the body, as sent. */
export type PublicAnswer = { readonly result: string; readonly status: number | null; readonly text: string }

const usualTimeoutMs = 10_000
/** More would not be shown. */
const responseMax = 2000
const responseMs = 1000
/** Answers before the answer (1xx); a flood of them would take a processor. */
const informationMax = 10

/** Never rejects. */
export async function requestPublic(asked: PublicRequest, options: PublicOptions): Promise<PublicAnswer> {
  const { body, headers, method, reads, url } = asked
  const { allowsPrivate, ca, dnsServers, stopped, timeoutMs = usualTimeoutMs } = options
  const host = bareHost(url.hostname)
  if (url.protocol !== 'https:' && !allowsPrivate) return fail('needs https')
  if (!allowsPrivate && isIP(host) !== 0 && isPrivateAddress(host)) return fail(privateNetwork)
  const timeout = AbortSignal.timeout(timeoutMs)
  const route = await findRoute(url, options)
  if ('result' in route) return route
  const request = (url.protocol === 'http:' ? http : https).request(url, {
    method,
    headers: { ...headers, ...route.headers },
    ...route.options,
    signal: AbortSignal.any(stopped === undefined ? [timeout] : [stopped, timeout]),
    lookup: allowsPrivate ? lookup : newPublicLookup(dnsServers),
    ...(url.protocol === 'https:' && { minVersion: 'TLSv1.2' as const, ...(ca !== undefined && { ca }) }),
  })
  const answer = await new Promise<PublicAnswer>((resolve) => {
    let isAnswered = false
    const giveUp = (why: string) => isAnswered || resolve(fail(why))
    const late = `no answer within ${timeoutMs / 1000} s`
    // A proxy that does not answer is no connection yet, so the signal alone would not end the wait.
    timeout.addEventListener('abort', () => giveUp(late))
    request.once('response', (received) => {
      isAnswered = true
      const { statusCode: status = 0 } = received
      const result = String(status)
      if (!reads(status)) return resolve({ result, status, text: '' })
      void readBeginning(received).then((text) => resolve({ result, status, text }))
    })
    request.on('error', (error: NodeJS.ErrnoException) => giveUp(timeout.aborted ? late : explain(error)))
    // Also after 101, of which there is neither a response nor an error.
    request.once('close', () => giveUp('no answer'))
    let informed = 0
    request.on('information', () => ++informed > informationMax && request.destroy())
    request.end(body)
  })
  request.destroy()
  return answer
}

/** At most `responseMax` characters of a body, and what has come within `responseMs`. */
function readBeginning(received: http.IncomingMessage): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  const end = () => resolve(text.slice(0, responseMax))
  const timer = setTimeout(end, responseMs)
  received.setEncoding('utf8')
  received.on('data', (part: string) => {
    text += part
    if (text.length >= responseMax) end()
  })
  received.once('close', end)
  received.on('error', end)
  return promise.finally(() => clearTimeout(timer))
}

type Route = { readonly headers?: Record<string, string>; readonly options: https.RequestOptions }

/**
 * A proxy looks names up by itself, and might reach a private address. So it gets an address that was looked
 * up and checked here; name and certificate stay those of the receiver.
 */
async function findRoute(url: URL, { allowsPrivate, ca, dnsServers }: PublicOptions): Promise<Route | PublicAnswer> {
  if (!isProxied(url)) return { options: { agent: false } }
  const tls = { minVersion: 'TLSv1.2' as const, ...(ca !== undefined && { ca }) }
  const newAgent = (proxies: object) =>
    url.protocol === 'http:' ? new http.Agent(proxies) : new https.Agent({ ...proxies, ...tls })
  if (allowsPrivate || isIP(bareHost(url.hostname)) !== 0) return { options: { agent: newAgent(ownProxies()) } }
  // The exemptions were judged by the name.
  const agent = newAgent({ proxyEnv: { ...ownProxies().proxyEnv, NO_PROXY: '' } })
  const lookUp = promisify(newPublicLookup(dnsServers) as (host: string, options: object, done: Done) => void)
  try {
    const address = await lookUp(url.hostname, {})
    return { headers: { host: url.host }, options: { agent, hostname: address, servername: url.hostname } }
  } catch (error) {
    return fail(explain(error as NodeJS.ErrnoException))
  }
}

type Done = (error: Error | null, address: string) => void

const fail = (result: string): PublicAnswer => ({ result, status: null, text: '' })

const privateNetwork = 'its address is not on the public Internet'

function explain(error: NodeJS.ErrnoException): string {
  if (error instanceof PrivateAddress) return privateNetwork
  const { code = '' } = error
  if (/CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|^ERR_TLS/.test(code)) return `its certificate is not valid (${code})`
  return /^\w{1,40}$/.test(code) ? `no answer (${code})` : 'no answer'
}
