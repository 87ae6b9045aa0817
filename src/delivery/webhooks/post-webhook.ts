/**
 * One POST to the receiver of an app. Its status is read, and the beginning of a refusal. It follows no
 * redirect, and reaches the public Internet alone unless the private network is allowed: the address is
 * checked where the connection is made, so that a name which changes between two look-ups leads nowhere else.
 */
import { type LookupAddress, lookup } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import http from 'node:http'
import https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { promisify } from 'node:util'
import { isPrivateAddress } from '../../dns/private-address.ts'
import { bareHost } from '../../domain/client-network.ts'
import { signStandardWebhook } from '../../domain/signatures.ts'
import { isProxied, ownProxies } from '../../services/proxies.ts'

export type Posting = {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

type Signed = {
  readonly id: string
  readonly text: string
  /** Each signs it: a receiver may still know the old secret. Without keys, it is not signed. */
  readonly keys: readonly Buffer[]
  readonly nowMs: number
  /** The version of Postern. */
  readonly version: string
}

/** A message with the headers of Standard Webhooks (standardwebhooks.com). */
export function newPosting(url: URL, { id, keys, nowMs, text, version }: Signed): Posting {
  const body = Buffer.from(text)
  const timestamp = String(Math.floor(nowMs / 1000))
  const signatures = keys.map((key) => signStandardWebhook({ id, timestamp, body }, key))
  const headers = {
    'content-type': 'application/json',
    'user-agent': `Postern/${version}`,
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
  }
  return { url, headers, body }
}

type Options = {
  readonly allowsPrivate: boolean
  /** The resolvers to ask for public addresses; null for those of the machine. */
  readonly dnsServers: readonly string[] | null
  /** Certificates in PEM that are trusted besides the usual ones; for tests. */
  readonly ca?: string
  readonly stopped: AbortSignal
  readonly timeoutMs?: number
}

/**
 * `result`: the status, or in a few words why there was none. `response`: the beginning of the body that came
 * with another status than 2xx, as it was sent.
 */
export type WebhookAnswer = { readonly result: string; readonly isTaken: boolean; readonly response: string | null }

const usualTimeoutMs = 10_000
/** More of a refusal would not be shown. */
const responseMax = 2000
const responseMs = 1000
/** Answers before the answer (1xx); a flood of them would take a processor. */
const informationMax = 10

/** Never rejects. */
export async function postWebhook({ url, headers, body }: Posting, options: Options): Promise<WebhookAnswer> {
  const { allowsPrivate, ca, dnsServers, stopped, timeoutMs = usualTimeoutMs } = options
  const host = bareHost(url.hostname)
  if (url.protocol !== 'https:' && !allowsPrivate) return fail('needs https')
  if (!allowsPrivate && isIP(host) !== 0 && isPrivateAddress(host)) return fail(privateNetwork)
  const timeout = AbortSignal.timeout(timeoutMs)
  const route = await findRoute(url, options)
  if ('result' in route) return route
  const request = (url.protocol === 'http:' ? http : https).request(url, {
    method: 'POST',
    headers: { ...headers, 'content-length': body.length, ...route.headers },
    ...route.options,
    signal: AbortSignal.any([stopped, timeout]),
    lookup: allowsPrivate ? lookup : newPublicLookup(dnsServers),
    ...(url.protocol === 'https:' && { minVersion: 'TLSv1.2' as const, ...(ca !== undefined && { ca }) }),
  })
  const answer = await new Promise<WebhookAnswer>((resolve) => {
    let isAnswered = false
    const giveUp = (why: string) => isAnswered || resolve(fail(why))
    const late = `no answer within ${timeoutMs / 1000} s`
    // A proxy that does not answer is no connection yet, so the signal alone would not end the wait.
    timeout.addEventListener('abort', () => giveUp(late))
    request.once('response', (received) => {
      isAnswered = true
      const { statusCode = 0 } = received
      const result = String(statusCode)
      if (statusCode >= 200 && statusCode < 300) return resolve({ result, isTaken: true, response: null })
      void readBeginning(received).then((text) => resolve({ result, isTaken: false, response: text || null }))
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
async function findRoute(url: URL, { allowsPrivate, ca, dnsServers }: Options): Promise<Route | WebhookAnswer> {
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

const fail = (result: string): WebhookAnswer => ({ result, isTaken: false, response: null })

const privateNetwork = 'its address is not on the public Internet'

class PrivateAddress extends Error {}

/** Not by the system's resolver, whose few threads other connections of the process need. */
const newPublicLookup =
  (dnsServers: Options['dnsServers']): LookupFunction =>
  (host, options, done) => {
    const resolver = new Resolver({ timeout: 2000, tries: 2 })
    if (dnsServers !== null) resolver.setServers(dnsServers)
    const both = [resolver.resolve4(host), resolver.resolve6(host)] as const
    void Promise.allSettled(both).then(([four, six]) => {
      const found = [
        ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
        ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
      ]
      const open = found.filter(({ address }) => !isPrivateAddress(address))
      const [first] = open
      if (first === undefined && four.status === 'rejected' && found.length === 0) return done(four.reason, '')
      if (first === undefined) return done(new PrivateAddress(), '')
      if (options.all) return (done as (error: null, found: LookupAddress[]) => void)(null, open)
      done(null, first.address, first.family)
    })
  }

function explain(error: NodeJS.ErrnoException): string {
  if (error instanceof PrivateAddress) return privateNetwork
  const { code = '' } = error
  if (/CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|^ERR_TLS/.test(code)) return `its certificate is not valid (${code})`
  return /^\w{1,40}$/.test(code) ? `no answer (${code})` : 'no answer'
}
