/**
 * Keeps other web sites away from the pages. A page on the web can make a browser send requests to this
 * listener, also under a name of its own that resolves here (DNS rebinding). So the Host must be a name of
 * the console, and a request that may change something must come from the console's own origin: `same-site`
 * is another port or a sibling domain.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isLoopback } from '../../domain/client-network.ts'

/** How browsers reach the console. */
export type ConsoleAddress = {
  /** Its origin. */
  readonly url: string
  /** Whether its pages also answer under the names of this machine. */
  readonly isLocal: boolean
}

/** @param host of a request, with or without a port */
function isOwnHost(host: string): boolean {
  const name = host.replace(/:\d+$/, '')
  return isLoopback(name) || /^[a-z0-9-]+\.localhost$/.test(name)
}

/** The origin by which a request reaches the console; null if the Host is no name of it. */
export function findOrigin({ url, isLocal }: ConsoleAddress, host: string | undefined): string | null {
  if (host === undefined) return null
  if (host === new URL(url).host) return url
  return isLocal && isOwnHost(host) ? `http://${host}` : null
}

const isReading = ({ method }: FastifyRequest): boolean => method === 'GET' || method === 'HEAD'

/**
 * Browsers say where a request comes from; old ones by `Origin` alone. A link on another site may open a
 * page; what a page of another site loads by itself would use up the rate of the person who looks at it.
 */
function comesFromElsewhere(request: FastifyRequest, own: string): boolean {
  const { origin, 'sec-fetch-site': site, 'sec-fetch-dest': purpose } = request.headers
  if (origin !== undefined && origin !== own) return true
  if (isReading(request))
    return site !== undefined && site !== 'same-origin' && site !== 'none' && purpose !== 'document'
  // No browser sends a DELETE without its origin: this one comes from a program.
  if (site === undefined) return origin === undefined && request.method !== 'DELETE'
  return site !== 'same-origin'
}

/**
 * Whether a page of the console led to this request, whose Host `guardPages` has checked. A link on another
 * site did not, nor one from a mail program, which browsers do not tell from an address that somebody typed.
 */
export function isFromOwnPage({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  // Sent to our own pages alone, by our referrer policy, also over http and by old browsers.
  return URL.parse(headers.referer ?? '')?.host === headers.host
}

type Refuse = (
  request: FastifyRequest,
  reply: FastifyReply,
  error: { readonly code: string; readonly message: string },
) => FastifyReply

/** @param refuse answers a request that comes from elsewhere */
export function guardPages(pages: FastifyInstance, address: ConsoleAddress, refuse: Refuse): void {
  pages.addHook('onRequest', async (request, reply) => {
    const own = findOrigin(address, request.headers.host)
    if (own?.startsWith('https:')) reply.header('strict-transport-security', 'max-age=31536000')
    if (own !== null && !comesFromElsewhere(request, own)) return
    const names = address.isLocal ? `${address.url}, or a name of this machine` : address.url
    return refuse(request, reply, {
      code: 'foreign_origin',
      message: `The console accepts requests only from its own pages, at ${names} (POSTERN_CONSOLE_URL).`,
    })
  })
}
